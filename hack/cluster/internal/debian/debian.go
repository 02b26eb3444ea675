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
	"strings"

	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/host"
)

// Suite is a private view of one Debian suite, separate from the machine's own APT.
type Suite struct {
	name string
	dir  string
}

// keyring has the keys of Debian's archive.
var keyring = "/usr/share/keyrings/debian-archive-keyring.gpg"

// Open reads the lists of a suite. It keeps all files in dir.
func Open(name, dir string) (Suite, error) {
	s := Suite{name: name, dir: dir}
	if _, err := exec.LookPath("apt-get"); err != nil {
		return s, errors.New("memcached, the Python clients and Prometheus come from Debian packages, and this machine has no apt-get: use Debian or Ubuntu")
	}
	for _, sub := range []string{"state/lists/partial", "cache/archives/partial", "debs"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			return s, err
		}
	}
	mirror, err := debianMirror()
	if err != nil {
		return s, err
	}
	signed := ""
	if host.Exists(keyring) {
		signed = "[signed-by=" + keyring + "] "
	}
	files := map[string]string{
		"status":       "",
		"sources.list": fmt.Sprintf("deb %s%s %s main\n", signed, mirror, name),
		"apt.conf": fmt.Sprintf(`Dir::State "%[1]s/state";
Dir::State::status "%[1]s/status";
Dir::Cache "%[1]s/cache";
Dir::Etc::SourceList "%[1]s/sources.list";
Dir::Etc::SourceParts "/dev/null";
Dir::Etc::Preferences "/dev/null";
Dir::Etc::PreferencesParts "/dev/null";
APT::Sandbox::User "";
APT::Install-Recommends "false";
Acquire::Languages "none";
`, dir),
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			return s, err
		}
	}
	if _, err = s.apt("apt-get", "update", "-q"); err != nil && !host.Exists(keyring) {
		// Ubuntu doesn't have the keys.
		err = fmt.Errorf("%w\nthe keys of Debian's archive are missing: run \"apt-get install debian-archive-keyring\" as root", err)
	}
	return s, err
}

func (s Suite) apt(program string, args ...string) (string, error) {
	cmd := exec.Command(program, args...)
	cmd.Dir = filepath.Join(s.dir, "debs")
	cmd.Env = append(os.Environ(), "APT_CONFIG="+filepath.Join(s.dir, "apt.conf"), "LC_ALL=C")
	return host.Output(cmd)
}

// Unpack downloads packages with the libraries they depend on into root, without running their scripts.
func (s Suite) Unpack(root string, packages ...string) error {
	out, err := s.apt("apt-get", append([]string{"install", "-qqy", "--print-uris"}, packages...)...)
	if err != nil {
		return err
	}
	if _, err := s.apt("apt-get", append([]string{"download", "-qq"}, librariesAnd(packages, out)...)...); err != nil {
		return err
	}
	debs, err := filepath.Glob(filepath.Join(s.dir, "debs", "*.deb"))
	if err != nil {
		return err
	}
	for _, deb := range debs {
		if err := host.Run("dpkg-deb", "-x", deb, root); err != nil {
			return err
		}
		if err := os.Remove(deb); err != nil {
			return err
		}
	}
	return nil
}

// librariesAnd returns packages and the libraries in apt-get's list of files ('URI' NAME SIZE HASH). The others only
// serve the packages' scripts.
func librariesAnd(packages []string, uris string) []string {
	picked := append([]string(nil), packages...)
	for line := range strings.Lines(uris) {
		fields := strings.Fields(line)
		if len(fields) < 2 || !strings.HasPrefix(fields[0], "'") {
			continue
		}
		name, _, _ := strings.Cut(fields[1], "_")
		if strings.HasPrefix(name, "libperl") || strings.HasPrefix(name, "libsystemd-shared") {
			continue
		}
		if strings.HasPrefix(name, "lib") || strings.HasPrefix(name, "zlib") {
			picked = append(picked, name)
		}
	}
	return picked
}

// debianMirror returns the archive that the machine's own APT uses, or Debian's.
func debianMirror() (string, error) {
	out, err := host.Output(exec.Command("apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages"))
	if err != nil {
		return "", err
	}
	return pickMirror(out), nil
}

// pickMirror returns the first archive whose path ends in /debian: security updates and other vendors have their own.
func pickMirror(addresses string) string {
	for line := range strings.Lines(addresses) {
		u, err := url.Parse(strings.TrimSpace(line))
		if err == nil && path.Base(u.Path) == "debian" {
			return strings.TrimRight(u.String(), "/")
		}
	}
	return "http://deb.debian.org/debian"
}
