// Package cache has the folders of builds and of the cluster.
package cache

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/host"
)

// Dirs are the folders of this program. Builds can be deleted and built again; Cluster has the data of the cluster.
type Dirs struct {
	Source  string // hack/cluster of the checkout that has this program in bin
	Cache   string
	Builds  string // one folder a build, named by what it is and its key
	Cluster string
	Etc     string // certificates, kubeconfigs, configuration
	State   string // etcd, containerd, kubelet, registry, process numbers
	Logs    string
}

// Variable names the folder of all others in the environment.
const Variable = "MEMCACHED_OPERATOR_CACHE"

// Find returns the folders that the environment names, or those in the user's cache.
func Find() (Dirs, error) {
	cache := os.Getenv(Variable)
	if cache == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return Dirs{}, fmt.Errorf("finding a folder for builds (set %s to choose one): %w", Variable, err)
		}
		cache = filepath.Join(user, "memcached-operator")
	}
	cache, err := filepath.Abs(cache)
	if err != nil {
		return Dirs{}, err
	}
	program, err := os.Executable()
	if err != nil {
		return Dirs{}, err
	}
	d := Under(cache)
	d.Source = filepath.Join(filepath.Dir(program), "..", "hack", "cluster")
	if !host.Exists(d.Source) {
		err = fmt.Errorf("%s does not exist: build this program with make, which puts it into bin of a checkout", d.Source)
	}
	return d, err
}

// Under returns the folders in one.
func Under(cache string) Dirs {
	cluster := filepath.Join(cache, "cluster")
	return Dirs{
		Cache:   cache,
		Builds:  filepath.Join(cache, "builds"),
		Cluster: cluster,
		Etc:     filepath.Join(cluster, "etc"),
		State:   filepath.Join(cluster, "state"),
		Logs:    filepath.Join(cluster, "log"),
	}
}

// PKI returns the folder of certificates, keys and kubeconfigs.
func (d Dirs) PKI() string { return filepath.Join(d.Etc, "pki") }

// Programs returns the folder with links to the programs of the running cluster, which may be older than the checkout.
func (d Dirs) Programs() string { return filepath.Join(d.Etc, "programs") }

// Kubeconfig returns the path of the administrator's kubeconfig.
func (d Dirs) Kubeconfig() string { return filepath.Join(d.PKI(), "admin.conf") }

// Build returns the folder of a build, which it builds once. make fills an empty folder, which gets its name
// when it succeeds, so that an incomplete build is never used. Concurrent builds wait for each other.
func (d Dirs) Build(name, key, what string, make func(dir string) error) (string, error) {
	final := filepath.Join(d.Builds, name+"-"+key)
	if host.Exists(final) {
		return final, nil
	}
	unlock, err := Lock(filepath.Join(d.Builds, name+".lock"))
	if err != nil {
		return "", err
	}
	defer unlock()
	if host.Exists(final) {
		return final, nil
	}
	part := filepath.Join(d.Builds, "."+name)
	if err := os.RemoveAll(part); err != nil { // of a run that was interrupted
		return "", err
	}
	if err := os.Mkdir(part, 0o755); err != nil {
		return "", err
	}
	defer os.RemoveAll(part)
	err = host.Step(what, func() error { return make(part) })
	if err != nil {
		return "", err
	}
	return final, os.Rename(part, final)
}

// Lock waits for a file lock, which the end of the process releases.
func Lock(path string) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		fmt.Fprintf(os.Stderr, "waiting for another run that holds %s\n", path)
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
	}
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("locking %s: %w", path, err)
	}
	return func() { _ = f.Close() }, nil
}

// Key returns a short name for a build from all its inputs.
func Key(inputs ...string) string {
	h := sha256.New()
	for _, in := range inputs {
		// Lengths distinguish ("ab","c") from ("a","bc").
		fmt.Fprintf(h, "%d:%s\n", len(in), in)
	}
	return hex.EncodeToString(h.Sum(nil))[:12]
}

// SourceKey returns the key of the Go sources in a folder, with go.mod and go.sum, without tests and subfolders.
func SourceKey(dir string, inputs ...string) (string, error) {
	entries, err := os.ReadDir(dir) // sorted by name
	if err != nil {
		return "", err
	}
	for _, e := range entries {
		n := e.Name()
		if e.IsDir() || strings.HasSuffix(n, "_test.go") || !(strings.HasSuffix(n, ".go") || n == "go.mod" || n == "go.sum") {
			continue
		}
		content, err := os.ReadFile(filepath.Join(dir, n))
		if err != nil {
			return "", err
		}
		inputs = append(inputs, n, string(content))
	}
	return Key(inputs...), nil
}
