package files

import (
	"os"
	"path/filepath"
	"testing"
)

// The agent may be killed at any moment, and memcached aborts at a truncated file.
func TestReplaceIsAtomic(t *testing.T) {
	dir := t.TempDir()
	path, link := filepath.Join(dir, "memory.meta"), filepath.Join(dir, "link")
	if err := os.WriteFile(path, []byte("former"), 0o600); err != nil {
		t.Fatal(err)
	}
	// A process that has the file open still reads the former content.
	if err := os.Link(path, link); err != nil {
		t.Fatal(err)
	}
	if err := Replace(path, []byte("new")); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{path: "new", link: "former"} {
		if got, err := os.ReadFile(file); err != nil || string(got) != want {
			t.Errorf("%s contains %q, %v; want %q", file, got, err, want)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 2 {
		t.Errorf("directory entries: %v, %v", entries, err)
	}
}
