// Package debian unpacks packages of Debian and runs their programs, whatever the machine has.
package debian

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/host"
)

// Fetch unpacks packages of a suite, with the libraries that they depend on, into dir/root. It doesn't run their scripts, and
// omits their documents. Its files of APT are separate from the machine's own.
func Fetch(suite, dir string, packages ...string) error {
	s := apt{filepath.Join(dir, ".apt")}
	defer os.RemoveAll(s.dir)
	if err := s.open(suite); err != nil {
		return fmt.Errorf("reading the lists of Debian %s: %w", suite, err)
	}
	root := filepath.Join(dir, "root")
	if err := s.unpack(root, packages); err != nil {
		return fmt.Errorf("%s of Debian %s: %w", packages[0], suite, err)
	}
	for _, name := range []string{"bin", "lib", "lib64"} { // since Debian 13 another package has these links
		if place := filepath.Join(root, name); !host.Exists(place) && host.Exists(filepath.Join(root, "usr", name)) {
			if err := os.Symlink("usr/"+name, place); err != nil {
				return err
			}
		}
	}
	return os.RemoveAll(filepath.Join(root, "usr/share"))
}

// Install writes a script that runs usr/bin/program of dir/root with the linker and the libraries there, after the commands of
// setup, for which root is that folder. It execs the program, so that process ID and signals are the program's. Install
// tries it with some arguments, and returns what it prints.
func Install(dir, name, program, setup string, trial ...string) (string, error) {
	linkers, _ := filepath.Glob(filepath.Join(dir, "root/lib/*/ld-linux-*"))
	if len(linkers) == 0 {
		return "", fmt.Errorf("the packages of %s have no linker", program)
	}
	linker, libraries := filepath.Base(linkers[0]), filepath.Base(filepath.Dir(linkers[0]))
	script := fmt.Sprintf(`#!/bin/sh
root="${0%%/*}/root"
%[1]s
exec "$root/lib/%[2]s/%[3]s" --library-path "$root/usr/lib/%[2]s:$root/lib/%[2]s" "$root/usr/bin/%[4]s" "$@"
`, setup, libraries, linker, program)
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(script), 0o755); err != nil {
		return "", err
	}
	return host.Output(exec.Command(path, trial...))
}

// apt runs APT with its files in a folder.
type apt struct{ dir string }

// keyring has the keys of Debian's archive, which Ubuntu doesn't have.
const keyring = "/usr/share/keyrings/debian-archive-keyring.gpg"

// open reads the lists of a suite.
func (s apt) open(suite string) error {
	if _, err := exec.LookPath("apt-get"); err != nil {
		return errors.New("memcached, the Python clients, Prometheus and the cluster's registry come from Debian packages, and this machine has no apt-get: use Debian or Ubuntu")
	}
	if !host.Exists(keyring) {
		return errors.New("the keys of Debian's archive are missing: run \"apt-get install debian-archive-keyring\" as root")
	}
	for _, sub := range []string{"state/lists/partial", "cache/archives/partial"} {
		if err := os.MkdirAll(filepath.Join(s.dir, sub), 0o755); err != nil {
			return err
		}
	}
	addresses, err := host.Output(exec.Command("apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages"))
	if err != nil {
		return err
	}
	files := map[string]string{
		"status":       "",
		"sources.list": fmt.Sprintf("deb [signed-by=%s] %s %s main\n", keyring, pickMirror(addresses), suite),
		"apt.conf": fmt.Sprintf(`Dir::State "%[1]s/state";
Dir::State::status "%[1]s/status";
Dir::Cache "%[1]s/cache";
Dir::Etc::SourceList "%[1]s/sources.list";
Dir::Etc::SourceParts "/dev/null";
Dir::Etc::Preferences "/dev/null";
Dir::Etc::PreferencesParts "/dev/null";
APT::Sandbox::User "";
APT::Install-Recommends "false";
Debug::NoLocking "true";
Acquire::Languages "none";
`, s.dir),
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(s.dir, name), []byte(content), 0o644); err != nil {
			return err
		}
	}
	_, err = s.run("update", "-q")
	return err
}

func (s apt) run(args ...string) (string, error) {
	cmd := exec.Command("apt-get", args...)
	cmd.Env = append(os.Environ(), "APT_CONFIG="+filepath.Join(s.dir, "apt.conf"), "LC_ALL=C")
	return host.Output(cmd)
}

// unpack unpacks packages and the libraries that they depend on. The others only serve the packages' scripts.
func (s apt) unpack(root string, packages []string) error {
	if _, err := s.run(append([]string{"install", "-qqy", "--download-only"}, packages...)...); err != nil {
		return err
	}
	debs, err := filepath.Glob(filepath.Join(s.dir, "cache/archives/*.deb"))
	if err != nil {
		return err
	}
	for _, deb := range debs {
		name, _, _ := strings.Cut(filepath.Base(deb), "_")
		if !slices.Contains(packages, name) && (!library.MatchString(name) || scriptLibrary.MatchString(name)) {
			continue
		}
		if err := host.Run("dpkg-deb", "-x", deb, root); err != nil {
			return err
		}
	}
	return nil
}

var (
	library       = regexp.MustCompile(`^(lib|zlib)`)
	scriptLibrary = regexp.MustCompile(`^lib(perl|systemd-shared)`)
)

// pickMirror returns the archive that the machine's own APT uses, by its addresses, or Debian's: the first whose path ends in
// /debian, as security updates and other vendors have their own.
func pickMirror(addresses string) string {
	for line := range strings.Lines(addresses) {
		u, err := url.Parse(strings.TrimSpace(line))
		if err == nil && path.Base(u.Path) == "debian" {
			return strings.TrimRight(u.String(), "/")
		}
	}
	return "http://deb.debian.org/debian"
}
