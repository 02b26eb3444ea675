// Package archive packs a bundle for a ConfigMap and unpacks it in a pod: a tar
// under gzip of regular files and folders, which is what operator-sdk makes.
package archive

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
)

// Pack returns the files of a folder. The same files give the same bytes.
func Pack(folder fs.FS) ([]byte, error) {
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	out := tar.NewWriter(zip)
	err := fs.WalkDir(folder, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil || name == ".":
			return err
		case entry.IsDir():
			return out.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: 0o755})
		case !entry.Type().IsRegular():
			return fmt.Errorf("%s is neither a file nor a folder", name)
		}
		content, err := fs.ReadFile(folder, name)
		if err != nil {
			return err
		}
		if err := out.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(content))}); err != nil {
			return err
		}
		_, err = out.Write(content)
		return err
	})
	if err := errors.Join(err, out.Close(), zip.Close()); err != nil {
		return nil, fmt.Errorf("packing: %w", err)
	}
	return packed.Bytes(), nil
}

// Unpack writes packed files into a folder. Names that lead out of it are refused.
func Unpack(packed io.Reader, folder string) error {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return err
	}
	defer root.Close()
	zip, err := gzip.NewReader(packed)
	if err != nil {
		return fmt.Errorf("unpacking: %w", err)
	}
	in := tar.NewReader(zip)
	for {
		header, err := in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("unpacking: %w", err)
		}
		if err := unpackEntry(root, header, in); err != nil {
			return fmt.Errorf("unpacking %s: %w", header.Name, err)
		}
	}
}

func unpackEntry(root *os.Root, header *tar.Header, in io.Reader) error {
	name := path.Clean(header.Name)
	if header.Typeflag == tar.TypeDir {
		return root.MkdirAll(name, 0o755)
	}
	if header.Typeflag != tar.TypeReg {
		return errors.New("it is neither a file nor a folder")
	}
	// operator-sdk names every folder before what is in it, others need not.
	if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	out, err := root.Create(name)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
