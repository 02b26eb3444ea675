package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/blang/semver/v4"
)

// released returns the versions of the releases, the oldest first.
func released(root string) ([]semver.Version, error) {
	entries, err := os.ReadDir(filepath.Join(root, releasesDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading the releases: %w", err)
	}
	var versions []semver.Version
	for _, entry := range entries {
		if !entry.IsDir() { // the checksums
			continue
		}
		version, err := semver.Parse(entry.Name())
		if err != nil {
			return nil, fmt.Errorf("reading the releases: %w", err)
		}
		versions = append(versions, version)
	}
	semver.Sort(versions)
	return versions, nil
}
