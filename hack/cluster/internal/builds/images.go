package builds

import (
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/cache"
	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/image"
)

// PauseImage keeps the namespaces of every pod.
const PauseImage = "registry.local/pause:1"

// imagesLayout changes with the way the images are built.
const imagesLayout = "3"

// images returns an OCI layout with the images of every cluster: pause, all memcacheds and busybox.
func images(d cache.Dirs) (string, error) {
	memcached, err := Memcached(d)
	if err != nil {
		return "", err
	}
	dir, err := goProgram(d, "pause", "pause", "building pause", "-s -w")
	if err != nil {
		return "", err
	}
	return d.Build("images", cache.Key(imagesLayout, memcached, dir), "making images", func(to string) error {
		all, err := recipes(memcached, filepath.Join(dir, "pause"))
		if err != nil {
			return err
		}
		return image.WriteLayout(to, all...)
	})
}

// recipes returns all images, from the folder of the memcacheds and the program of pause.
func recipes(memcached, pause string) ([]image.Recipe, error) {
	versions, err := MemcachedVersions(memcached)
	if err != nil {
		return nil, err
	}
	const unprivileged = "11211:11211" // memcached's user in its official image
	all := []image.Recipe{
		{Ref: PauseImage, Config: v1.Config{Entrypoint: []string{"/pause"}, User: "65535:65535"}, Files: map[string]string{"pause": pause}},
		{Ref: "docker.io/library/busybox:1", Config: v1.Config{Cmd: []string{"sh"}}, Files: map[string]string{"bin/busybox": filepath.Join(memcached, ".busybox")},
			Links: map[string]string{"bin/sh": "busybox", "bin/cat": "busybox", "bin/ls": "busybox", "bin/nc": "busybox", "bin/nslookup": "busybox", "bin/sleep": "busybox", "bin/wget": "busybox"}},
	}
	for _, v := range versions {
		all = append(all, image.Recipe{
			Ref:    "docker.io/library/memcached:" + v,
			Config: v1.Config{Entrypoint: []string{"memcached"}, User: unprivileged, ExposedPorts: map[string]struct{}{"11211/tcp": {}}},
			Root:   filepath.Join(memcached, v, "root"),
		})
	}
	return all, nil
}
