package cache

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestKeyDiffersForEachInput(t *testing.T) {
	seen := map[string][]string{}
	for _, inputs := range [][]string{nil, {""}, {"a"}, {"ab"}, {"a", "b"}, {"b", "a"}, {"a", "b", ""}, {"a\n1:b"}} {
		k := Key(inputs...)
		if other, taken := seen[k]; taken {
			t.Errorf("key(%q) = key(%q)", inputs, other)
		}
		seen[k] = inputs
	}
	if k := Key("a", "b"); k != "700dfd192c1f" {
		t.Errorf("key is %s now: it no longer finds existing builds", k)
	}
}

func TestSourceKey(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "main.go", "package main")
	write(t, dir, "go.mod", "module m")
	first := sourceKeyOf(t, dir)
	for _, change := range []struct {
		name, content string
		same          bool
		reason        string
	}{
		{"main_test.go", "package main", true, "a test is not built"},
		{"README.md", "text", true, "text is not built"},
		{"go.sum", "sum", false, "a dependency changed"},
		{"main.go", "package main // 2", false, "the source changed"},
	} {
		write(t, dir, change.name, change.content)
		now := sourceKeyOf(t, dir)
		if (now == first) != change.same {
			t.Errorf("%s: key changed: %t, yet %s", change.name, now != first, change.reason)
		}
		first = now
	}
	if other, err := SourceKey(dir, "flag"); err != nil || other == first {
		t.Errorf("a flag did not change the key: %v", err)
	}
}

func TestBuildRunsOnceAndIsNeverIncomplete(t *testing.T) {
	d := Under(t.TempDir())
	broken := errors.New("broken")
	_, err := d.Build("thing", "1", "making a thing", func(dir, _ string) error {
		write(t, dir, "half", "")
		return broken
	})
	if !errors.Is(err, broken) {
		t.Fatalf("error of a broken build: %v", err)
	}
	write(t, d.Builds, filepath.Join(".thing", "left"), "of a run that was killed")

	made := 0
	for range 2 {
		dir, err := d.Build("thing", "1", "making a thing", func(dir, final string) error {
			made++
			write(t, dir, "whole", final)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		entries, err := os.ReadDir(dir)
		if err != nil || len(entries) != 1 || entries[0].Name() != "whole" {
			t.Errorf("the build holds %v, %v; want one file, whole", entries, err)
		}
		if content, err := os.ReadFile(filepath.Join(dir, "whole")); err != nil || string(content) != dir {
			t.Errorf("the build ran for the folder %s, want %s: %v", content, dir, err)
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

func sourceKeyOf(t *testing.T, dir string) string {
	t.Helper()
	k, err := SourceKey(dir)
	if err != nil {
		t.Fatal(err)
	}
	return k
}
