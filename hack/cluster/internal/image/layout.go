package image

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
)

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

// ReadLayout returns the manifests in an OCI layout.
func ReadLayout(dir string) (layout.Path, []v1.Descriptor, error) {
	path, err := layout.FromPath(dir)
	if err != nil {
		return "", nil, err
	}
	index, err := path.ImageIndex()
	if err != nil {
		return "", nil, err
	}
	list, err := index.IndexManifest()
	if err != nil {
		return "", nil, err
	}
	return path, list.Manifests, nil
}

// Recipe describes an image: files (place in the image → file here) over a folder or over nothing.
type Recipe struct {
	Ref    string
	Config v1.Config
	Files  map[string]string
	Links  map[string]string // place in the image → what it points to
	Root   string
}

func (r Recipe) make() (v1.Image, error) {
	work, err := os.MkdirTemp("", "image")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(work)
	if err := BaseFiles(work); err != nil {
		return nil, err
	}
	for to, from := range r.Files {
		if err := CopyFile(from, filepath.Join(work, to)); err != nil {
			return nil, err
		}
	}
	for name, target := range r.Links {
		if err := os.Symlink(target, filepath.Join(work, name)); err != nil {
			return nil, err
		}
	}
	folders := []string{work}
	if r.Root != "" {
		folders = append(folders, r.Root)
	}
	return FromFolders(r.Config, folders...)
}

//go:embed base
var base embed.FS

// BaseFiles writes the files of every image: names of users, and a /tmp.
func BaseFiles(root string) error {
	files, err := fs.Sub(base, "base")
	if err != nil {
		return err
	}
	tmp := filepath.Join(root, "tmp")
	return errors.Join(os.CopyFS(root, files), os.Mkdir(tmp, 0o755), os.Chmod(tmp, os.ModeSticky|0o777))
}
