package main

import (
	"archive/tar"
	"bytes"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

func TestImageDependsOnContentsOnly(t *testing.T) {
	digests := map[string]bool{}
	for i := range 2 {
		dir := t.TempDir()
		if err := baseFiles(dir); err != nil {
			t.Fatal(err)
		}
		write(t, dir, "program", "contents")
		if err := os.Symlink("program", filepath.Join(dir, "link")); err != nil {
			t.Fatal(err)
		}
		when := time.Now().Add(-time.Duration(i) * time.Hour)
		if err := os.Chtimes(filepath.Join(dir, "program"), when, when); err != nil {
			t.Fatal(err)
		}
		digests[digestOf(t, dir)] = true
		if i == 1 {
			write(t, dir, "program", "other contents")
			if digests[digestOf(t, dir)] {
				t.Error("other contents gave the same image")
			}
		}
	}
	if len(digests) != 1 {
		t.Errorf("the same contents gave %d images", len(digests))
	}
}

func digestOf(t *testing.T, dir string) string {
	t.Helper()
	img, err := imageOf(v1.Config{User: "1:1"}, dir)
	if err != nil {
		t.Fatal(err)
	}
	digest, err := img.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return digest.String()
}

func TestPackedEntries(t *testing.T) {
	dir := t.TempDir()
	if err := baseFiles(dir); err != nil {
		t.Fatal(err)
	}
	var packed bytes.Buffer
	if err := pack(&packed, dir); err != nil {
		t.Fatal(err)
	}
	modes := map[string]fs.FileMode{}
	for r := tar.NewReader(&packed); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Uid != 0 || h.Gid != 0 || h.Uname != "" {
			t.Errorf("%s belongs to %d:%d %q", h.Name, h.Uid, h.Gid, h.Uname)
		}
		modes[h.Name] = h.FileInfo().Mode()
	}
	if m := modes["tmp/"]; m != fs.ModeDir|fs.ModeSticky|0o777 {
		t.Errorf("/tmp has mode %v: not everybody can write there", m)
	}
	if m := modes["etc/passwd"]; m != 0o644 {
		t.Errorf("/etc/passwd has mode %v", m)
	}
}
