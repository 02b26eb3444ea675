package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// operatorImageCommand makes the operator's image as the Dockerfile does, but
// without a daemon, pushes it to the cluster and writes it to an archive.
func operatorImageCommand(d dirs, args []string) error {
	flags := flag.NewFlagSet("operator-image", flag.ContinueOnError)
	source := flags.String("source", "", "checkout to build")
	archive := flags.String("o", "", "archive to write")
	ldflags := flags.String("ldflags", "-s -w", "flags for the linker")
	rest, err := parse(flags, args)
	if err != nil {
		return err
	}
	if len(rest) != 1 || *source == "" {
		return fmt.Errorf("operator-image takes a name and --source: %w", errUsage)
	}
	tag, err := name.NewTag(rest[0])
	if err != nil {
		return err
	}
	if _, runs := d.running(firstNode); !runs && *archive == "" {
		return errors.Join(errNotRunning, errors.New("or write the image to an archive with -o"))
	}
	var img v1.Image
	err = step("building "+rest[0], func() error {
		img, err = operatorImage(*source, *ldflags)
		return err
	})
	if err != nil {
		return err
	}
	if *archive != "" {
		if err := tarball.WriteToFile(*archive, tag, img); err != nil {
			return fmt.Errorf("writing %s: %w", *archive, err)
		}
	}
	if _, runs := d.running(firstNode); !runs {
		return nil
	}
	return d.load(rest[0], img)
}

// operatorImage builds the operator, the agent and the program of backups. The base stands for
// distroless: names, a /tmp and, where this machine has them, certificates.
func operatorImage(source, ldflags string) (v1.Image, error) {
	root, err := os.MkdirTemp("", "operator-image")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(root)
	if err := baseFiles(root); err != nil {
		return nil, err
	}
	const certificates = "/etc/ssl/certs/ca-certificates.crt"
	if exists(certificates) {
		if err := copyFile(certificates, filepath.Join(root, certificates)); err != nil {
			return nil, err
		}
	}
	for program, pkg := range map[string]string{"manager": ".", "agent": "./agent", "snapshot": "./snapshot"} {
		if !exists(filepath.Join(source, pkg)) {
			continue // a release before it, which tests upgrade from
		}
		if err := goBuild(source, filepath.Join(root, program), pkg, "-trimpath", "-buildvcs=false", "-ldflags="+ldflags); err != nil {
			return nil, err
		}
	}
	return imageOf(v1.Config{Entrypoint: []string{"/manager"}, User: "65532:65532", WorkingDir: "/"}, root)
}
