package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// dirs are the folders of this program. builds can be deleted and built again; cluster has the data of the cluster.
type dirs struct {
	cache   string
	builds  string // one folder a build, named by what it is and its key
	cluster string
	etc     string // certificates, kubeconfigs, configuration
	state   string // etcd, containerd, kubelet, registry, process numbers
	logs    string
}

const cacheVariable = "MEMCACHED_OPERATOR_CACHE"

func findDirs() (dirs, error) {
	cache := os.Getenv(cacheVariable)
	if cache == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return dirs{}, fmt.Errorf("finding a folder for builds (set %s to choose one): %w", cacheVariable, err)
		}
		cache = filepath.Join(user, "memcached-operator")
	}
	cache, err := filepath.Abs(cache)
	if err != nil {
		return dirs{}, err
	}
	return dirsUnder(cache), nil
}

func dirsUnder(cache string) dirs {
	cluster := filepath.Join(cache, "cluster")
	return dirs{
		cache:   cache,
		builds:  filepath.Join(cache, "builds"),
		cluster: cluster,
		etc:     filepath.Join(cluster, "etc"),
		state:   filepath.Join(cluster, "state"),
		logs:    filepath.Join(cluster, "log"),
	}
}

// build returns the folder of a build, which it builds once. make fills an empty folder, which is renamed to final
// when it succeeds, so that an incomplete build is never used. Concurrent builds wait for each other.
func (d dirs) build(name, key, what string, make func(dir, final string) error) (string, error) {
	final := filepath.Join(d.builds, name+"-"+key)
	if exists(final) {
		return final, nil
	}
	unlock, err := lock(filepath.Join(d.builds, name+".lock"))
	if err != nil {
		return "", err
	}
	defer unlock()
	if exists(final) {
		return final, nil
	}
	part := filepath.Join(d.builds, "."+name)
	if err := os.RemoveAll(part); err != nil { // of a run that was interrupted
		return "", err
	}
	if err := os.Mkdir(part, 0o755); err != nil {
		return "", err
	}
	defer os.RemoveAll(part)
	err = step(what, func() error { return make(part, final) })
	if err != nil {
		return "", err
	}
	return final, os.Rename(part, final)
}

// lock waits for a file lock, which the end of the process releases.
func lock(path string) (unlock func(), err error) {
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

// key returns a short name for a build from all its inputs.
func key(inputs ...string) string {
	h := sha256.New()
	for _, in := range inputs {
		// Lengths distinguish ("ab","c") from ("a","bc").
		fmt.Fprintf(h, "%d:%s\n", len(in), in)
	}
	return hex.EncodeToString(h.Sum(nil))[:12]
}

// sourceKey returns the key of the Go sources in a folder, with go.mod and go.sum, without tests and subfolders.
func sourceKey(dir string, inputs ...string) (string, error) {
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
	return key(inputs...), nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}
