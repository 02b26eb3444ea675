package process

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestSearchBinaryPrefersPathOverCommonDirectories(t *testing.T) {
	for name, c := range map[string]struct {
		path, executables string
		want              string
	}{
		"in $PATH":                     {"/a:/b", "/b/memcached", "/b/memcached"},
		"the first in $PATH":           {"/usr/bin:/b", "/b/memcached /usr/bin/memcached", "/usr/bin/memcached"},
		"in the official image":        {"", "/usr/local/bin/memcached", "/usr/local/bin/memcached"},
		"in Bitnami's image":           {"/usr/bin", "/opt/bitnami/memcached/bin/memcached", "/opt/bitnami/memcached/bin/memcached"},
		"not in the working directory": {".::relative", "memcached ./memcached relative/memcached", ""},
		"nowhere":                      {"/a", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			executables := strings.Fields(c.executables)
			got, err := searchBinary(c.path, func(path string) bool {
				return slices.Contains(executables, path)
			})
			if got != c.want || (err == nil) != (c.want != "") {
				t.Errorf("got %q, %v", got, err)
			}
			if err != nil && !strings.HasPrefix(err.Error(), "no memcached in this image: looked in ") {
				t.Error(err)
			}
		})
	}
}

// program writes a shell script that stands for the memcached of an image. A child process writes it: what other tests
// fork would inherit this process's open file until its exec, and the kernel executes no file that is open for writing.
func program(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "memcached")
	install := exec.Command("install", "-m", "755", "/dev/stdin", path)
	install.Stdin = strings.NewReader("#!/bin/sh\n" + text + "\n")
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("%s: %s", err, out)
	}
	return path
}

func TestVersionIsWhatMemcachedPrints(t *testing.T) {
	for name, c := range map[string]struct{ text, version, err string }{
		"memcached":                         {"echo memcached 1.6.45", "1.6.45", ""},
		"memcached with a child that stays": {"sleep 100 &\necho memcached 1.6.45", "1.6.45", ""},
		"a version that isn't released":     {"echo memcached 1.6.45_1-g2", "1.6.45_1-g2", ""},
		"two numbers":                       {"echo memcached 1.6", "", `is not memcached: -V printed "memcached 1.6"`},
		"no numbers":                        {"echo memcached 1.x.2", "", `is not memcached: -V printed "memcached 1.x.2"`},
		"more words":                        {"echo memcached 1.6.45 by us", "", `is not memcached: -V printed "memcached 1.6.45 by us"`},
		"another program":                   {"echo Redis server v=7.2.4", "", `is not memcached: -V printed "Redis server v=7.2.4"`},
		"a missing library":                 {"echo no such library >&2; exit 127", "", `is not memcached: -V printed "no such library": exit status 127`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			version, err := readVersion(program(t, c.text), VersionTimeout)
			if version != c.version || c.err == "" && err != nil || c.err != "" && (err == nil || !strings.HasSuffix(err.Error(), c.err)) || IsSlow(err) {
				t.Errorf("version %q, %v; want %q, %q", version, err, c.version, c.err)
			}
		})
	}
}

// The kernel kills it for lack of memory.
func TestProgramThatIsKilledIsNotRejected(t *testing.T) {
	t.Parallel()
	_, err := readVersion(program(t, "kill -9 $$"), VersionTimeout)
	if !IsSlow(err) || !strings.HasSuffix(err.Error(), "memcached was killed and did not print its version: the container or the node is out of memory") {
		t.Errorf("error %v", err)
	}
}

// A node that is overloaded doesn't start a program in time, and the image may be good.
func TestProgramThatStallsIsNotRejected(t *testing.T) {
	for name, text := range map[string]string{
		"it prints nothing":            "exec sleep 100",
		"it prints a part":             "printf 'memcached 1.6'; exec sleep 100",
		"its child keeps its output":   "sleep 100 &\nsleep 100",
		"it prints an unexpected line": "echo hello; exec sleep 100",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := readVersion(program(t, text), 50*time.Millisecond)
			if !IsSlow(err) || !strings.HasSuffix(err.Error(), "did not print its version within 50ms: the node is overloaded, or memcached hangs") {
				t.Errorf("error %v", err)
			}
		})
	}
}
