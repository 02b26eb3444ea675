package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

const (
	packageName  = "memcached-operator"
	releasesDir  = "catalog/releases"
	templateFile = "catalog/template.yaml"
	configsDir   = "catalog/configs"
	// catalogFile is where opm looks in a folder of catalogs.
	catalogFile = packageName + "/catalog.yaml"
)

const usage = "use: catalog render, or catalog add IMAGE, or catalog preview --out DIR and IMAGE=BUNDLEDIR of each bundle"

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "catalog:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("catalog", flag.ExitOnError)
	root := flags.String("root", "../..", "the project's `FOLDER`")
	if err := flags.Parse(args); err != nil {
		return err
	}
	switch args = flags.Args(); {
	case len(args) == 1 && args[0] == "render":
		content, err := render(ctx, *root)
		if err != nil {
			return err
		}
		return write(filepath.Join(*root, configsDir), content)
	case len(args) == 2 && args[0] == "add":
		return add(*root, args[1])
	case len(args) > 1 && args[0] == "preview":
		return runPreview(ctx, args[1:])
	}
	return errors.New(usage)
}

func runPreview(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("preview", flag.ExitOnError)
	out := flags.String("out", "", "write the catalog into this `DIR`")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *out == "" || flags.NArg() == 0 {
		return errors.New(usage)
	}
	bundles := map[string]string{}
	for _, argument := range flags.Args() {
		image, dir, found := strings.Cut(argument, "=")
		if !found {
			return fmt.Errorf("%q is not IMAGE=BUNDLEDIR", argument)
		}
		bundles[image] = dir
	}
	content, err := preview(ctx, bundles)
	if err != nil {
		return err
	}
	return write(*out, content)
}

// write puts a catalog into dir. No content is no catalog.
func write(dir string, content []byte) error {
	file := filepath.Join(dir, catalogFile)
	if content == nil {
		return os.RemoveAll(filepath.Dir(file))
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, content, 0o644)
}
