package main

import (
	"fmt"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
)

// pauseImage holds the namespaces of every pod.
const pauseImage = "registry.local/pause:1"

// refAnnotation keeps an image's name in an OCI layout.
const refAnnotation = "org.opencontainers.image.ref.name"

// imagesLayout changes when the images below are made differently.
const imagesLayout = "1"

// images returns an OCI layout with the images that every cluster has: pause,
// each memcached, a busybox, a server of S3, and two that stand for a person's
// mistake, one that is not memcached and one that is empty.
func (d dirs) images(source, memcached, s3 string) (string, error) {
	programs := map[string]string{"s3": s3}
	k := []string{imagesLayout, memcached, s3}
	for _, name := range []string{"pause", "notmemcached"} {
		dir, err := d.buildGo(name, filepath.Join(source, name), "building "+name, "-s -w")
		if err != nil {
			return "", err
		}
		programs[name] = filepath.Join(dir, name)
		k = append(k, dir)
	}
	return d.build("images", key(k...), "making images", func(dir, _ string) error {
		l, err := layout.Write(dir, empty.Index)
		if err != nil {
			return err
		}
		all, err := recipes(memcached, programs)
		if err != nil {
			return err
		}
		for _, r := range all {
			img, err := r.make()
			if err != nil {
				return fmt.Errorf("%s: %w", r.ref, err)
			}
			if err := l.AppendImage(img, layout.WithAnnotations(map[string]string{refAnnotation: r.ref})); err != nil {
				return err
			}
		}
		return nil
	})
}

// recipe is an image to make: files (place in the image → file here) over a
// folder or over nothing.
type recipe struct {
	ref    string
	config v1.Config
	files  map[string]string
	links  map[string]string // place in the image → what it points to
	root   string
}

// recipes of all images, from the folder of the memcacheds and other programs by name.
func recipes(memcached string, programs map[string]string) ([]recipe, error) {
	versions, err := memcachedVersions(memcached)
	if err != nil {
		return nil, err
	}
	const unprivileged = "11211:11211" // memcached's user in its official image
	all := []recipe{
		{ref: pauseImage, config: v1.Config{Entrypoint: []string{"/pause"}, User: "65535:65535"}, files: map[string]string{"pause": programs["pause"]}},
		{ref: "docker.io/library/empty:1", config: v1.Config{Cmd: []string{"memcached"}, User: unprivileged}},
		{ref: "docker.io/library/not-memcached:1", config: v1.Config{Entrypoint: []string{"memcached"}, User: unprivileged},
			files: map[string]string{"usr/bin/memcached": programs["notmemcached"]}},
		{ref: "docker.io/library/s3-server:1", config: v1.Config{Entrypoint: []string{"/s3"}, User: "65534:65534"},
			files: map[string]string{"s3": programs["s3"]}},
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
		if err := copyFile(from, filepath.Join(work, to)); err != nil {
			return nil, err
		}
	}
	for name, target := range r.links {
		if err := os.Symlink(target, filepath.Join(work, name)); err != nil {
			return nil, err
		}
	}
	if r.root == "" {
		return imageOf(r.config, work)
	}
	return imageOf(r.config, work, r.root)
}

// baseFiles writes what every image has: names for the users that people and
// Kubernetes choose, and a /tmp.
func baseFiles(root string) error {
	files := map[string]string{
		"etc/passwd": "root:x:0:0:root:/root:/sbin/nologin\nmemcache:x:11211:11211::/:/sbin/nologin\nnobody:x:65534:65534::/:/sbin/nologin\nnonroot:x:65532:65532::/:/sbin/nologin\n",
		"etc/group":  "root:x:0:\nmemcache:x:11211:\nnogroup:x:65534:\nnonroot:x:65532:\n",
	}
	for name, content := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			return err
		}
	}
	tmp := filepath.Join(root, "tmp")
	if err := os.MkdirAll(tmp, 0o755); err != nil {
		return err
	}
	return os.Chmod(tmp, os.ModeSticky|0o777)
}
