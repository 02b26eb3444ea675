package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// usualPlaces are where known images keep memcached: the official ones,
// Debian's and Alpine's package, Bitnami's.
var usualPlaces = []string{"/usr/local/bin", "/usr/bin", "/usr/local/sbin", "/usr/sbin", "/bin", "/opt/bitnami/memcached/bin"}

// program is the memcached of this image.
type program struct{ path, version string }

// imageMemcached returns the memcached at path, or the one that is found when
// path is empty.
func imageMemcached(path string) (program, error) {
	if path == "" {
		found, err := findMemcached(os.Getenv("PATH"), isExecutable)
		if err != nil {
			return program{}, err
		}
		path = found
	}
	return proveMemcached(path)
}

// findMemcached returns the path of memcached in this image. searchPath is $PATH.
func findMemcached(searchPath string, executable func(path string) bool) (string, error) {
	seen := map[string]bool{}
	var dirs []string
	for _, dir := range append(filepath.SplitList(searchPath), usualPlaces...) {
		// A relative entry would mean the image's working directory.
		if !filepath.IsAbs(dir) || seen[dir] {
			continue
		}
		seen[dir] = true
		dirs = append(dirs, dir)
		if path := filepath.Join(dir, "memcached"); executable(path) {
			return path, nil
		}
	}
	return "", fmt.Errorf("no memcached in this image: looked in %s", strings.Join(dirs, ", "))
}

func isExecutable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

var versionLine = regexp.MustCompile(`^memcached (\d+\.\d+\.\d+\S*)\s*$`)

// proveMemcached asks the program at path who it is.
func proveMemcached(path string) (program, error) {
	out, err := ask(path, "-V")
	if match := versionLine.FindSubmatch(out); err == nil && match != nil {
		return program{path, string(match[1])}, nil
	}
	line, _, _ := bytes.Cut(bytes.TrimSpace(out), []byte("\n"))
	if err != nil {
		return program{}, fmt.Errorf("%s is not memcached: asked for its version it gave %.100q: %w", path, line, err)
	}
	return program{}, fmt.Errorf("%s is not memcached: asked for its version it gave %.100q", path, line)
}

// ask runs a program that should answer and end at once. It returns what it
// printed on both outputs.
func ask(path string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	command := exec.CommandContext(ctx, path, args...)
	command.WaitDelay = time.Second
	return command.CombinedOutput()
}
