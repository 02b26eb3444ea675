// Plugin builds the archives of kubectl-memcached, their checksums, and the manifest with which Krew installs it. The same commit and
// version give the same files on any machine.
package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

const (
	// root is the project's folder: "go -C hack run" starts this program in hack.
	root        = ".."
	name        = "kubectl-memcached"
	repository  = "https://github.com/memcached-operator/memcached-operator"
	description = `Shows what the memcached-operator knows of a Memcached: its shards, what the
operator does next, and what blocks it. Restarts and moves shards, creates
backups and restores. It requires the operator in the cluster, and uses
your permissions.
`
)

// platforms are those of the archives, as Go names them.
var platforms = []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64", "windows/amd64", "windows/arm64"}

// modified is the time of all files in the archives.
var modified = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: plugin VERSION FOLDER")
		os.Exit(2)
	}
	if err := write(os.Args[1], os.Args[2], platforms); err != nil {
		fmt.Fprintf(os.Stderr, "plugin: %v\n", err)
		os.Exit(1)
	}
}

// platform is one in the manifest of Krew.
type platform struct {
	Selector map[string]map[string]string `json:"selector"`
	URI      string                       `json:"uri"`
	SHA256   string                       `json:"sha256"`
	Bin      string                       `json:"bin"`
}

// write writes the archives for some platforms, the checksums and the manifest into a folder.
func write(version, folder string, platforms []string) error {
	license, err := os.ReadFile(filepath.Join(root, "LICENSE"))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil { //nolint:gosec // for everyone
		return err
	}
	var installed []platform
	var checksums bytes.Buffer
	for _, p := range platforms {
		system, arch, _ := strings.Cut(p, "/")
		program, bin, err := build(version, system, arch)
		if err != nil {
			return fmt.Errorf("building for %s: %w", p, err)
		}
		content, err := archive(map[string][]byte{bin: program, "LICENSE": license})
		if err != nil {
			return err
		}
		file := fmt.Sprintf("%s_%s_%s.tar.gz", name, system, arch)
		if err := os.WriteFile(filepath.Join(folder, file), content, 0o644); err != nil { //nolint:gosec // for everyone
			return err
		}
		sum := fmt.Sprintf("%x", sha256.Sum256(content))
		fmt.Fprintf(&checksums, "%s  %s\n", sum, file)
		installed = append(installed, platform{
			Selector: map[string]map[string]string{"matchLabels": {"os": system, "arch": arch}},
			URI:      fmt.Sprintf("%s/releases/download/v%s/%s", repository, version, file), SHA256: sum, Bin: bin,
		})
	}
	manifest, err := yaml.Marshal(map[string]any{
		"apiVersion": "krew.googlecontainertools.github.com/v1alpha2", "kind": "Plugin", "metadata": map[string]string{"name": "memcached"},
		"spec": map[string]any{
			"version": "v" + version, "homepage": repository, "shortDescription": "Show and control Memcacheds", "description": description,
			"platforms": installed,
		},
	})
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(folder, "memcached.yaml"), manifest, 0o644); err != nil { //nolint:gosec // for everyone
		return err
	}
	return os.WriteFile(filepath.Join(folder, name+"_checksums.txt"), checksums.Bytes(), 0o644) //nolint:gosec // for everyone
}

// build returns the program for a platform, and its file name.
func build(version, system, arch string) (program []byte, bin string, err error) {
	folder, err := os.MkdirTemp("", "")
	if err != nil {
		return nil, "", err
	}
	defer os.RemoveAll(folder)
	if bin = name; system == "windows" {
		bin += ".exe"
	}
	file := filepath.Join(folder, bin)
	cmd := exec.Command("go", "-C", filepath.Join(root, "cmd", name), "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w -X main.version="+version, "-o", file, ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+system, "GOARCH="+arch)
	if output, err := cmd.CombinedOutput(); err != nil {
		return nil, "", fmt.Errorf("%w: %s", err, output)
	}
	program, err = os.ReadFile(file)
	return program, bin, err
}

// archive returns one of some files, which depends on nothing but their names and contents.
func archive(files map[string][]byte) ([]byte, error) {
	var buffer bytes.Buffer
	compressed, err := gzip.NewWriterLevel(&buffer, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	w := tar.NewWriter(compressed)
	for _, file := range slices.Sorted(maps.Keys(files)) {
		mode := int64(0o755)
		if file == "LICENSE" {
			mode = 0o644
		}
		if err := w.WriteHeader(&tar.Header{Name: file, Mode: mode, Size: int64(len(files[file])), ModTime: modified, Format: tar.FormatUSTAR}); err != nil {
			return nil, err
		}
		if _, err := w.Write(files[file]); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	if err := compressed.Close(); err != nil {
		return nil, err
	}
	return buffer.Bytes(), nil
}
