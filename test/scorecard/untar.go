package main

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
)

// untar does what the scorecard's init container runs, and nothing else that tar does.
func untar(args []string) error {
	if len(args) != 4 || args[0] != "xvzf" || args[2] != "-C" {
		return errors.New("usage: tar xvzf ARCHIVE -C FOLDER")
	}
	file, err := os.Open(args[1])
	if err != nil {
		return err
	}
	defer file.Close()
	root, err := os.OpenRoot(args[3])
	if err != nil {
		return err
	}
	defer root.Close()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		return fmt.Errorf("unpacking: %w", err)
	}
	archive := tar.NewReader(unzipped)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("unpacking: %w", err)
		}
		if err := unpack(root, header, archive); err != nil {
			return fmt.Errorf("unpacking %s: %w", header.Name, err)
		}
	}
}

// unpack writes one entry. A name that leads out of root is an error.
func unpack(root *os.Root, header *tar.Header, content io.Reader) error {
	name := path.Clean(header.Name)
	switch header.Typeflag {
	case tar.TypeDir:
		return root.MkdirAll(name, 0o755)
	case tar.TypeReg:
	default:
		return errors.New("neither a file nor a folder")
	}
	if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	file, err := root.Create(name)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, content)
	return errors.Join(err, file.Close())
}
