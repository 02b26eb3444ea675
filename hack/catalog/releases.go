package main

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	"github.com/operator-framework/api/pkg/manifests"
)

// checksumsFile lists every file of every release, as sha256sum does: in the
// folder of the releases, "sha256sum -c checksums" checks them too.
const checksumsFile = "checksums"

// released returns the versions of the releases, the oldest first. One that is
// not as it was published is an error.
func released(root string) ([]semver.Version, error) {
	dir := filepath.Join(root, releasesDir)
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the releases: %w", err)
	}
	if err := unchanged(dir); err != nil {
		return nil, err
	}
	var versions []semver.Version
	for _, entry := range entries {
		if entry.Name() == checksumsFile {
			continue
		}
		version, err := bundleVersion(filepath.Join(dir, entry.Name()))
		if err != nil {
			return nil, err
		}
		if version.String() != entry.Name() {
			return nil, fmt.Errorf("%s/%s holds the bundle of %s: a release's folder is called by its version", releasesDir, entry.Name(), version)
		}
		versions = append(versions, version)
	}
	semver.Sort(versions)
	return versions, nil
}

// bundleVersion is the version of the bundle in dir.
func bundleVersion(dir string) (semver.Version, error) {
	bundle, err := manifests.GetBundleFromDir(dir)
	if err != nil {
		return semver.Version{}, fmt.Errorf("reading the bundle in %s: %w", dir, err)
	}
	return bundle.CSV.Spec.Version.Version, nil
}

// unchanged is an error unless the releases in dir are as their checksums say.
func unchanged(dir string) error {
	content, err := os.ReadFile(filepath.Join(dir, checksumsFile))
	if err != nil {
		return fmt.Errorf("reading what was released: %w", err)
	}
	want := map[string]string{}
	lines := bufio.NewScanner(bytes.NewReader(content))
	for lines.Scan() {
		sum, name, found := strings.Cut(lines.Text(), "  ")
		if !found {
			return fmt.Errorf("%s/%s has the line %q: restore it with git checkout catalog", releasesDir, checksumsFile, lines.Text())
		}
		want[name] = sum
	}
	got, err := checksums(dir)
	if err != nil {
		return err
	}
	var changed []string
	for name := range got {
		if got[name] != want[name] {
			changed = append(changed, name)
		}
	}
	for name := range want {
		if _, found := got[name]; !found {
			changed = append(changed, name)
		}
	}
	if len(changed) > 0 {
		slices.Sort(changed)
		return fmt.Errorf("%s: not as released: %s; a release never changes: restore it with git checkout catalog, and release a new one",
			releasesDir, strings.Join(changed, ", "))
	}
	return nil
}

// checksums returns the checksum of every file of the releases in dir.
func checksums(dir string) (map[string]string, error) {
	sums := map[string]string{}
	tree := os.DirFS(dir)
	err := fs.WalkDir(tree, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || path == checksumsFile {
			return err
		}
		content, err := fs.ReadFile(tree, path)
		sums[path] = fmt.Sprintf("%x", sha256.Sum256(content))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading the releases: %w", err)
	}
	return sums, nil
}

// add makes bundle/ a release whose image is image.
func add(root, image string) error {
	// Nothing is added to releases that are not in order.
	if _, err := released(root); err != nil {
		return err
	}
	version, err := bundleVersion(filepath.Join(root, "bundle"))
	if err != nil {
		return err
	}
	if !strings.HasSuffix(image, ":v"+version.String()) {
		return fmt.Errorf("bundle/ is that of %s, and the image %s is not: its tag has to be v%s", version, image, version)
	}
	dir := filepath.Join(root, releasesDir)
	target := filepath.Join(dir, version.String())
	if _, err := os.Stat(target); err == nil {
		return fmt.Errorf("%s is released already; a release never changes: raise VERSION", version)
	}
	if err := os.CopyFS(target, os.DirFS(filepath.Join(root, "bundle"))); err != nil {
		return fmt.Errorf("keeping the bundle: %w", err)
	}
	sums, err := checksums(dir)
	if err != nil {
		return err
	}
	var lines strings.Builder
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		fmt.Fprintf(&lines, "%s  %s\n", sums[name], name)
	}
	if err := os.WriteFile(filepath.Join(dir, checksumsFile), []byte(lines.String()), 0o644); err != nil {
		return fmt.Errorf("writing the checksums: %w", err)
	}
	return list(filepath.Join(root, templateFile), image, streamsOf(version))
}
