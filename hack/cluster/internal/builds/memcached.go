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
	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/host"
	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/image"
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

const busyboxSuite = "trixie"

// memcachedPackages are memcached and the SASL mechanisms that it loads.
var memcachedPackages = []string{"memcached", "libsasl2-modules"}

// memcachedLayout changes with the layout of the folders below.
const memcachedLayout = "2"

// Memcached returns a folder with one folder a version:
//
//	1.6.38/memcached   runs that version on this machine
//	1.6.38/root/       the program and its libraries alone, as they stand in an image
//	.busybox           a static one, for a shell in pods
func Memcached(d cache.Dirs) (string, error) {
	m, ok := debian.Machines[runtime.GOARCH]
	if !ok {
		return "", fmt.Errorf("memcached from Debian for %s: not known here", runtime.GOARCH)
	}
	var names []string
	for _, s := range memcachedSuites {
		names = append(names, s.name)
	}
	k := cache.Key(slices.Concat(names, memcachedPackages, []string{memcachedLayout, runtime.GOARCH})...)
	what := "fetching memcached from Debian " + strings.Join(names, ", ") + " (once)"
	return d.Build("memcached", k, what, func(dir, final string) error {
		for _, s := range memcachedSuites {
			if err := fetchMemcached(m, s, dir, final); err != nil {
				return fmt.Errorf("memcached of %s: %w", s.name, err)
			}
		}
		return nil
	})
}

func fetchMemcached(m debian.Machine, from memcachedSuite, dir, final string) error {
	work := filepath.Join(dir, "."+from.name)
	defer os.RemoveAll(work)
	s, err := debian.Open(from.name, filepath.Join(work, "apt"))
	if err != nil {
		return err
	}
	full, lean := filepath.Join(work, "full"), filepath.Join(work, "lean")
	if err := s.Unpack(full, memcachedPackages...); err != nil {
		return err
	}
	if err := strip(m, full, lean); err != nil {
		return err
	}
	out, err := host.Output(m.Command(lean, filepath.Join(lean, "usr/bin/memcached"), "-V"))
	if err != nil {
		return err
	}
	version, err := parseVersion(out)
	if err != nil {
		return err
	}
	earlier, _ := MemcachedVersions(dir) // none before the first
	if err := from.check(version, earlier); err != nil {
		return err
	}
	to := filepath.Join(dir, version)
	if err := os.Mkdir(to, 0o755); err != nil {
		return err
	}
	if err := os.Rename(lean, filepath.Join(to, "root")); err != nil {
		return err
	}
	root := filepath.Join(final, version, "root")
	script := debian.Wrapper(m.Command(root, filepath.Join(root, "usr/bin/memcached")).Args)
	if err := os.WriteFile(filepath.Join(to, "memcached"), []byte(script), 0o755); err != nil {
		return err
	}
	if from.name != busyboxSuite {
		return nil
	}
	if err := s.Unpack(filepath.Join(work, "busybox"), "busybox-static"); err != nil {
		return err
	}
	return os.Rename(filepath.Join(work, "busybox/usr/bin/busybox"), filepath.Join(dir, ".busybox"))
}

// strip copies what memcached needs from unpacked packages: the program, the linker, the SASL plugins and the
// libraries that the linker lists, all in /usr/lib.
func strip(m debian.Machine, from, to string) error {
	libraries := filepath.Join("usr/lib", m.Triplet)
	plugins, err := filepath.Glob(filepath.Join(from, libraries, "sasl2", "*.so"))
	if err != nil {
		return err
	}
	memcached := filepath.Join(from, "usr/bin/memcached")
	places := map[string]string{
		memcached:            "usr/bin/memcached",
		m.Command(from).Path: m.Linker,
	}
	for _, object := range append(plugins, memcached) {
		out, err := host.Output(m.Command(from, "--list", object))
		if err != nil {
			return err
		}
		for _, library := range listedLibraries(out) {
			if library == "/"+m.Linker {
				continue // the name that is built into every program
			}
			if !strings.HasPrefix(library, from+"/") {
				return fmt.Errorf("%s needs %s, which is not among the packages", filepath.Base(object), library)
			}
			if _, placed := places[library]; !placed {
				places[library] = filepath.Join(libraries, filepath.Base(library))
			}
		}
	}
	for _, p := range plugins {
		places[p] = filepath.Join(libraries, "sasl2", filepath.Base(p))
	}
	for file, place := range places {
		if err := image.CopyFile(file, filepath.Join(to, place)); err != nil {
			return err
		}
	}
	return nil
}

// listedLibraries returns the paths in lines such as "libevent-2.1.so.7 => /usr/lib/libevent-2.1.so.7 (0x00007f…)".
func listedLibraries(out string) []string {
	var paths []string
	for word := range strings.FieldsSeq(out) {
		if strings.HasPrefix(word, "/") {
			paths = append(paths, word)
		}
	}
	return paths
}

var versionPattern = regexp.MustCompile(`\b(\d+\.\d+\.\d+)\b`)

func parseVersion(out string) (string, error) {
	v := versionPattern.FindString(out)
	if v == "" {
		return "", fmt.Errorf("memcached -V said %q, which holds no version", out)
	}
	return v, nil
}

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
