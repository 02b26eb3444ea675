package builds

import (
	"runtime"

	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/cache"
	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/debian"
)

// Prometheus returns a folder with Debian's prometheus, which reads our metrics, and promtool, which checks our rules.
func Prometheus(d cache.Dirs) (string, error) {
	return packaged(d, "prometheus", "bookworm", "prometheus", "promtool")
}

// registry returns a folder with a registry of images.
func registry(d cache.Dirs) (string, error) {
	return packaged(d, "docker-registry", "bookworm", "docker-registry")
}

// packaged returns a folder with programs of a package of a Debian suite.
func packaged(d cache.Dirs, pkg, suite string, programs ...string) (string, error) {
	const layout = "1"
	what := "fetching " + pkg + " from Debian " + suite + " (once)"
	return d.Build(pkg, cache.Key(suite, layout, runtime.GOARCH), what, func(dir, final string) error {
		root, err := debian.Fetch(suite, dir, pkg)
		for _, program := range programs {
			if err == nil {
				_, err = debian.Install(dir, final, program, debian.Command(root, "usr/bin/"+program), "--version")
			}
		}
		return err
	})
}
