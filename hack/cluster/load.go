package main

import (
	"flag"
	"fmt"
	"os"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// loadCommand pushes an image to the cluster's registry: an archive, or a
// folder as its only layer.
func loadCommand(d dirs, args []string) error {
	config := v1.Config{Labels: map[string]string{}}
	flags := flag.NewFlagSet("load", flag.ContinueOnError)
	dir := flags.String("dir", "", "folder that becomes the image's root")
	entrypoint := flags.String("entrypoint", "", "program to run")
	flags.StringVar(&config.User, "user", "", "UID:GID")
	flags.Func("label", "KEY=VALUE, may be repeated", func(s string) error {
		k, v, ok := strings.Cut(s, "=")
		if !ok {
			return fmt.Errorf("%q is not KEY=VALUE", s)
		}
		config.Labels[k] = v
		return nil
	})
	rest, err := parse(flags, args)
	if err != nil {
		return err
	}
	if *entrypoint != "" {
		config.Entrypoint = []string{*entrypoint}
	}
	var img v1.Image
	switch {
	case len(rest) == 2 && *dir == "":
		img, err = tarball.ImageFromPath(rest[1], nil)
	case len(rest) == 1 && *dir != "":
		img, err = imageOf(config, *dir)
	default:
		return fmt.Errorf("load takes a name and either an archive or --dir: %w", errUsage)
	}
	if err != nil {
		return err
	}
	return d.load(rest[0], img)
}

func (d dirs) load(ref string, img v1.Image) error {
	if _, ok := d.running(firstNode); !ok {
		return errNotRunning
	}
	if err := push(ref, img); err != nil {
		return err
	}
	digest, err := img.Digest()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(os.Stderr, "%s is loaded, %s\n", ref, digest)
	return err
}
