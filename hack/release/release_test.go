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

// project creates a repository of this project without its releases, so that the first one is the first.
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
		if entry.IsDir() && slices.Contains([]string{".git", "bin", "dist", "catalog/releases", "catalog/configs"}, name) {
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
	files[changelogFile] = changes()
	return repository(t, files)
}

// changes returns a changelog with a change.
func changes() string {
	return "# Changelog\n\n## [Unreleased]\n\n### Added\n- It scales.\n\n[Unreleased]: https://example.com/compare/v0.9.0...HEAD\n"
}

// unreleased is the version of a release.
const unreleased = "1.0.0"

// prepared prepares a release and returns its output.
func prepared(t *testing.T, dir, version string) string {
	t.Helper()
	var out bytes.Buffer
	if err := (release{root: dir, version: version, now: now, out: &out}).prepare(t.Context()); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	return out.String()
}

func TestFirstReleaseAndItsUpgrade(t *testing.T) {
	dir := project(t)
	out := prepared(t, dir, unreleased)
	t.Logf("\n%s", out)

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
	for file, want := range map[string]string{
		"Makefile":                                                                       "\nVERSION ?= " + unreleased + "\n",
		"config/manager/kustomization.yaml":                                              "\n  newTag: v" + unreleased + "\n",
		"bundle/tests/scorecard/config.yaml":                                             "-scorecard:v" + unreleased + "\n",
		"config/scorecard/kustomization.yaml":                                            "\n  newTag: v" + unreleased + "\n",
		"bundle/manifests/memcached-operator.clusterserviceversion.yaml":                 "\n    createdAt: \"2030-01-02T03:04:05Z\"\n",
		"catalog/configs/memcached-operator/catalog.yaml":                                "name: memcached-operator.v" + unreleased + "\n",
		communityDir + "/operators/memcached-operator/ci.yaml":                           "\nupdateGraph: semver-mode\n",
		communityDir + "/operators/memcached-operator/1.0.0/tests/scorecard/config.yaml": "kind: Configuration\n",
	} {
		if content := read(t, filepath.Join(dir, file)); !strings.Contains(content, want) {
			t.Errorf("%s does not contain %q", file, want)
		}
	}
	for _, copied := range []string{"catalog/releases/" + unreleased, communityDir + "/operators/memcached-operator/" + unreleased} {
		if out, err := exec.Command("diff", "-r", filepath.Join(dir, "bundle"), filepath.Join(dir, copied)).CombinedOutput(); err != nil {
			t.Errorf("%s is not bundle/: %s", copied, out)
		}
	}
	for _, want := range []string{`(?m)^generating the bundle … done in [0-9.hms]+$`, `(?m)^  git push origin HEAD v1\.0\.0 `} {
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("the output does not match %s", want)
		}
	}

	changelog := read(t, filepath.Join(dir, changelogFile))
	want := "# Changelog\n\n## [Unreleased]\n\n## [1.0.0] - 2030-01-02\n\n### Added\n- It scales.\n\n" +
		"[Unreleased]: https://example.com/compare/v1.0.0...HEAD\n[1.0.0]: https://example.com/compare/v0.9.0...v1.0.0\n"
	if changelog != want {
		t.Errorf("the changelog is\n%swant\n%s", changelog, want)
	}

	if err := (release{root: dir, version: "1.1.0", now: now, out: io.Discard}).prepare(t.Context()); err == nil || !strings.Contains(err.Error(), "lists no change under") {
		t.Errorf("a release without changes: %v", err)
	}
	write(t, filepath.Join(dir, changelogFile), strings.Replace(changelog, "[Unreleased]\n", "[Unreleased]\n\n- It scales back.\n", 1))
	readme := filepath.Join(dir, "README.md")
	write(t, readme, read(t, readme)+"\n- It scales back\n  (1.1.0).\n- It flies (1.2.0).\n")
	git(t, dir, "commit", "-q", "-a", "-m", "Describe a change")
	const digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	if err := (release{root: dir, version: "1.1.0", digest: digest, now: now, out: io.Discard}).prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"images.yaml", "bundle/manifests/memcached-operator.clusterserviceversion.yaml"} {
		if !strings.Contains(read(t, filepath.Join(dir, file)), digest) {
			t.Errorf("%s lacks the digest", file)
		}
	}
	catalog := read(t, filepath.Join(dir, "catalog/configs/memcached-operator/catalog.yaml"))
	if want := "- name: memcached-operator.v1.1.0\n  replaces: memcached-operator.v1.0.0\n"; strings.Count(catalog, want) != 2 {
		t.Errorf("the catalog does not contain %q twice", want)
	}
	for _, document := range []string{"README.md", "docs/quickstart.md", "docs/install.md"} {
		if content := read(t, filepath.Join(dir, document)); !strings.Contains(content, `?ref=v1.1.0"`) || strings.Contains(content, "?ref=v1.0.0") {
			t.Errorf("%s does not install 1.1.0", document)
		}
	}
	for _, want := range []string{"\nThe commands above install the latest release, 1.1.0.\n", "\n- It scales back.\n- It flies (1.2.0).\n"} {
		if readme := read(t, filepath.Join(dir, "README.md")); !strings.Contains(readme, want) || strings.Contains(readme, "(1.1.0)") {
			t.Errorf("README.md does not contain %q, or has the mark (1.1.0):\n%s", want, readme)
		}
	}
	if tags := git(t, dir, "tag"); tags != "v1.0.0\nv1.1.0" {
		t.Errorf("the tags are %q", tags)
	}
}

