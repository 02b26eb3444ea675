package main

import (
	"os"
	"path/filepath"
	"testing"
)

// The agent may be killed at any moment, and memcached aborts at half a file.
func TestAFileIsReplacedInWholeOrNotAtAll(t *testing.T) {
	dir := t.TempDir()
	path, former := filepath.Join(dir, "memory.meta"), filepath.Join(dir, "former")
	if err := os.WriteFile(path, []byte("what was"), 0o600); err != nil {
		t.Fatal(err)
	}
	// Whoever has the file open reads on what was.
	if err := os.Link(path, former); err != nil {
		t.Fatal(err)
	}
	if err := replaceFile(path, []byte("what is")); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{path: "what is", former: "what was"} {
		if got, err := os.ReadFile(file); err != nil || string(got) != want {
			t.Errorf("%s holds %q, %v; want %q", file, got, err, want)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 2 {
		t.Errorf("there are %v, %v", entries, err)
	}
}
