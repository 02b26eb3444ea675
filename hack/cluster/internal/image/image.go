// Package image builds container images without a container daemon, from Dockerfiles and from folders.
//
// It interprets the Dockerfiles of this project: instructions that copy files and configure the image, and stages
// that compile with Go, which run "go build" with the Go of this machine. Every other instruction is an error, so
// that no image lacks a step. The same inputs give the same image.
package image

import (
	"bytes"
	"compress/gzip"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// FromFolders makes an image with one layer, the contents of folders.
func FromFolders(config v1.Config, folders ...string) (v1.Image, error) {
	config.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	return onBase(empty.Image, config, folders...)
}

// onBase adds a layer, the contents of folders, to an image.
func onBase(base v1.Image, config v1.Config, folders ...string) (v1.Image, error) {
	packed, err := pack(folders)
	if err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(packed)), nil }
	// Most of these layers never leave the machine: time matters, size does not.
	layer, err := tarball.LayerFromOpener(open, tarball.WithCompressionLevel(gzip.BestSpeed))
	if err != nil {
		return nil, err
	}
	img, err := mutate.AppendLayers(base, layer)
	if err != nil {
		return nil, err
	}
	file, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.OS, file.Architecture, file.Config = "linux", runtime.GOARCH, config
	return mutate.ConfigFile(img, file)
}

// pack returns folders as one tar that depends on names, modes and contents only: everything belongs to root and is as old as
// the epoch.
func pack(folders []string) ([]byte, error) {
	tar := exec.Command("tar", "--sort=name", "--mtime=@0", "--owner=0", "--group=0", "--numeric-owner", "--hard-dereference", "--mode=u+w,a+rX", "-c")
	for _, dir := range folders {
		tar.Args = append(tar.Args, "-C", dir, ".")
	}
	tar.Stderr = os.Stderr
	packed, err := tar.Output()
	if err != nil {
		return nil, fmt.Errorf("packing %s: %w", folders, err)
	}
	return packed, nil
}

// Recipe describes an image.
type Recipe struct {
	Ref     string
	Config  v1.Config
	Files   map[string]string // place in the image → file here
	Links   map[string]string // place in the image → what it points to
	Folders []string          // more contents of its root
}

func (r Recipe) make() (v1.Image, error) {
	work, err := os.MkdirTemp("", "image")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(work)
	if err := writeBase(work); err != nil {
		return nil, err
	}
	for to, from := range r.Files {
		if err := copyFile(from, filepath.Join(work, to)); err != nil {
			return nil, err
		}
	}
	for name, target := range r.Links {
		if err := os.Symlink(target, filepath.Join(work, name)); err != nil {
			return nil, err
		}
	}
	return FromFolders(r.Config, append([]string{work}, r.Folders...)...)
}

//go:embed base
var base embed.FS

// writeBase writes names of users, and a /tmp.
func writeBase(root string) error {
	files, err := fs.Sub(base, "base")
	if err != nil {
		return err
	}
	tmp := filepath.Join(root, "tmp")
	return errors.Join(os.CopyFS(root, files), os.Mkdir(tmp, 0o755), os.Chmod(tmp, os.ModeSticky|0o777))
}

// copyFile copies a file with its mode, and follows links. Only its owner can write: in a checkout, that depends on the umask.
func copyFile(from, to string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.WriteFile(to, content, info.Mode().Perm()&^0o022)
}

// RefAnnotation has the name of an image in a layout.
const RefAnnotation = "org.opencontainers.image.ref.name"

// WriteLayout writes images into an OCI layout, with their names.
func WriteLayout(dir string, recipes ...Recipe) error {
	l, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	for _, r := range recipes {
		img, err := r.make()
		if err != nil {
			return fmt.Errorf("%s: %w", r.Ref, err)
		}
		if err := l.AppendImage(img, layout.WithAnnotations(map[string]string{RefAnnotation: r.Ref})); err != nil {
			return err
		}
	}
	return nil
}

// ReadLayout returns the index of an OCI layout, and the manifests in it.
func ReadLayout(dir string) (v1.ImageIndex, []v1.Descriptor, error) {
	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		return nil, nil, err
	}
	list, err := index.IndexManifest()
	if err != nil {
		return nil, nil, err
	}
	return index, list.Manifests, nil
}
