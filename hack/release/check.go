package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/blang/semver/v4"
)

// check is an error when the release cannot be made.
func (r release) check(ctx context.Context) error {
	version, err := semver.Parse(r.version)
	if err != nil || len(version.Build) > 0 {
		return fmt.Errorf("%q is no version: give one such as VERSION=1.1.0, or VERSION=1.1.0-rc.1 for a candidate", r.version)
	}
	status, err := r.git(ctx, "status", "--porcelain")
	if err != nil {
		return err
	}
	if status != "" {
		return fmt.Errorf("the tree has changes that are not committed: commit them or take them back; %s\n%s", undoSentence(), status)
	}
	// Asked of git too: a tag without a folder is a release that was cut elsewhere.
	tags, err := r.git(ctx, "tag", "--list", "v"+r.version)
	if err != nil {
		return err
	}
	last, err := r.lastRelease()
	if err != nil {
		return err
	}
	switch {
	case tags != "" || version.EQ(last):
		return fmt.Errorf("%s is released already, and a release never changes: release a greater version", version)
	case version.LT(last):
		return fmt.Errorf("%s is not after %s, the last release: OLM would not upgrade to it", version, last)
	}
	return nil
}

// lastRelease is the greatest version in catalog/releases, 0.0.0 if there is none.
func (r release) lastRelease() (semver.Version, error) {
	var last semver.Version
	entries, err := os.ReadDir(filepath.Join(r.root, "catalog/releases"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return last, fmt.Errorf("reading the releases: %w", err)
	}
	for _, entry := range entries {
		if !entry.IsDir() {
			continue
		}
		version, err := semver.Parse(entry.Name())
		if err != nil {
			return last, fmt.Errorf("catalog/releases/%s is called by no version: %w", entry.Name(), err)
		}
		if version.GT(last) {
			last = version
		}
	}
	return last, nil
}
