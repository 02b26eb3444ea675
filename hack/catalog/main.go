package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/operator-framework/operator-registry/alpha/declcfg"
)

const (
	configsDir  = "catalog/configs"
	catalogFile = configsDir + "/memcached-operator/catalog.yaml"
)

func main() {
	root := flag.String("root", "../..", "the project's `FOLDER`")
	image := flag.String("bundle-image", "", "the `REFERENCE` of the image that bundle/ becomes")
	flag.Parse()
	if err := run(context.Background(), *root, *image); err != nil {
		fmt.Fprintln(os.Stderr, "catalog:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, root, image string) error {
	content, err := render(ctx, root, image)
	if err != nil {
		return err
	}
	if err := validate(content); err != nil {
		return err
	}
	file := filepath.Join(root, catalogFile)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, content, 0o644)
}

// validate reads a catalog as opm does when it validates one.
func validate(content []byte) error {
	catalog, err := declcfg.LoadReader(bytes.NewReader(content))
	if err != nil {
		return fmt.Errorf("reading the catalog: %w", err)
	}
	if _, err := declcfg.ConvertToModel(*catalog); err != nil {
		return fmt.Errorf("the catalog is not valid: %w", err)
	}
	return nil
}
