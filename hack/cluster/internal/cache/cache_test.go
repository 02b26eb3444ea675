package cache

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestKeyIsOfWhatIsBuilt(t *testing.T) {
	dir := t.TempDir()
	seen := map[string]string{}
	for _, changed := range []string{"main.go", "go.sum"} {
		write(t, dir, changed, "package main")
		write(t, dir, "main_test.go", changed)
		write(t, dir, "README.md", changed)
		for _, inputs := range [][]string{nil, {"ab"}, {"a", "b"}} {
			key, err := SourceKey(dir, inputs...)
			if err != nil {
				t.Fatal(err)
			}
			if other := seen[key]; other != "" {
				t.Errorf("after a change of %s and of %s, the keys are the same (%q)", changed, other, inputs)
			}
			seen[key] = changed
		}
	}
	before, _ := SourceKey(dir)
	write(t, dir, "main_test.go", "package main")
	if after, _ := SourceKey(dir); after != before {
		t.Error("a test changed the key")
	}
}

func TestBuildRunsOnceAndIsNeverIncomplete(t *testing.T) {
	d := Under(t.TempDir())
	broken := errors.New("broken")
	_, err := d.Build("thing", "1", "making a thing", func(dir string) error {
		write(t, dir, "half", "")
		return broken
	})
	if !errors.Is(err, broken) {
		t.Fatalf("error of a broken build: %v", err)
	}
	write(t, d.Builds, filepath.Join(".thing", "left"), "of a run that was killed")

	made := 0
	for range 2 {
		dir, err := d.Build("thing", "1", "making a thing", func(dir string) error {
			made++
			write(t, dir, "whole", "")
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		entries, err := os.ReadDir(dir)
		if err != nil || len(entries) != 1 || entries[0].Name() != "whole" {
			t.Errorf("the build holds %v, %v; want one file, whole", entries, err)
		}
	}
	if made != 1 {
		t.Errorf("made %d times", made)
	}
}

func write(t *testing.T, dir, name, content string) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}
