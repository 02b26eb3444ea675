package main

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	switch {
	case len(args) > 0 && args[0] == "build":
		return build(args[1:])
	case len(args) == 3 && args[0] == "push":
		return push(args[1], args[2])
	}
	return fmt.Errorf("use: image build -f DOCKERFILE -t REFERENCE -o FILE.tar CONTEXT, or image push FILE.tar REFERENCE")
}

func build(args []string) error {
	flags := flag.NewFlagSet("build", flag.ExitOnError)
	dockerfile := flags.String("f", "Dockerfile", "the `DOCKERFILE`")
	reference := flags.String("t", "", "the image's `REFERENCE`")
	out := flags.String("o", "", "write the image to this `FILE`, as docker save does")
	arguments := map[string]string{}
	flags.Func("build-arg", "`NAME=VALUE` of an ARG", func(value string) error {
		name, value, found := strings.Cut(value, "=")
		if !found {
			return fmt.Errorf("%q is not NAME=VALUE", name)
		}
		arguments[name] = value
		return nil
	})
	stages := map[string]fs.FS{}
	flags.Func("stage", "`NAME=FOLDER` that holds what this earlier stage makes, at the same paths", func(value string) error {
		name, folder, found := strings.Cut(value, "=")
		if !found {
			return fmt.Errorf("%q is not NAME=FOLDER", value)
		}
		stages[name] = os.DirFS(folder)
		return nil
	})
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *reference == "" || *out == "" || flags.NArg() != 1 {
		return fmt.Errorf("build needs -t, -o and one folder as the context")
	}
	tag, err := name.NewTag(*reference)
	if err != nil {
		return fmt.Errorf("reading -t: %w", err)
	}
	text, err := os.ReadFile(*dockerfile)
	if err != nil {
		return fmt.Errorf("reading the Dockerfile: %w", err)
	}
	steps, err := parse(string(text), arguments)
	if err != nil {
		return fmt.Errorf("%s: %w", *dockerfile, err)
	}
	image, err := assemble(steps, os.DirFS(flags.Arg(0)), stages)
	if err != nil {
		return fmt.Errorf("%s: %w", *dockerfile, err)
	}
	if err := tarball.WriteToFile(*out, tag, image); err != nil {
		return fmt.Errorf("writing %s: %w", *out, err)
	}
	return nil
}

// push sends an image to its registry with the credentials that docker login or
// podman login stored.
func push(file, reference string) error {
	ref, err := name.ParseReference(reference)
	if err != nil {
		return fmt.Errorf("reading the reference: %w", err)
	}
	image, err := tarball.ImageFromPath(file, nil)
	if err != nil {
		return fmt.Errorf("reading %s (was it built?): %w", file, err)
	}
	if err := remote.Write(ref, image, remote.WithAuthFromKeychain(authn.DefaultKeychain)); err != nil {
		return fmt.Errorf("pushing %s: %w", reference, err)
	}
	return nil
}
