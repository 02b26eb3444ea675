// Package olm installs and upgrades the operator as people do: by a catalog and a
// Subscription, of bundles whose images the local cluster has.
package olm

import (
	"context"
	"fmt"
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
	// Channel is the one that people subscribe to.
	Channel = "stable-v1"

	image       = "ghcr.io/memcached-operator/memcached-operator"
	releasesDir = "catalog/releases"
)

// Release is a bundle that the local cluster can pull.
type Release struct {
	Version string
	// Bundle is the bundle's image, Operator the operator's.
	Bundle, Operator string
	// Built says from what the operator was built.
	Built string
	dir   string
}

// CSV returns the name of the release's ClusterServiceVersion.
func (r Release) CSV() string { return Package + ".v" + r.Version }

// InWork returns the release of bundle/. The operator's image is the one given,
// which the cluster has.
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

// Before returns the newest release that was cut before the given one, with an
// operator that is built from the sources that it was cut from, or from this
// checkout if it is one without a history.
func Before(ctx context.Context, scratch string, r Release) (Release, error) {
	root, err := cluster.Root()
	if err != nil {
		return Release{}, err
	}
	entries, err := os.ReadDir(filepath.Join(root, releasesDir))
	if err != nil {
		return Release{}, fmt.Errorf("reading the releases: %w", err)
	}
	than, err := semver.Parse(r.Version)
	if err != nil {
		return Release{}, fmt.Errorf("the release in work is %q: %w", r.Version, err)
	}
	var newest semver.Version
	for _, e := range entries {
		if v, err := semver.Parse(e.Name()); err == nil && v.LT(than) && v.GT(newest) {
			newest = v
		}
	}
	if newest.Equals(semver.Version{}) {
		return Release{}, fmt.Errorf("%s holds no release before %s to upgrade from", releasesDir, r.Version)
	}
	before := Release{Version: newest.String()}
	source, err := before.source(ctx, root, scratch)
	if err != nil {
		return Release{}, err
	}
	before.Operator = image + ":v" + before.Version + "-" + filepath.Base(source)
	_, err = cluster.Local(ctx, "operator-image", before.Operator, "--source", source, "--ldflags", "-s -w -X main.version="+before.Version)
	if err != nil {
		return Release{}, err
	}
	return before, before.load(ctx, filepath.Join(root, releasesDir, before.Version), scratch)
}

// source returns a folder with the sources of the release.
func (r *Release) source(ctx context.Context, root, scratch string) (string, error) {
	commit, err := output(ctx, root, "git", "log", "-1", "--diff-filter=A", "--format=%h", "--", filepath.Join(releasesDir, r.Version, "metadata"))
	if err != nil || commit == "" { // an archive, or a clone that does not reach back that far
		r.Built = "this checkout, as there is no history to take the release's own sources from"
		return root, nil
	}
	r.Built = "commit " + commit + ", which released it"
	dir := filepath.Join(scratch, commit)
	if err := os.Mkdir(dir, 0o755); err != nil {
		return "", err
	}
	archive := filepath.Join(scratch, commit+".tar")
	if _, err := output(ctx, root, "git", "archive", "-o", archive, commit); err != nil {
		return "", err
	}
	_, err = output(ctx, dir, "tar", "-xf", archive)
	return dir, err
}

// load puts a copy of a bundle, with images that the cluster has, into its
// registry.
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

// defaultMemcached is what bundles name; should Debian have moved on, the local
// cluster has another newest one.
const defaultMemcached = "docker.io/library/memcached:1.6.45"

// LoadCatalog puts an image of a catalog of these releases into the cluster's
// registry.
func LoadCatalog(ctx context.Context, scratch, reference string, releases ...Release) error {
	root, err := cluster.Root()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp(scratch, "catalog-")
	if err != nil {
		return err
	}
	args := []string{"-C", "hack/catalog", "run", ".", "preview", "--out", filepath.Join(dir, "configs")}
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
