package builds

import (
	"fmt"
	"go/version"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/cache"
	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/debian"
)

// Prometheus returns a folder with Debian's prometheus, which reads our metrics, and promtool, which checks our rules.
func Prometheus(d cache.Dirs) (string, error) {
	return packaged(d, "prometheus", "prometheus", "promtool")
}

// registry returns a folder with a registry of images.
func registry(d cache.Dirs) (string, error) {
	return packaged(d, "docker-registry", "docker-registry")
}

// packaged returns a folder with programs of a package of Debian.
func packaged(d cache.Dirs, pkg string, programs ...string) (string, error) {
	const suite, layout = "bookworm", "1"
	what := "fetching " + pkg + " from Debian " + suite + " (once)"
	return d.Build(pkg, cache.Key(suite, layout, runtime.GOARCH), what, func(dir string) error {
		err := debian.Fetch(suite, dir, pkg)
		for _, program := range programs {
			if err == nil {
				_, err = debian.Install(dir, program, program, "", "--version")
			}
		}
		return err
	})
}

// Clients returns a folder with clients of memcached, which tests ask which server has a key, and which servers there are:
//
//	dskit     prints what github.com/grafana/dskit picks (see the folder dskit)
//	thanos    prints what github.com/thanos-io/thanos discovers (see the folder thanos)
//	python3   a Python that has pymemcache, and pylibmc over libmemcached
func Clients(d cache.Dirs) (string, error) {
	const suite, python, layout = "trixie", "python3.13", "1"
	packages := []string{python + "-minimal", "python3-pymemcache", "python3-pylibmc"}
	inputs := append([]string{runtime.GOARCH, layout, suite}, packages...)
	programs := []string{"dskit", "thanos"}
	for _, name := range programs {
		k, err := sourceKey(filepath.Join(d.Source, name))
		if err != nil {
			return "", err
		}
		inputs = append(inputs, k)
	}
	what := "building dskit and Thanos' client, and fetching pymemcache and pylibmc from Debian (once)"
	return d.Build("clients", cache.Key(inputs...), what, func(dir string) error {
		for _, name := range programs {
			if err := goBuild(filepath.Join(d.Source, name), filepath.Join(dir, name), ".", append(leanFlags, "-ldflags=-s -w")...); err != nil {
				return err
			}
		}
		if err := debian.Fetch(suite, dir, packages...); err != nil {
			return err
		}
		setup := `export PYTHONDONTWRITEBYTECODE=1 PYTHONHOME="$root/usr" PYTHONPATH="$root/usr/lib/python3/dist-packages"`
		_, err := debian.Install(dir, "python3", python, setup, "-c", "import pylibmc, pymemcache")
		return err
	})
}

// suites are the Debian suites with memcached, oldest first, and the versions that they have. The stable ones keep theirs, which
// tests name. The newest version is what sid has: tests take it from MEMCACHED_NEWEST or MEMCACHED_DIR.
var suites = []struct{ name, version string }{{"bookworm", "1.6.18"}, {"trixie", "1.6.38"}, {"sid", ""}}

// Memcached returns a folder with one folder a version:
//
//	1.6.38/memcached   runs that version on this machine
//	1.6.38/root/       the program and its libraries, as they stand in an image
//	.busybox           a static one, for a shell in pods
func Memcached(d cache.Dirs) (string, error) {
	var inputs []string
	for _, s := range suites {
		inputs = append(inputs, s.name)
	}
	what := "fetching memcached from Debian " + strings.Join(inputs, ", ") + " (once)"
	// memcached, the SASL mechanisms that it loads, and a shell for pods
	packages := []string{"memcached", "libsasl2-modules", "busybox-static"}
	const layout = "3" // changes with the layout of the folders
	inputs = append(append(inputs, packages...), layout, runtime.GOARCH)
	return d.Build("memcached", cache.Key(inputs...), what, func(dir string) error {
		for _, s := range suites {
			if err := fetchMemcached(dir, s.name, s.version, packages); err != nil {
				return err
			}
		}
		return nil
	})
}

func fetchMemcached(dir, suite, want string, packages []string) error {
	work := filepath.Join(dir, "."+suite)
	if err := debian.Fetch(suite, work, packages...); err != nil {
		return err
	}
	out, err := debian.Install(work, "memcached", "memcached", "", "-V")
	if err != nil {
		return err
	}
	version := versionPattern.FindString(out)
	if want != "" && version != want {
		return fmt.Errorf("the Debian mirror has memcached %s in %s, and the tests need %s: use another mirror, or change the suites and the tests that name the version",
			version, suite, want)
	}
	if err := os.Rename(filepath.Join(work, "root/bin/busybox"), filepath.Join(dir, ".busybox")); err != nil {
		return err
	}
	if err := os.Rename(work, filepath.Join(dir, version)); err != nil {
		return fmt.Errorf("%w: if an older suite has the same version, use a mirror with a newer %s", err, suite)
	}
	return nil
}

var versionPattern = regexp.MustCompile(`\b\d+\.\d+\.\d+\b`)

// MemcachedVersions returns the versions in a folder, oldest first.
func MemcachedVersions(dir string) ([]string, error) {
	programs, err := filepath.Glob(filepath.Join(dir, "*", "memcached"))
	var versions []string
	for _, program := range programs {
		versions = append(versions, filepath.Base(filepath.Dir(program)))
	}
	slices.SortFunc(versions, func(a, b string) int { return version.Compare("go"+a, "go"+b) }) // has the same form as Go's
	return versions, err
}

// NewestMemcached returns the newest version.
func NewestMemcached(d cache.Dirs) (string, error) {
	dir, err := Memcached(d)
	if err != nil {
		return "", err
	}
	versions, err := MemcachedVersions(dir)
	return versions[len(versions)-1], err
}
