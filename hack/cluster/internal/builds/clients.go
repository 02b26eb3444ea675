package builds

import (
	"path/filepath"
	"runtime"

	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/cache"
	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/debian"
)

// The tests ask these clients of memcached which server has a key, and which servers there are. Those in Go are built
// here; Python comes from Debian.
const (
	pythonSuite   = "trixie"
	python        = "python3.13"
	clientsLayout = "1"
)

var pythonPackages = []string{python + "-minimal", "python3-pymemcache", "python3-pylibmc"}

// goClients are programs in folders of these names.
var goClients = []string{"dskit", "thanos"}

// Clients returns a folder with these programs:
//
//	dskit     prints what github.com/grafana/dskit picks (see the folder dskit)
//	thanos    prints what github.com/thanos-io/thanos discovers (see the folder thanos)
//	python3   a Python that has pymemcache, and pylibmc over libmemcached
func Clients(d cache.Dirs, source string) (string, error) {
	inputs := append([]string{runtime.GOARCH, clientsLayout, pythonSuite}, pythonPackages...)
	for _, name := range goClients {
		folder := filepath.Join(source, name)
		version, err := goVersion(folder)
		if err != nil {
			return "", err
		}
		k, err := cache.SourceKey(folder, version)
		if err != nil {
			return "", err
		}
		inputs = append(inputs, k)
	}
	what := "building dskit and Thanos' client, and fetching pymemcache and pylibmc from Debian (once)"
	return d.Build("clients", cache.Key(inputs...), what, func(dir, final string) error {
		for _, name := range goClients {
			if err := goBuild(filepath.Join(source, name), filepath.Join(dir, name), ".", append(leanFlags, "-ldflags=-s -w")...); err != nil {
				return err
			}
		}
		root, err := debian.Fetch(pythonSuite, dir, pythonPackages...)
		if err != nil {
			return err
		}
		words := append([]string{
			"env", "PYTHONDONTWRITEBYTECODE=1",
			"PYTHONHOME=" + filepath.Join(root, "usr"), "PYTHONPATH=" + filepath.Join(root, "usr/lib/python3/dist-packages"),
		}, debian.Command(root, "usr/bin/"+python)...)
		_, err = debian.Install(dir, final, "python3", words, "-c", "import pylibmc, pymemcache")
		return err
	})
}
