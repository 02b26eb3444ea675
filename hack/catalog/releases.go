package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/blang/semver/v4"
	"github.com/operator-framework/api/pkg/manifests"
	"golang.org/x/mod/sumdb/dirhash"
)

// checksumsFile has a line "VERSION HASH" for each release, with the hash that Go uses for modules.
const checksumsFile = "checksums"

// released returns the versions of the releases, the oldest first. A release that changed is an error.
func released(root string) ([]semver.Version, error) {
	dir := filepath.Join(root, releasesDir)
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the releases: %w", err)
	}
	recorded, err := os.ReadFile(filepath.Join(dir, checksumsFile))
	if err != nil {
		return nil, fmt.Errorf("reading the checksums of the releases: %w", err)
	}
	var versions []semver.Version
	lines := ""
	for _, entry := range entries {
		if entry.Name() == checksumsFile {
			continue
		}
		version, err := bundleVersion(filepath.Join(dir, entry.Name()))
		if err != nil {
			return nil, err
		}
		if version.String() != entry.Name() {
			return nil, fmt.Errorf("%s/%s contains the bundle of %s: name the folder after the version", releasesDir, entry.Name(), version)
		}
		line, err := checksum(dir, entry.Name())
		if err != nil {
			return nil, err
		}
		if !strings.Contains("\n"+string(recorded), "\n"+line) {
			return nil, fmt.Errorf("%s/%s is not as released: restore it with git checkout catalog, and release a new version", releasesDir, entry.Name())
		}
		lines += line
		versions = append(versions, version)
	}
	if len(lines) != len(recorded) {
		return nil, fmt.Errorf("%s/%s lists a release that is missing: restore it with git checkout catalog", releasesDir, checksumsFile)
	}
	semver.Sort(versions)
	return versions, nil
}

// checksum returns the line of a release for checksumsFile.
func checksum(dir, version string) (string, error) {
	hash, err := dirhash.HashDir(filepath.Join(dir, version), version, dirhash.Hash1)
	if err != nil {
		return "", fmt.Errorf("reading the release %s: %w", version, err)
	}
	return version + " " + hash + "\n", nil
}

func bundleVersion(dir string) (semver.Version, error) {
	bundle, err := manifests.GetBundleFromDir(dir)
	if err != nil {
		return semver.Version{}, fmt.Errorf("reading the bundle in %s: %w", dir, err)
	}
	return bundle.CSV.Spec.Version.Version, nil
}

// add makes bundle/ a release.
func add(root string) error {
	if _, err := released(root); err != nil {
		return err
	}
	version, err := bundleVersion(filepath.Join(root, "bundle"))
	if err != nil {
		return err
	}
	dir := filepath.Join(root, releasesDir)
	target := filepath.Join(dir, version.String())
	if _, err := os.Stat(target); err == nil {
		return fmt.Errorf("%s is released already, and a release never changes: raise VERSION", version)
	}
	if err := os.CopyFS(target, os.DirFS(filepath.Join(root, "bundle"))); err != nil {
		return fmt.Errorf("copying the bundle: %w", err)
	}
	line, err := checksum(dir, version.String())
	if err != nil {
		return err
	}
	file, err := os.OpenFile(filepath.Join(dir, checksumsFile), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("writing the checksums: %w", err)
	}
	_, err = file.WriteString(line)
	return errors.Join(err, file.Close())
}
