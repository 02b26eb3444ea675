package olm

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func write(t *testing.T, dir, name, content string) {
	t.Helper()
	file := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestUpgradeStartsFromTheNewestReleaseBefore(t *testing.T) {
	root := t.TempDir()
	const cut = "cut one with"
	if got, err := newestBefore(root, "1.0.0"); err == nil || !strings.Contains(err.Error(), cut) {
		t.Errorf("without a catalog: %q, %v", got, err)
	}
	for _, version := range []string{"1.0.0", "1.1.0-rc.1", "1.9.0", "1.10.0"} {
		write(t, root, filepath.Join(releasesDir, version, "metadata/annotations.yaml"), "")
	}
	for version, want := range map[string]string{"1.11.0": "1.10.0", "1.10.0": "1.9.0", "1.1.0": "1.1.0-rc.1"} {
		if got, err := newestBefore(root, version); got != want || err != nil {
			t.Errorf("before %s: %q, %v; want %s", version, got, err, want)
		}
	}
	if got, err := newestBefore(root, "1.0.0"); err == nil || !strings.Contains(err.Error(), cut) {
		t.Errorf("before the first release: %q, %v", got, err)
	}
}

func TestSourcesOfAReleaseComeFromItsCommit(t *testing.T) {
	for name, value := range map[string]string{
		"GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@example.com", "GIT_COMMITTER_NAME": "A", "GIT_COMMITTER_EMAIL": "a@example.com",
		"GIT_CONFIG_GLOBAL": os.DevNull, "GIT_CEILING_DIRECTORIES": os.TempDir(),
	} {
		t.Setenv(name, value)
	}
	git := func(dir string, args ...string) {
		t.Helper()
		if _, err := output(t.Context(), dir, "git", args...); err != nil {
			t.Fatal(err)
		}
	}
	commit := func(root, makefile string) {
		t.Helper()
		write(t, root, "Makefile", makefile)
		git(root, "add", ".")
		git(root, "commit", "-q", "-m", "A change")
	}
	root := filepath.Join(t.TempDir(), "whole")
	r := Release{Version: "1.0.0"}
	write(t, root, filepath.Join(releasesDir, r.Version, "metadata/annotations.yaml"), "")
	const history = "run this in a clone with the whole history"
	if dir, err := r.source(t.Context(), root, t.TempDir()); err == nil || !strings.Contains(err.Error(), history) {
		t.Errorf("without a history: %q, %v", dir, err)
	}
	git(root, "init", "-q")
	commit(root, "# The version.\nVERSION ?= 1.0.0\n# More.")
	commit(root, "# The version.\nVERSION ?= 1.1.0\n# More.")
	dir, err := r.source(t.Context(), root, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if content, err := os.ReadFile(filepath.Join(dir, "Makefile")); err != nil || !strings.Contains(string(content), "1.0.0") {
		t.Errorf("the sources have the Makefile %q, %v", content, err)
	}

	shallow := filepath.Join(t.TempDir(), "shallow")
	git(root, "clone", "-q", "--depth=1", "file://"+root, shallow)
	if dir, err := r.source(t.Context(), shallow, t.TempDir()); err == nil || !strings.Contains(err.Error(), history) {
		t.Errorf("with a shallow clone: %q, %v", dir, err)
	}
}
