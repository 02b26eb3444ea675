package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
)

// commonDirs are where known images install memcached: the official ones, the
// packages of Debian and Alpine, Bitnami's.
var commonDirs = []string{
	"/usr/local/bin", "/usr/bin", "/usr/local/sbin", "/usr/sbin", "/bin", "/opt/bitnami/memcached/bin",
}

// Binary is the memcached of an image.
type Binary struct {
	Path, Version string
	// Start is the function of that name, or a memcached of a test.
	Start func(path string, words []string, server protocol.Server, log *slog.Logger) (*Process, error)
}

// Find returns the memcached at path, or searches the image if path is empty. It runs the program for its version; a
// SlowError says nothing about the image.
func Find(path string) (Binary, error) {
	if path == "" {
		found, err := searchBinary(os.Getenv("PATH"), isExecutable)
		if err != nil {
			return Binary{}, err
		}
		path = found
	}
	version, err := readVersion(path, VersionTimeout)
	return Binary{Path: path, Version: version, Start: Start}, err
}

// searchBinary returns the path of memcached in this image. searchPath is $PATH.
func searchBinary(searchPath string, executable func(path string) bool) (string, error) {
	seen := map[string]bool{}
	var dirs []string
	for _, dir := range append(filepath.SplitList(searchPath), commonDirs...) {
		// A relative entry depends on the image's working directory.
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

// versionOf returns the version in "memcached 1.6.45\n", and false for anything else. A regular expression would add 240 KB to the agent.
func versionOf(out string) (version string, ok bool) {
	version, ok = strings.CutPrefix(strings.TrimRight(out, " \r\n"), "memcached ")
	rest := version
	for i := range 3 {
		length := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
		ok = ok && length > 0 && (i == 2 || strings.HasPrefix(rest[length:], "."))
		rest = rest[min(length+1, len(rest)):]
	}
	return version, ok && !strings.ContainsAny(version, " \t\r\n")
}

// VersionTimeout bounds "memcached -V", which takes 2 ms, and more than 5 s on a node that is overloaded.
const VersionTimeout = time.Minute

func readVersion(path string, timeout time.Duration) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	command := exec.CommandContext(ctx, path, "-V")
	command.WaitDelay = time.Second
	out, err := command.CombinedOutput()
	late := ctx.Err() != nil
	version, ok := versionOf(string(out))
	switch {
	case ok && (err == nil || late || errors.Is(err, exec.ErrWaitDelay)):
		return version, nil
	case late:
		return "", fmt.Errorf("running %s -V: %w", path, &SlowError{Action: "print its version", Within: timeout})
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && IsKilled(exit.Sys().(syscall.WaitStatus)) {
		return "", fmt.Errorf("running %s -V: %w", path, &SlowError{Action: "print its version"})
	}
	line, _, _ := bytes.Cut(bytes.TrimSpace(out), []byte("\n"))
	if err != nil {
		return "", fmt.Errorf("%s is not memcached: -V printed %.100q: %w", path, line, err)
	}
	return "", fmt.Errorf("%s is not memcached: -V printed %.100q", path, line)
}
