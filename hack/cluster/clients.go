package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// The tests ask these clients of memcached which server has a key. dskit is built here; Python comes from Debian.
const (
	pythonSuite   = "trixie"
	python        = "python3.13"
	clientsLayout = "1"
)

var pythonPackages = []string{python + "-minimal", "python3-pymemcache", "python3-pylibmc"}

// clients returns a folder with two programs:
//
//	dskit     prints what github.com/grafana/dskit picks (see the folder dskit)
//	python3   a Python that has pymemcache, and pylibmc over libmemcached
func (d dirs) clients(source string) (string, error) {
	m, ok := machines[runtime.GOARCH]
	if !ok {
		return "", fmt.Errorf("the clients' Python from Debian for %s: not known here", runtime.GOARCH)
	}
	dskit := filepath.Join(source, "dskit")
	version, err := goVersion(dskit)
	if err != nil {
		return "", err
	}
	inputs := append([]string{version, runtime.GOARCH, clientsLayout, pythonSuite}, pythonPackages...)
	k, err := sourceKey(dskit, inputs...)
	if err != nil {
		return "", err
	}
	return d.build("clients", k, "building dskit, and fetching pymemcache and pylibmc from Debian (once)", func(dir, final string) error {
		if err := goBuild(dskit, filepath.Join(dir, "dskit"), ".", append(leanFlags, "-ldflags=-s -w")...); err != nil {
			return err
		}
		if err := m.fetchPython(dir, final); err != nil {
			return fmt.Errorf("python of %s: %w", pythonSuite, err)
		}
		return nil
	})
}

// fetchPython unpacks Python into dir, which is renamed to final.
func (m machine) fetchPython(dir, final string) error {
	work := filepath.Join(dir, ".apt")
	defer os.RemoveAll(work)
	s, err := openSuite(pythonSuite, work)
	if err != nil {
		return err
	}
	root := filepath.Join(dir, "root")
	if err := s.unpack(root, pythonPackages...); err != nil {
		return err
	}
	words := append([]string{
		"env", "PYTHONDONTWRITEBYTECODE=1",
		"PYTHONHOME=" + filepath.Join(root, "usr"), "PYTHONPATH=" + filepath.Join(root, "usr/lib/python3/dist-packages"),
	}, m.command(root, filepath.Join(root, "usr/bin", python)).Args...)
	if _, err := output(exec.Command(words[0], append(words[1:], "-c", "import pylibmc, pymemcache")...)); err != nil {
		return err
	}
	script := strings.ReplaceAll(wrapper(words), dir, final)
	return os.WriteFile(filepath.Join(dir, "python3"), []byte(script), 0o755)
}
