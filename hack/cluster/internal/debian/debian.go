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

// keyring has the keys of Debian's archive, which Ubuntu doesn't have.
const keyring = "/usr/share/keyrings/debian-archive-keyring.gpg"

// aptConf keeps APT's files in a folder, apart from the machine's own, whose other settings apply, such as a proxy.
const aptConf = `Dir::State "%[1]s/state";
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
`

// Fetch unpacks packages of a suite, with the libraries that they depend on, into dir/root. It doesn't run their scripts, and
// omits their documents.
func Fetch(suite, dir string, packages ...string) error {
	if _, err := exec.LookPath("apt-get"); err != nil {
		return errors.New("memcached, the Python clients, Prometheus and the cluster's registry come from Debian packages, and this machine has no apt-get: use Debian or Ubuntu")
	}
	if !host.Exists(keyring) {
		return errors.New("the keys of Debian's archive are missing: run \"apt-get install debian-archive-keyring\" as root")
	}
	addresses, err := host.Output(exec.Command("apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages"))
	if err != nil {
		return err
	}
	work := filepath.Join(dir, ".apt")
	defer os.RemoveAll(work)
	for _, folder := range []string{"state/lists/partial", "cache/archives/partial"} {
		if err := os.MkdirAll(filepath.Join(work, folder), 0o755); err != nil {
			return err
		}
	}
	for name, content := range map[string]string{
		"status":       "",
		"sources.list": fmt.Sprintf("deb [signed-by=%s] %s %s main\n", keyring, pickMirror(addresses), suite),
		"apt.conf":     fmt.Sprintf(aptConf, work),
	} {
		if err := os.WriteFile(filepath.Join(work, name), []byte(content), 0o644); err != nil {
			return err
		}
	}
	for _, args := range [][]string{{"update", "-q"}, append([]string{"install", "-qqy", "--download-only"}, packages...)} {
		cmd := exec.Command("apt-get", args...)
		cmd.Env = append(os.Environ(), "APT_CONFIG="+filepath.Join(work, "apt.conf"), "LC_ALL=C")
		if _, err := host.Output(cmd); err != nil {
			return fmt.Errorf("%s of Debian %s: %w", packages[0], suite, err)
		}
	}
	return unpack(filepath.Join(work, "cache/archives"), filepath.Join(dir, "root"), packages)
}

var (
	library       = regexp.MustCompile(`^(lib|zlib)`)
	scriptLibrary = regexp.MustCompile(`^lib(perl|systemd-shared)`)
)

// unpack unpacks packages and the libraries that they depend on. The others only serve the packages' scripts.
func unpack(archives, root string, packages []string) error {
	debs, err := filepath.Glob(filepath.Join(archives, "*.deb"))
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
