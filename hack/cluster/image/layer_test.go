package image

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
		write(t, dir, "program", "contents", 0o755)
		if err := os.Symlink("program", filepath.Join(dir, "link")); err != nil {
			t.Fatal(err)
		}
		when := time.Now().Add(-time.Duration(i) * time.Hour)
		if err := os.Chtimes(filepath.Join(dir, "program"), when, when); err != nil {
			t.Fatal(err)
		}
		digests[digestOf(t, dir)] = true
		if i == 1 {
			write(t, dir, "program", "other contents", 0o755)
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
	img, err := FromFolders(v1.Config{User: "1:1"}, dir)
	if err != nil {
		t.Fatal(err)
	}
	digest, err := img.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return digest.String()
}

func TestLayerKeepsModesAndBelongsToRoot(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "etc/passwd", "root", 0o644)
	if err := os.Mkdir(filepath.Join(dir, "tmp"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(dir, "tmp"), os.ModeSticky|0o777); err != nil {
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
		t.Errorf("/tmp has mode %v: not every user can write there", m)
	}
	if m := modes["etc/passwd"]; m != 0o644 {
		t.Errorf("/etc/passwd has mode %v", m)
	}
}
