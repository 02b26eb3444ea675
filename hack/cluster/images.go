package main

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"

	"github.com/memcached-operator/memcached-operator/hack/cluster/image"
)

// pauseImage keeps the namespaces of every pod.
const pauseImage = "registry.local/pause:1"

const refAnnotation = "org.opencontainers.image.ref.name"

// imagesLayout changes with the way the images are built.
const imagesLayout = "3"

// images returns an OCI layout with the images of every cluster: pause, all memcacheds and busybox.
func (d dirs) images(source, memcached string) (string, error) {
	dir, err := d.buildGo("pause", filepath.Join(source, "pause"), "building pause", "-s -w")
	if err != nil {
		return "", err
	}
	return d.build("images", key(imagesLayout, memcached, dir), "making images", func(to, _ string) error {
		all, err := recipes(memcached, filepath.Join(dir, "pause"))
		if err != nil {
			return err
		}
		return writeLayout(to, all...)
	})
}

// writeLayout writes images into an OCI layout, with their names.
func writeLayout(dir string, recipes ...recipe) error {
	l, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	for _, r := range recipes {
		img, err := r.make()
		if err != nil {
			return fmt.Errorf("%s: %w", r.ref, err)
		}
		if err := l.AppendImage(img, layout.WithAnnotations(map[string]string{refAnnotation: r.ref})); err != nil {
			return err
		}
	}
	return nil
}

// readLayout returns the manifests in an OCI layout.
func readLayout(dir string) (layout.Path, []v1.Descriptor, error) {
	path, err := layout.FromPath(dir)
	if err != nil {
		return "", nil, err
	}
	index, err := path.ImageIndex()
	if err != nil {
		return "", nil, err
	}
	list, err := index.IndexManifest()
	if err != nil {
		return "", nil, err
	}
	return path, list.Manifests, nil
}

// recipe describes an image: files (place in the image → file here) over a folder or over nothing.
type recipe struct {
	ref    string
	config v1.Config
	files  map[string]string
	links  map[string]string // place in the image → what it points to
	root   string
}

// recipes returns all images, from the folder of the memcacheds and the program of pause.
func recipes(memcached, pause string) ([]recipe, error) {
	versions, err := memcachedVersions(memcached)
	if err != nil {
		return nil, err
	}
	const unprivileged = "11211:11211" // memcached's user in its official image
	all := []recipe{
		{ref: pauseImage, config: v1.Config{Entrypoint: []string{"/pause"}, User: "65535:65535"}, files: map[string]string{"pause": pause}},
		{ref: "docker.io/library/busybox:1", config: v1.Config{Cmd: []string{"sh"}}, files: map[string]string{"bin/busybox": filepath.Join(memcached, ".busybox")},
			links: map[string]string{"bin/sh": "busybox", "bin/cat": "busybox", "bin/ls": "busybox", "bin/nc": "busybox", "bin/nslookup": "busybox", "bin/sleep": "busybox", "bin/wget": "busybox"}},
	}
	for _, v := range versions {
		all = append(all, recipe{
			ref:    "docker.io/library/memcached:" + v,
			config: v1.Config{Entrypoint: []string{"memcached"}, User: unprivileged, ExposedPorts: map[string]struct{}{"11211/tcp": {}}},
			root:   filepath.Join(memcached, v, "root"),
		})
	}
	return all, nil
}

func (r recipe) make() (v1.Image, error) {
	work, err := os.MkdirTemp("", "image")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(work)
	if err := baseFiles(work); err != nil {
		return nil, err
	}
	for to, from := range r.files {
		if err := image.CopyFile(from, filepath.Join(work, to)); err != nil {
			return nil, err
		}
	}
	for name, target := range r.links {
		if err := os.Symlink(target, filepath.Join(work, name)); err != nil {
			return nil, err
		}
	}
	folders := []string{work}
	if r.root != "" {
		folders = append(folders, r.root)
	}
	return image.FromFolders(r.config, folders...)
}

//go:embed base
var base embed.FS

// baseFiles writes the files of every image: names of users, and a /tmp.
func baseFiles(root string) error {
	files, err := fs.Sub(base, "base")
	if err != nil {
		return err
	}
	tmp := filepath.Join(root, "tmp")
	return errors.Join(os.CopyFS(root, files), os.Mkdir(tmp, 0o755), os.Chmod(tmp, os.ModeSticky|0o777))
}