func TestReleaseRejectsDigest(t *testing.T) {
	err := (release{root: repository(t, map[string]string{"a": ""}), version: "1.0.0", digest: "sha256:abc", now: now, out: io.Discard}).prepare(t.Context())
	if err == nil || !strings.Contains(err.Error(), `"sha256:abc" is not a digest`) {
		t.Errorf("the error is %v", err)
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
	for name, test := range map[string]struct {
		// interrupt is the step before the interruption.
		interrupt string
		// file has new content.
		file, content string
		want          string
	}{
		"interrupted": {
			interrupt: "rendering the catalog", want: "rendering the catalog: interrupted",
		},
		"failing generators": {
			file: "config/manifests/kustomization.yaml", content: "resources: [missing.yaml]\n", want: "generating the bundle: make bundle: exit status 2",
		},
		"generated files that are out of date": {
			file: "config/crd/bases/cache.memcached-operator.io_memcacheds.yaml", content: "\n", want: "run make generate manifests and commit them first:\n M config/crd/bases/",
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := project(t)
			if test.file != "" {
				write(t, filepath.Join(dir, test.file), test.content)
				git(t, dir, "commit", "-q", "-a", "-m", "a mistake")
			}
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
		version string
		// dirty is a file that is not committed.
		dirty string
		want  string
	}{
		"no version at all":                {"", "", `"" is not a version: use one such as VERSION=1.1.0`},
		"a version of two numbers":         {"1.2", "", `"1.2" is not a version`},
		"a version with a v":               {"v1.2.0", "", `"v1.2.0" is not a version`},
		"a version that no tag can be":     {"1.2.0+build", "", `"1.2.0+build" is not a version`},
		"a release that was released":      {"1.1.0", "", "1.1.0 is released already"},
		"a release that has only a tag":    {"1.3.0", "", "1.3.0 is released already"},
		"a version before the last":        {"1.0.1", "", "1.0.1 is not after 1.1.0, the last release"},
		"a candidate of the last":          {"1.1.0-rc.1", "", "1.1.0-rc.1 is not after 1.1.0"},
		"a tree with a file of its own":    {"1.2.0", "new.txt", "the tree has uncommitted changes: commit or revert them"},
		"a tree with a change":             {"1.2.0", "Makefile", " M Makefile"},
		"what an interrupted release left": {"1.2.0", "catalog/releases/1.2.0/a", "git clean -fdq -- Makefile CHANGELOG.md images.yaml config/manager/kustomization.yaml config/scorecard/kustomization.yaml config/samples/olmv1 bundle"},
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
			err := release{root: dir, version: test.version, now: now, out: io.Discard}.prepare(t.Context())
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
