package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/cache"
	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/cluster"
	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/host"
	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/image"
	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/network"
	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/process"
	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/registry"
)

// loadCommand pushes an image to the cluster's registry: an archive, or a folder as its only layer.
func loadCommand(d cache.Dirs, args []string) error {
	config := v1.Config{Labels: map[string]string{}}
	flags := flag.NewFlagSet("load", flag.ContinueOnError)
	dir := flags.String("dir", "", "folder that becomes the image's root")
	flags.Func("label", "KEY=VALUE, may be repeated", addTo(config.Labels))
	rest, err := parse(flags, args)
	if err != nil {
		return err
	}
	var img v1.Image
	switch {
	case len(rest) == 2 && *dir == "":
		img, err = tarball.ImageFromPath(rest[1], nil)
	case len(rest) == 1 && *dir != "":
		img, err = image.FromFolders(config, *dir)
	default:
		return fmt.Errorf("load takes a name and either an archive or --dir: %w", errUsage)
	}
	if err != nil {
		return err
	}
	if _, ok := process.Alive(d, network.First.Name); !ok {
		return cluster.ErrNotRunning
	}
	if err := registry.Push(rest[0], img); err != nil {
		return err
	}
	digest, err := img.Digest()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(os.Stderr, "loaded %s, %s\n", rest[0], digest)
	return err
}

// buildImage builds an image into an archive. It needs no cluster.
func buildImage(_ cache.Dirs, args []string) error {
	source := image.Source{Arguments: map[string]string{}}
	flags := flag.NewFlagSet("image build", flag.ContinueOnError)
	flags.StringVar(&source.Dockerfile, "f", "", "Dockerfile, by default the one in the context")
	reference := flags.String("t", "", "the image's name")
	archive := flags.String("o", "", "archive to write, as docker save does")
	localBase := flags.Bool("local-base", false, "replace the base image by names of users, a /tmp and this machine's certificates")
	flags.Func("build-arg", "NAME=VALUE of an ARG, may be repeated", addTo(source.Arguments))
	rest, err := parse(flags, args)
	if err != nil {
		return err
	}
	if *reference == "" || *archive == "" || len(rest) != 1 {
		return fmt.Errorf("image build takes -t, -o and one folder as the context: %w", errUsage)
	}
	tag, err := name.NewTag(*reference)
	if err != nil {
		return err
	}
	if source.Context = rest[0]; source.Dockerfile == "" {
		source.Dockerfile = filepath.Join(source.Context, "Dockerfile")
	}
	if *localBase {
		if source.LocalBase, err = os.MkdirTemp("", "base"); err != nil {
			return err
		}
		defer os.RemoveAll(source.LocalBase)
		if err := image.BaseFiles(source.LocalBase); err != nil {
			return err
		}
		const certificates = "/etc/ssl/certs/ca-certificates.crt"
		if host.Exists(certificates) {
			if err := image.CopyFile(certificates, filepath.Join(source.LocalBase, certificates)); err != nil {
				return err
			}
		}
	}
	return host.Step("building "+*reference, func() error {
		img, err := image.Build(source)
		if err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Dir(*archive), 0o755); err != nil {
			return err
		}
		return tarball.WriteToFile(*archive, tag, img)
	})
}

// pushArchive pushes with the credentials that docker login or podman login stored.
func pushArchive(_ cache.Dirs, args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("image push takes an archive and a name: %w", errUsage)
	}
	archive, reference := args[0], args[1]
	ref, err := name.ParseReference(reference)
	if err != nil {
		return err
	}
	img, err := tarball.ImageFromPath(archive, nil)
	if err != nil {
		return fmt.Errorf("reading %s, which make must build first: %w", archive, err)
	}
	if err := remote.Write(ref, img, remote.WithAuthFromKeychain(authn.DefaultKeychain)); err != nil {
		return fmt.Errorf("pushing %s: %w", reference, err)
	}
	return nil
}

// addTo parses flags of the form KEY=VALUE.
func addTo(values map[string]string) func(string) error {
	return func(s string) error {
		key, value, ok := strings.Cut(s, "=")
		if !ok {
			return fmt.Errorf("%q is not KEY=VALUE", s)
		}
		values[key] = value
		return nil
	}
}
