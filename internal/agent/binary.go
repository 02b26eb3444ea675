package agent

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

// commonDirs are where known images install memcached: the official ones, the
// packages of Debian and Alpine, Bitnami's.
var commonDirs = []string{
	"/usr/local/bin", "/usr/bin", "/usr/local/sbin", "/usr/sbin", "/bin", "/opt/bitnami/memcached/bin",
}

type binary struct {
	path, version string
	// tls has the certificate with which it starts, and users those who may log in, if its arguments require them.
	tls   *serverTLS
	users *serverUsers
}

// findBinary returns the memcached at path, or searches the image if path is empty.
func findBinary(path string) (binary, error) {
	if path == "" {
		found, err := searchBinary(os.Getenv("PATH"), isExecutable)
		if err != nil {
			return binary{}, err
		}
		path = found
	}
	version, err := readVersion(path)
	return binary{path: path, version: version}, err
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

var versionLine = regexp.MustCompile(`^memcached (\d+\.\d+\.\d+\S*)\s*$`)

func readVersion(path string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	command := exec.CommandContext(ctx, path, "-V")
	command.WaitDelay = time.Second
	out, err := command.CombinedOutput()
	if match := versionLine.FindSubmatch(out); err == nil && match != nil {
		return string(match[1]), nil
	}
	line, _, _ := bytes.Cut(bytes.TrimSpace(out), []byte("\n"))
	if err != nil {
		return "", fmt.Errorf("%s is not memcached: -V printed %.100q: %w", path, line, err)
	}
	return "", fmt.Errorf("%s is not memcached: -V printed %.100q", path, line)
}
