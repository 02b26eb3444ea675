// Command bundle generates and validates bundle/ and bundle.Dockerfile, which the Operator Lifecycle Manager installs, and
// generates the manifest for kubectl:
//
//	go -C hack run ./bundle VERSION IMAGE SCORECARD-IMAGE TIME
//
// The source is config/manifests. The ClusterServiceVersion gets the Deployment, the rules that are bound to its
// ServiceAccount, descriptors of the CRDs' fields, the samples, and the RELATED_IMAGE_ variables as relatedImages.
// config/samples/olmv1/installer.yaml gets the rights that OLM v1 grants to it. The source of dist/install.yaml is
// config/default. charts/memcached-operator gets its CRDs, rules, versions and metadata. The same inputs give the same bytes.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	semver "github.com/blang/semver/v4"
)

// root is the project's folder: "go -C hack run" starts this program in hack.
const root = ".."

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bundle:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 4 {
		return errors.New("usage: bundle VERSION IMAGE SCORECARD-IMAGE TIME")
	}
	version, err := semver.Parse(args[0])
	if err != nil {
		return fmt.Errorf("reading the version %q: %w", args[0], err)
	}
	files, err := generate(root, release{version: version, image: args[1], scorecardImage: args[2], createdAt: args[3]})
	if err != nil {
		return err
	}
	if err := write(root, files); err != nil {
		return err
	}
	findings, err := validate(root)
	if err == nil && len(findings) > 0 {
		err = errors.New("the bundle is not valid:\n  " + strings.Join(findings, "\n  "))
	}
	return err
}

// release contains what config/ does not.
type release struct {
	version        semver.Version
	image          string
	scorecardImage string
	createdAt      string // RFC 3339
}

// write writes files below root, and removes other files of the bundle.
func write(root string, files map[string][]byte) error {
	if err := os.RemoveAll(filepath.Join(root, "bundle")); err != nil {
		return fmt.Errorf("removing the old bundle: %w", err)
	}
	for name, content := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			return err
		}
	}
	return nil
}
