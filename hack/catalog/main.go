// Command catalog renders file-based catalogs and validates them as opm does:
//
//	go -C hack run ./catalog render BUNDLEIMAGE
//	go -C hack run ./catalog hubs VERSION DIR
//	go -C hack run ./catalog preview --out DIR IMAGE=BUNDLEDIR...
//
// Render writes catalog/configs: every release in catalog/releases, with the image BUNDLEIMAGE:vVERSION. Hubs writes what
// pull requests for a release add to the repositories of OperatorHub, to DIR. Preview renders the given bundles only, all in
// both channels, to DIR/memcached-operator/catalog.yaml. Relative paths are relative to hack. Nothing is pulled.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/blang/semver/v4"
)

const (
	packageName = "memcached-operator"
	releasesDir = "catalog/releases"
	configsDir  = "catalog/configs"
	// catalogFile is where opm looks in a folder of catalogs.
	catalogFile = packageName + "/catalog.yaml"
)

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "catalog:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	switch {
	case len(args) == 2 && args[0] == "render":
		content, err := render(ctx, "..", args[1])
		if err != nil {
			return err
		}
		return write(filepath.Join("..", configsDir, catalogFile), content)
	case len(args) == 3 && args[0] == "hubs":
		version, err := semver.Parse(args[1])
		if err != nil {
			return fmt.Errorf("reading the version %q: %w", args[1], err)
		}
		return hubs("..", args[2], version)
	case len(args) > 3 && args[0] == "preview" && args[1] == "--out":
		bundles := map[string]string{}
		var images []string
		for _, argument := range args[3:] {
			image, dir, _ := strings.Cut(argument, "=")
			bundles[image] = dir
			images = append(images, image)
		}
		content, err := catalogOf(ctx, bundles, template(map[string][]string{"Candidate": images, "Stable": images}), nil)
		if err != nil {
			return err
		}
		return write(filepath.Join(args[2], catalogFile), content)
	}
	return errors.New("usage: catalog render BUNDLEIMAGE, catalog hubs VERSION DIR, or catalog preview --out DIR one IMAGE=BUNDLEDIR or more")
}

// write writes a file, and its folder if need be.
func write(file string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, content, 0o644)
}
