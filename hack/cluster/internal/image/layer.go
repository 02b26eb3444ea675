package image

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// FromFolders makes an image with one layer from each folder.
func FromFolders(config v1.Config, folders ...string) (v1.Image, error) {
	config.Env = append([]string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}, config.Env...)
	return withLayers(empty.Image, config, folders...)
}

func withLayers(img v1.Image, config v1.Config, folders ...string) (v1.Image, error) {
	for _, dir := range folders {
		packed, err := pack(dir)
		if err != nil {
			return nil, err
		}
		open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(packed)), nil }
		// Most of these layers never leave the machine: time matters, size does not.
		layer, err := tarball.LayerFromOpener(open, tarball.WithCompressionLevel(gzip.BestSpeed))
		if err != nil {
			return nil, err
		}
		if img, err = mutate.AppendLayers(img, layer); err != nil {
			return nil, err
		}
	}
	file, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.OS, file.Architecture, file.Config = "linux", runtime.GOARCH, config
	return mutate.ConfigFile(img, file)
}

// pack returns a folder as a tar that depends on names, modes and contents only: everything belongs to root and is as old as
// the epoch.
func pack(dir string) ([]byte, error) {
	tar := exec.Command("tar", "-C", dir, "--sort=name", "--mtime=@0", "--owner=0", "--group=0", "--numeric-owner", "--hard-dereference", "--mode=u+w,a+rX", "-c", ".")
	tar.Stderr = os.Stderr
	packed, err := tar.Output()
	if err != nil {
		return nil, fmt.Errorf("packing %s: %w", dir, err)
	}
	return packed, nil
}
