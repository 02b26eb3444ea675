package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/crane"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/spf13/cobra"

	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/cache"
	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/cluster"
	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/host"
	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/image"
)

// load pushes an image to the cluster's registry: an archive, or a folder as its only layer.
func load() *cobra.Command {
	c := &cobra.Command{Use: "load REF TAR | load REF --dir DIR", Short: "push an image archive (docker save), or the contents of a folder, to the cluster's registry as REF"}
	dir := c.Flags().String("dir", "", "folder that becomes the image's root")
	labels := c.Flags().StringToString("label", nil, "KEY=VALUE of the folder's image, may be repeated")
	c.Args = func(c *cobra.Command, args []string) error {
		if *dir != "" {
			return cobra.ExactArgs(1)(c, args)
		}
		return cobra.ExactArgs(2)(c, args)
	}
	c.RunE = inDirs(func(d cache.Dirs, args []string) (err error) {
		if _, err := cluster.Running(d); err != nil {
			return err
		}
		var img v1.Image
		if *dir != "" {
			img, err = image.FromFolders(v1.Config{Labels: *labels}, *dir)
		} else {
			img, err = crane.Load(args[1])
		}
		if err != nil {
			return err
		}
		if err := cluster.Push(args[0], img); err != nil {
			return err
		}
		digest, err := img.Digest()
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(os.Stderr, "loaded %s, %s\n", args[0], digest)
		return err
	})
	return c
}

// buildImage builds an image into an archive. It needs no cluster.
func buildImage() *cobra.Command {
	var source image.Source
	c := &cobra.Command{Use: "build CONTEXT", Short: "build an image of a Dockerfile into an archive", Args: cobra.ExactArgs(1)}
	flags := c.Flags()
	flags.StringVarP(&source.Dockerfile, "file", "f", "", "Dockerfile, by default the one in the context")
	reference := flags.StringP("tag", "t", "", "the image's name")
	archive := flags.StringP("output", "o", "", "archive to write, as docker save does")
	flags.BoolVar(&source.LocalBase, "local-base", false, "replace the base image by names of users, a /tmp and this machine's certificates")
	flags.StringToStringVar(&source.Arguments, "build-arg", nil, "NAME=VALUE of an ARG, may be repeated")
	c.RunE = func(_ *cobra.Command, args []string) error {
		if source.Context = args[0]; source.Dockerfile == "" {
			source.Dockerfile = filepath.Join(source.Context, "Dockerfile")
		}
		return host.Step("building "+*reference, func() error {
			img, err := image.Build(source)
			if err != nil {
				return err
			}
			if err := os.MkdirAll(filepath.Dir(*archive), 0o755); err != nil {
				return err
			}
			return crane.Save(img, *reference, *archive)
		})
	}
	return c
}

// pushImage pushes with the credentials that docker login or podman login stored.
func pushImage() *cobra.Command {
	return &cobra.Command{Use: "push TAR REF", Short: "push an image archive to the registry that REF names", Args: cobra.ExactArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			img, err := crane.Load(args[0])
			if err != nil {
				return fmt.Errorf("reading %s, which make must build first: %w", args[0], err)
			}
			if err := crane.Push(img, args[1]); err != nil {
				return fmt.Errorf("pushing %s: %w", args[1], err)
			}
			return nil
		}}
}
