package main

import (
	"bytes"
	"context"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

const root = "../.."

var now = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)

// git runs git in dir and returns what it prints.
func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	out, err := (release{root: dir}).git(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// repository creates a repository of files.
func repository(t *testing.T, files map[string]string) string {
	t.Helper()
	for name, value := range map[string]string{
		"GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@example.com", "GIT_COMMITTER_NAME": "A", "GIT_COMMITTER_EMAIL": "a@example.com",
		"GIT_CONFIG_GLOBAL": os.DevNull,
		// The release must not see the variables of the make that runs the tests.
		"MAKEFLAGS": "",
	} {
		t.Setenv(name, value)
	}
	dir := t.TempDir()
	for name, content := range files {
		write(t, filepath.Join(dir, name), content)
	}
	git(t, dir, "init", "-q", "-b", "main")
	git(t, dir, "add", ".")
	git(t, dir, "commit", "-q", "-m", "as it is")
	return dir
}

func write(t *testing.T, file, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// project creates a repository of this project.
func project(t *testing.T) string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		if entry.IsDir() && slices.Contains([]string{".git", "bin", "dist"}, name) {
			return filepath.SkipDir
		}
		// In a worktree .git is a file.
		if entry.Type().IsRegular() && name != ".git" {
			files[name] = read(t, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	files[changelogFile] = "# Changelog\n\n## [Unreleased]\n\n### Added\n- It scales.\n\n[Unreleased]: https://example.com/compare/v1.0.0...HEAD\n"
	files["README.md"] += "\n- It scales back\n  (9.0.0).\n- It flies (9.1.0).\n"
	return repository(t, files)
}

// program puts a program before those of this machine. The script's $REAL is the path of the real one.
func program(t *testing.T, name, script string) {
	t.Helper()
	real, err := exec.LookPath(name)
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\nREAL="+real+"\n"+script+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
}

const (
	// unreleased is the version of a release that there will not be.
	unreleased = "9.0.0"
	digest     = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
)

// The generators are the real ones. Their tests and controller-gen, which a release runs again, have tiers of their own.
func TestRelease(t *testing.T) {
	dir := project(t)
	program(t, "go", `case "$*" in "tool -modfile"*|"-C hack run ./monitoring"|"test "*|*" test "*) exit 0 ;; esac; exec "$REAL" "$@"`)
	var output bytes.Buffer
	if err := (release{root: dir, version: unreleased, digest: digest, now: now, out: &output}).prepare(t.Context()); err != nil {
		t.Fatalf("%v\n%s", err, &output)
	}
	t.Logf("\n%s", &output)

	if status := git(t, dir, "status", "--porcelain"); status != "" {
		t.Errorf("the tree has changes:\n%s", status)
	}
	if got, want := git(t, dir, "log", "-1", "--format=%s"), "Release "+unreleased; got != want {
		t.Errorf("the commit says %q, want %q", got, want)
	}
	if got := git(t, dir, "cat-file", "-t", "v"+unreleased); got != "tag" {
		t.Errorf("v%s is a %s, want an annotated tag", unreleased, got)
	}
	if got, want := git(t, dir, "rev-parse", "v"+unreleased+"^{}"), git(t, dir, "rev-parse", "HEAD"); got != want {
		t.Errorf("the tag is on %s, the commit is %s", got, want)
	}
	const csv = "bundle/manifests/memcached-operator.clusterserviceversion.yaml"
	install := "?ref=v" + unreleased + `"`
	for _, c := range [][2]string{
		{"Makefile", "\nVERSION ?= " + unreleased + "\n"},
		{"config/manager/kustomization.yaml", "\n  newTag: v" + unreleased + "\n"},
		{"bundle/tests/scorecard/config.yaml", "-scorecard:v" + unreleased + "\n"},
		{"config/scorecard/kustomization.yaml", "\n  newTag: v" + unreleased + "\n"},
		{csv, "\n    createdAt: \"2030-01-02T03:04:05Z\"\n"},
		{csv, digest},
		{"images.yaml", digest},
		{"README.md", install},
		{"README.md", "\nThe commands above install the latest release, " + unreleased + ".\n"},
		{"README.md", "\n- It scales back.\n- It flies (9.1.0).\n"},
		{"docs/quickstart.md", install},
		{"docs/install.md", install},
		{"catalog/configs/memcached-operator/catalog.yaml", "name: memcached-operator.v" + unreleased + "\n"},
		{communityDir + "/operators/memcached-operator/ci.yaml", "\nupdateGraph: semver-mode\n"},
	} {
		if content := read(t, filepath.Join(dir, c[0])); !strings.Contains(content, c[1]) {
			t.Errorf("%s does not contain %q", c[0], c[1])
		}
	}
	for _, copied := range []string{"catalog/releases/" + unreleased, communityDir + "/operators/memcached-operator/" + unreleased} {
		if out, err := exec.Command("diff", "-r", filepath.Join(dir, "bundle"), filepath.Join(dir, copied)).CombinedOutput(); err != nil {
			t.Errorf("%s is not bundle/: %s", copied, out)
		}
	}
	for _, want := range []string{`(?m)^generating the bundle … done in [0-9.hms]+$`, `(?m)^  git push origin HEAD v9\.0\.0 `} {
		if !regexp.MustCompile(want).MatchString(output.String()) {
			t.Errorf("the output does not match %s", want)
		}
	}
	changelog := read(t, filepath.Join(dir, changelogFile))
	want := "# Changelog\n\n## [Unreleased]\n\n## [9.0.0] - 2030-01-02\n\n### Added\n- It scales.\n\n" +
		"[Unreleased]: https://example.com/compare/v9.0.0...HEAD\n[9.0.0]: https://example.com/compare/v1.0.0...v9.0.0\n"
	if changelog != want {
		t.Errorf("the changelog is\n%swant\n%s", changelog, want)
	}

	if err := (release{root: dir, version: "9.1.0", now: now, out: io.Discard}).prepare(t.Context()); err == nil || !strings.Contains(err.Error(), "lists no change under") {
		t.Errorf("a release without changes: %v", err)
	}
}

// interrupter calls do when a text is written.
type interrupter struct {
	io.Writer
	when string
	do   func()
}

func (i interrupter) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte(i.when)) {
		i.do()
	}
	return i.Writer.Write(p)
}

func TestFailedReleaseRestoresTheTree(t *testing.T) {
	dir := project(t)
	for name, test := range map[string]struct {
		// interrupt is the step before the interruption.
		interrupt string
		// make is what make does.
		make, want string
	}{
		"interrupted":                          {"rendering the catalog", "echo >>bundle/more", "rendering the catalog: interrupted"},
		"failing generators":                   {"", "echo >>bundle/more; exit 2", "generating the bundle: make bundle: exit status 2"},
		"generated files that are out of date": {"", "echo >>config/crd/bases/cache.memcached-operator.io_memcacheds.yaml", "run make generate manifests and commit them first:\n M config/crd/bases/"},
	} {
		t.Run(name, func(t *testing.T) {
			program(t, "make", test.make)
			before := git(t, dir, "rev-parse", "HEAD")
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			out := interrupter{Writer: io.Discard, when: test.interrupt, do: cancel}
			if test.interrupt == "" {
				out.do = func() {}
			}
			err := release{root: dir, version: unreleased, now: now, out: out}.prepare(ctx)
			if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "nothing was committed, and the tree is restored") {
				t.Errorf("the error is %v, want %q in it", err, test.want)
			}
			if status := git(t, dir, "status", "--porcelain"); status != "" {
				t.Errorf("the tree has changes:\n%s", status)
			}
			if got := git(t, dir, "rev-parse", "HEAD"); got != before {
				t.Errorf("%s was committed", got)
			}
			if tags := git(t, dir, "tag"); tags != "" {
				t.Errorf("%s was tagged", tags)
			}
		})
	}
}

