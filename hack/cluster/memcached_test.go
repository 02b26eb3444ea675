package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestMemcachedVersions(t *testing.T) {
	dir := t.TempDir()
	for _, v := range []string{"1.6.9", "1.6.45", "1.6.18", "1.10.0"} {
		write(t, dir, filepath.Join(v, "memcached"), "")
	}
	write(t, dir, ".busybox", "")
	got, err := memcachedVersions(dir)
	if want := []string{"1.6.9", "1.6.18", "1.6.45", "1.10.0"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
	if got, err := memcachedVersions(t.TempDir()); err == nil {
		t.Errorf("an empty folder gave %v and no error", got)
	}
}

func TestVersionsOfTheSuitesAreChecked(t *testing.T) {
	for name, c := range map[string]struct {
		suite   memcachedSuite
		version string
		want    string
	}{
		"the pinned version":                {memcachedSuite{"trixie", "1.6.38"}, "1.6.38", ""},
		"another version of a stable suite": {memcachedSuite{"trixie", "1.6.38"}, "1.6.39", "memcached 1.6.39 in trixie, and the tests need 1.6.38"},
		"the newest version":                {memcachedSuite{"sid", ""}, "1.6.99", ""},
		"no newer version":                  {memcachedSuite{"sid", ""}, "1.6.18", "use a mirror with a newer sid"},
	} {
		err := c.suite.check(c.version, []string{"1.6.18"})
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestParseVersion(t *testing.T) {
	if v, err := parseVersion("memcached 1.6.38\n"); err != nil || v != "1.6.38" {
		t.Errorf("got %q, %v", v, err)
	}
	if v, err := parseVersion("no version here"); err == nil {
		t.Errorf("got %q and no error", v)
	}
}

func TestWrapperBecomesTheProgram(t *testing.T) {
	script := filepath.Join(t.TempDir(), "it's a script")
	if err := os.WriteFile(script, []byte(wrapper([]string{"/bin/sh", "-c", `echo $$ "$@"`, "it's"})), 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(script, "a b", "$c")
	out, err := output(cmd)
	if err != nil {
		t.Fatal(err)
	}
	pid, words, _ := strings.Cut(strings.TrimSpace(out), " ")
	if words != "a b $c" {
		t.Errorf("the program got %q", words)
	}
	if want := cmd.Process.Pid; pid != strconv.Itoa(want) {
		t.Errorf("the program is process %s, and the wrapper was %d", pid, want)
	}
}

func TestListedLibraries(t *testing.T) {
	got := listedLibraries("\tlinux-vdso.so.1 (0x00007ffd)\n\tlibevent-2.1.so.7 => /root/usr/lib/libevent-2.1.so.7 (0x00007f)\n\t/lib64/ld-linux-x86-64.so.2 (0x00007f)\n")
	if want := []string{"/root/usr/lib/libevent-2.1.so.7", "/lib64/ld-linux-x86-64.so.2"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestLibrariesAnd(t *testing.T) {
	uris := `Reading package lists...
'http://deb.debian.org/a/adduser_3_all.deb' adduser_3_all.deb 1 SHA256:0
'http://deb.debian.org/l/libc6_2_amd64.deb' libc6_2_amd64.deb 1 SHA256:0
'http://deb.debian.org/l/libperl5_1_amd64.deb' libperl5_1_amd64.deb 1 SHA256:0
'http://deb.debian.org/z/zlib1g_1_amd64.deb' zlib1g_1%3a1_amd64.deb 1 SHA256:0
'http://deb.debian.org/m/memcached_1_amd64.deb' memcached_1_amd64.deb 1 SHA256:0
`
	got := librariesAnd([]string{"memcached"}, uris)
	if want := []string{"memcached", "libc6", "zlib1g"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestPickMirror(t *testing.T) {
	for addresses, want := range map[string]string{
		"https://packages.example.com/apt\nhttp://mirror.example.com/debian-security/\nhttp://mirror.example.com/debian/\n": "http://mirror.example.com/debian",
		"https://packages.example.com/apt\n": "http://deb.debian.org/debian",
		"":                                   "http://deb.debian.org/debian",
	} {
		if got := pickMirror(addresses); got != want {
			t.Errorf("pickMirror(%q) = %s, want %s", addresses, got, want)
		}
	}
}
