// Package olm installs and upgrades the operator with a catalog and a Subscription, from bundles whose images the
// local cluster has.
package olm

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/blang/semver/v4"
	"github.com/operator-framework/api/pkg/manifests"
	"sigs.k8s.io/yaml"

	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
)

const (
	// Package is the operator's name in catalogs.
	Package = "memcached-operator"
	// Channel is the one that users subscribe to.
	Channel = "stable-v1"

	image       = "ghcr.io/memcached-operator/memcached-operator"
	releasesDir = "catalog/releases"
)

// Release is a bundle that the local cluster can pull.
type Release struct {
	Version string
	// Bundle is the bundle's image, Operator the operator's.
	Bundle, Operator string
	// Built names the sources that the operator was built from; Source is their folder, of a release before.
	Built, Source string
	dir           string
}

// CSV returns the name of the release's ClusterServiceVersion.
func (r Release) CSV() string { return Package + ".v" + r.Version }

// InWork returns the unreleased version, with bundle/ and the operator's image, which the cluster has.
func InWork(ctx context.Context, scratch, operator string) (Release, error) {
	root, err := cluster.Root()
	if err != nil {
		return Release{}, err
	}
	bundle := filepath.Join(root, "bundle")
	content, err := manifests.GetBundleFromDir(bundle)
	if err != nil {
		return Release{}, fmt.Errorf("reading bundle/: %w", err)
	}
	r := Release{Version: content.CSV.Spec.Version.String(), Operator: operator, Built: "this checkout"}
	return r, r.load(ctx, bundle, scratch)
}

// Before returns the newest release before the given version, with an operator that is built from the sources of that
// release. Without such a release, or without the history that has its sources, it returns an error: a test of an
// upgrade must not build the sources that it upgrades to.
func Before(ctx context.Context, scratch string, r Release) (Release, error) {
	root, err := cluster.Root()
	if err != nil {
		return Release{}, err
	}
	newest, err := newestBefore(root, r.Version)
	if err != nil {
		return Release{}, err
	}
	before := Release{Version: newest}
	if err := before.findSource(ctx, root, scratch); err != nil {
		return Release{}, err
	}
	before.Operator = image + ":v" + before.Version + "-" + filepath.Base(before.Source)
	archive := before.Source + "-image.tar"
	if _, err := cluster.Local(ctx, "image", "build", "--local-base", "--build-arg", "VERSION="+before.Version,
		"-t", before.Operator, "-o", archive, before.Source); err != nil {
		return Release{}, err
	}
	if _, err := cluster.Local(ctx, "load", before.Operator, archive); err != nil {
		return Release{}, err
	}
	return before, before.load(ctx, filepath.Join(root, releasesDir, before.Version), scratch)
}

// newestBefore returns the newest version in the catalog before the given one.
func newestBefore(root, version string) (string, error) {
	entries, err := os.ReadDir(filepath.Join(root, releasesDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("reading the releases: %w", err)
	}
	than, err := semver.Parse(version)
	if err != nil {
		return "", fmt.Errorf("the unreleased version is %q: %w", version, err)
	}
	var newest semver.Version
	for _, e := range entries {
		if v, err := semver.Parse(e.Name()); err == nil && v.LT(than) && v.GT(newest) {
			newest = v
		}
	}
	if newest.Equals(semver.Version{}) {
		return "", fmt.Errorf("%s contains no release before %s to upgrade from: cut one with \"make release\", then raise VERSION in the Makefile",
			releasesDir, version)
	}
	return newest.String(), nil
}

// findSource creates a folder with the sources of the release, from the commit that added it to the catalog.
func (r *Release) findSource(ctx context.Context, root, scratch string) error {
	commit, err := output(ctx, root, "git", "log", "-1", "--diff-filter=A", "--format=%h", "--", filepath.Join(releasesDir, r.Version, "metadata"))
	if err == nil {
		// The oldest commit of a shallow clone seems to add every file.
		var makefile string
		makefile, err = output(ctx, root, "git", "show", commit+":Makefile")
		if err == nil && !strings.Contains(makefile, "\nVERSION ?= "+r.Version+"\n") {
			err = errors.New("no commit added it")
		}
	}
	if err != nil {
		return fmt.Errorf("finding the sources of release %s in git's history: %w; run this in a clone with the whole history (git fetch --unshallow)", r.Version, err)
	}
	r.Built, r.Source = "commit "+commit, filepath.Join(scratch, commit)
	if err := os.Mkdir(r.Source, 0o755); err != nil {
		return err
	}
	archive := filepath.Join(scratch, commit+".tar")
	if _, err := output(ctx, root, "git", "archive", "-o", archive, commit); err != nil {
		return err
	}
	_, err = output(ctx, r.Source, "tar", "-xf", archive)
	return err
}

// load loads a copy of a bundle, with images that the cluster has, into its registry.
func (r *Release) load(ctx context.Context, bundle, scratch string) error {
	r.dir = filepath.Join(scratch, "bundle-"+r.Version)
	if err := os.CopyFS(r.dir, os.DirFS(bundle)); err != nil {
		return fmt.Errorf("copying the bundle: %w", err)
	}
	images := []string{image + ":v" + r.Version, r.Operator}
	if newest := os.Getenv("MEMCACHED_NEWEST"); newest != "" {
		images = append(images, defaultMemcached, "docker.io/library/memcached:"+newest)
	}
	for _, file := range []string{"manifests/memcached-operator.clusterserviceversion.yaml", "tests/scorecard/config.yaml"} {
		content, err := os.ReadFile(filepath.Join(r.dir, file))
		if err != nil {
			return err
		}
		replaced := strings.NewReplacer(images...).Replace(string(content))
		if err := os.WriteFile(filepath.Join(r.dir, file), []byte(replaced), 0o644); err != nil {
			return err
		}
	}
	content, err := os.ReadFile(filepath.Join(r.dir, "metadata/annotations.yaml"))
	if err != nil {
		return err
	}
	var metadata struct{ Annotations map[string]string }
	if err := yaml.Unmarshal(content, &metadata); err != nil {
		return fmt.Errorf("reading the bundle's annotations: %w", err)
	}
	r.Bundle = image + "-bundle:v" + r.Version
	args := []string{"load", r.Bundle, "--dir", r.dir}
	for key, value := range metadata.Annotations {
		args = append(args, "--label", key+"="+value)
	}
	_, err = cluster.Local(ctx, args...)
	return err
}

// defaultMemcached is what bundles name. The local cluster has another newest version when Debian has.
const defaultMemcached = "docker.io/library/memcached:1.6.45"

// LoadCatalog loads an image of a catalog of these releases into the cluster's registry.
func LoadCatalog(ctx context.Context, scratch, reference string, releases ...Release) error {
	root, err := cluster.Root()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp(scratch, "catalog-")
	if err != nil {
		return err
	}
	args := []string{"-C", "hack", "run", "./catalog", "preview", "--out", filepath.Join(dir, "configs")}
	for _, r := range releases {
		args = append(args, r.Bundle+"="+r.dir)
	}
	if _, err := output(ctx, root, "go", args...); err != nil {
		return err
	}
	_, err = cluster.Local(ctx, "load", reference, "--dir", dir, "--label", "operators.operatorframework.io.index.configs.v1=/configs")
	return err
}

func output(ctx context.Context, dir, program string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = dir
	var complaint strings.Builder
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", program, strings.Join(args, " "), err, strings.TrimSpace(complaint.String()))
	}
	return strings.TrimSpace(string(out)), nil
}