func TestCommitThatCannotBeTaggedIsReverted(t *testing.T) {
	files := map[string]string{"bundle/a": "", "bundle.Dockerfile": "", "catalog/a": "", "config/samples/olmv1/a": "", "config/manager/kustomization.yaml": "", "config/scorecard/kustomization.yaml": "", "Makefile": "", changelogFile: "", "images.yaml": "", "README.md": "", "docs/quickstart.md": "", "docs/install.md": ""}
	dir := repository(t, files)
	git(t, dir, "tag", "v1.0.0")
	before := git(t, dir, "rev-parse", "HEAD")
	write(t, filepath.Join(dir, "bundle/b"), "")
	if err := (release{root: dir, version: "1.0.0"}).commit(t.Context()); err == nil || !strings.Contains(err.Error(), "already exists") {
		t.Errorf("the error is %v", err)
	}
	if got := git(t, dir, "rev-parse", "HEAD"); got != before {
		t.Errorf("%s was committed", got)
	}
}

func TestReleaseRejects(t *testing.T) {
	for name, test := range map[string]struct {
		version, digest string
		// dirty is a file that is not committed.
		dirty string
		want  string
	}{
		"no version at all":                {"", "", "", `"" is not a version: use one such as VERSION=1.1.0`},
		"a version of two numbers":         {"1.2", "", "", `"1.2" is not a version`},
		"a version with a v":               {"v1.2.0", "", "", `"v1.2.0" is not a version`},
		"a version that no tag can be":     {"1.2.0+build", "", "", `"1.2.0+build" is not a version`},
		"a release that was released":      {"1.1.0", "", "", "1.1.0 is released already"},
		"a release that has only a tag":    {"1.3.0", "", "", "1.3.0 is released already"},
		"a version before the last":        {"1.0.1", "", "", "1.0.1 is not after 1.1.0, the last release"},
		"a candidate of the last":          {"1.1.0-rc.1", "", "", "1.1.0-rc.1 is not after 1.1.0"},
		"a tree with a file of its own":    {"1.2.0", "", "new.txt", "the tree has uncommitted changes: commit or revert them"},
		"a tree with a change":             {"1.2.0", "", "Makefile", " M Makefile"},
		"a digest that is too short":       {"1.2.0", "sha256:abc", "", `"sha256:abc" is not a digest`},
		"what an interrupted release left": {"1.2.0", "", "catalog/releases/1.2.0/a", "git clean -fdq -- Makefile CHANGELOG.md images.yaml config/manager/kustomization.yaml config/scorecard/kustomization.yaml config/samples/olmv1 bundle"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := repository(t, map[string]string{
				"Makefile": "VERSION ?= 1.1.0\n", "catalog/releases/1.0.0/a": "", "catalog/releases/1.1.0/a": "", "catalog/releases/checksums": "",
			})
			git(t, dir, "tag", "v1.3.0")
			if test.dirty != "" {
				write(t, filepath.Join(dir, test.dirty), "changed")
			}
			before := git(t, dir, "status", "--porcelain")
			err := release{root: dir, version: test.version, digest: test.digest, now: now, out: io.Discard}.prepare(t.Context())
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("the error is %v, want %q in it", err, test.want)
			}
			// Uncommitted changes stay.
			if after := git(t, dir, "status", "--porcelain"); after != before {
				t.Errorf("the tree was\n%s and is\n%s", before, after)
			}
		})
	}
}
