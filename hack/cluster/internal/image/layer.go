package image

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"time"

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
		var packed bytes.Buffer
		if err := pack(&packed, dir); err != nil {
			return nil, fmt.Errorf("packing %s: %w", dir, err)
		}
		open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(packed.Bytes())), nil }
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

// pack writes a folder as a tar that depends on names, modes and contents only: everything belongs to root and is as
// old as the epoch.
func pack(w io.Writer, dir string) error {
	tw := tar.NewWriter(w)
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		link := ""
		if info.Mode()&fs.ModeSymlink != 0 {
			if link, err = os.Readlink(path); err != nil {
				return err
			}
		}
		header, err := tar.FileInfoHeader(info, link)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if entry.IsDir() {
			name += "/"
		}
		// Modes of a checkout depend on the umask.
		mode := int64(0o644)
		if info.Mode()&0o111 != 0 {
			mode = 0o755
		}
		if info.Mode()&fs.ModeSticky != 0 {
			mode = 0o1777
		}
		err = tw.WriteHeader(&tar.Header{
			Typeflag: header.Typeflag, Name: name, Linkname: link, Mode: mode, Size: header.Size, ModTime: time.Unix(0, 0),
		})
		if err != nil || !info.Mode().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		_, err = tw.Write(content)
		return err
	})
	if err != nil {
		return err
	}
	return tw.Close()
}
