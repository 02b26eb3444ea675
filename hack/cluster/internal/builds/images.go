package builds

import (
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/cache"
	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/image"
)

// PauseImage keeps the namespaces of every pod.
const PauseImage = "registry.local/pause:2"

// imagesLayout changes with the way the images are built.
const imagesLayout = "4"

// images returns an OCI layout with the images of every cluster: pause, all memcacheds and busybox.
func images(d cache.Dirs) (string, error) {
	memcached, err := Memcached(d)
	if err != nil {
		return "", err
	}
	return d.Build("images", cache.Key(imagesLayout, memcached), "making images", func(to string) error {
		busybox := map[string]string{"bin/busybox": filepath.Join(memcached, ".busybox")}
		all := []image.Recipe{
			{Ref: PauseImage, Config: v1.Config{Entrypoint: []string{"/bin/busybox", "sleep", "infinity"}, User: "65535:65535"}, Files: busybox},
			{Ref: "docker.io/library/busybox:1", Config: v1.Config{Cmd: []string{"sh"}}, Files: busybox, Links: map[string]string{
				"bin/sh": "busybox", "bin/cat": "busybox", "bin/ls": "busybox", "bin/nc": "busybox", "bin/nslookup": "busybox", "bin/sleep": "busybox", "bin/wget": "busybox"}},
		}
		versions, err := MemcachedVersions(memcached)
		if err != nil {
			return err
		}
		for _, v := range versions {
			all = append(all, image.Recipe{
				Ref: "docker.io/library/memcached:" + v,
				// The user is memcached's in its official image.
				Config:  v1.Config{Entrypoint: []string{"memcached"}, User: "11211:11211", ExposedPorts: map[string]struct{}{"11211/tcp": {}}},
				Folders: []string{filepath.Join(memcached, v, "root")},
			})
		}
		return image.WriteLayout(to, all...)
	})
}
