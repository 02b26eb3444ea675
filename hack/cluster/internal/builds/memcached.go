package builds

import (
	"errors"
	"fmt"
	"go/version"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/cache"
	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/debian"
	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/host"
)

// memcachedSuites are the Debian suites with memcached, oldest first. The stable ones keep their version, which tests
// name. The newest version is what sid has: tests take it from MEMCACHED_NEWEST or MEMCACHED_DIR.
var memcachedSuites = []memcachedSuite{{"bookworm", "1.6.18"}, {"trixie", "1.6.38"}, {"sid", ""}}

type memcachedSuite struct{ name, version string }

// check returns an error if the suite has another version than the tests need, or one that an earlier suite has.
func (s memcachedSuite) check(version string, earlier []string) error {
	if s.version != "" && version != s.version {
		return fmt.Errorf("the Debian mirror has memcached %s in %s, and the tests need %s: use another mirror, or change memcachedSuites and the tests that name the version",
			version, s.name, s.version)
	}
	if slices.Contains(earlier, version) {
		return fmt.Errorf("the Debian mirror has memcached %s in %s and in an older suite: use a mirror with a newer %[2]s", version, s.name)
	}
	return nil
}

// memcachedPackages are memcached, the SASL mechanisms that it loads, and a shell for pods.
var memcachedPackages = []string{"memcached", "libsasl2-modules", "busybox-static"}

// memcachedLayout changes with the layout of the folders below.
const memcachedLayout = "3"

// Memcached returns a folder with one folder a version:
//
//	1.6.38/memcached   runs that version on this machine
//	1.6.38/root/       the program and its libraries, as they stand in an image
//	.busybox           a static one, for a shell in pods
func Memcached(d cache.Dirs) (string, error) {
	var names []string
	for _, s := range memcachedSuites {
		names = append(names, s.name)
	}
	k := cache.Key(slices.Concat(names, memcachedPackages, []string{memcachedLayout, runtime.GOARCH})...)
	what := "fetching memcached from Debian " + strings.Join(names, ", ") + " (once)"
	return d.Build("memcached", k, what, func(dir, final string) error {
		for _, s := range memcachedSuites {
			if err := fetchMemcached(s, dir, final); err != nil {
				return fmt.Errorf("memcached of %s: %w", s.name, err)
			}
		}
		return nil
	})
}

func fetchMemcached(from memcachedSuite, dir, final string) error {
	work := filepath.Join(dir, "."+from.name)
	root, err := debian.Fetch(from.name, work, memcachedPackages...)
	if err != nil {
		return err
	}
	for _, name := range []string{"bin", "lib", "lib64"} { // since Debian 13 another package has these links
		if place := filepath.Join(root, name); !host.Exists(place) && host.Exists(filepath.Join(root, "usr", name)) {
			if err := os.Symlink("usr/"+name, place); err != nil {
				return err
			}
		}
	}
	words := debian.Command(root, "usr/bin/memcached")
	out, err := host.Output(exec.Command(words[0], append(words[1:], "-V")...))
	if err != nil {
		return err
	}
	version := versionPattern.FindString(out)
	if version == "" {
		return fmt.Errorf("memcached -V said %q, which holds no version", out)
	}
	earlier, _ := MemcachedVersions(dir) // none before the first
	if err := from.check(version, earlier); err != nil {
		return err
	}
	if _, err := debian.Install(work, filepath.Join(final, version), "memcached", words, "-V"); err != nil {
		return err
	}
	return errors.Join(
		os.Rename(filepath.Join(root, "bin/busybox"), filepath.Join(dir, ".busybox")),
		os.Rename(work, filepath.Join(dir, version)))
}

var versionPattern = regexp.MustCompile(`\b(\d+\.\d+\.\d+)\b`)

// MemcachedVersions returns the versions in a folder, oldest first.
func MemcachedVersions(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var versions []string
	for _, e := range entries {
		if e.IsDir() && versionPattern.MatchString(e.Name()) {
			versions = append(versions, e.Name())
		}
	}
	if len(versions) == 0 {
		return nil, fmt.Errorf("%s holds no memcached", dir)
	}
	slices.SortFunc(versions, func(a, b string) int { return version.Compare("go"+a, "go"+b) }) // has the same form as Go's
	return versions, nil
}
