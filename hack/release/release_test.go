// Package release tests release.sh and plugin.sh.
package release

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/memcached-operator/memcached-operator/hack/internal/must"
)

const root = "../.."

// prepare runs the script of a project.
func prepare(t *testing.T, dir string, args ...string) (output string, err error) {
	t.Helper()
	out, err := exec.Command(filepath.Join(dir, "hack/release.sh"), args...).CombinedOutput()
	return string(out), err
}

// commit creates a repository of a folder.
func commit(t *testing.T, dir string) {
	t.Helper()
	for name, value := range map[string]string{
		"GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@example.com", "GIT_COMMITTER_NAME": "A", "GIT_COMMITTER_EMAIL": "a@example.com",
		"GIT_CONFIG_GLOBAL": os.DevNull,
		// The release must not see the variables of the make that runs the tests.
		"MAKEFLAGS": "",
	} {
		t.Setenv(name, value)
	}
	must.Run(t, dir, "git", "init", "-q", "-b", "main")
	must.Run(t, dir, "git", "add", ".")
	must.Run(t, dir, "git", "commit", "-q", "-m", "as it is")
}

func write(t *testing.T, file, content string) {
	t.Helper()
	must.Succeed(t, os.MkdirAll(filepath.Dir(file), 0o700))
	must.Succeed(t, os.WriteFile(file, []byte(content), 0o600))
}

// project creates a repository of this project.
func project(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	const list = "git ls-files -zco --exclude-standard --deduplicate"
	copying := exec.Command("bash", "-c", list+" | tar -c --null --ignore-failed-read -T - | tar -xC "+dir)
	copying.Dir = root
	if out, err := copying.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	makefile := filepath.Join(dir, "Makefile")
	write(t, makefile, regexp.MustCompile(`(?m)^(RELEASED \?= ).*`).ReplaceAllString(string(must.Read(t, makefile)), "${1}2026-02-02T03:04:05Z"))
	for name, date := range map[string]string{"old": "2026-02-01", "new": "2026-02-02"} {
		write(t, filepath.Join(dir, "docs/bench-"+name+".md"), "`make bench-"+name+"` measured the commit 01234567 on "+date+". A machine.\n")
	}
	write(t, filepath.Join(dir, "CHANGELOG.md"), "# Changelog\n\n## [Unreleased]\n\n### Added\n- It scales.\n\n[Unreleased]: https://example.com/compare/v1.0.0...HEAD\n")
	commit(t, dir)
	return dir
}

// program puts a program before those of this machine. The script's $REAL is the path of the real one.
func program(t *testing.T, name, script string) {
	t.Helper()
	real, err := exec.LookPath(name)
	must.Succeed(t, err)
	bin := t.TempDir()
	must.Succeed(t, os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\nREAL="+real+"\n"+script+"\n"), 0o700))
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
}

const (
	// unreleased is the version of a release that there will not be.
	unreleased = "9.0.0"
	community  = "dist/community-operators"
	digest     = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
)

// The generators are the real ones. Their tests and controller-gen, which a release runs again, have tiers of their own.
func TestRelease(t *testing.T) {
	dir := project(t)
	program(t, "date", "echo 2030-01-02T03:04:05Z")
	program(t, "make", `[ "$1" = release-images ] || exec "$REAL" "$@"`)
	program(t, "go", `case "$*" in "tool -modfile"*|"test "*|*" test "*) exit 0 ;; esac; exec "$REAL" "$@"`)
	output, err := prepare(t, dir, unreleased, digest)
	t.Logf("\n%s", output)
	must.Succeed(t, err)

	if status := must.Run(t, dir, "git", "status", "--porcelain"); status != "" {
		t.Errorf("the tree has changes:\n%s", status)
	}
	if got, want := must.Run(t, dir, "git", "log", "-1", "--format=%s"), "Release "+unreleased; got != want {
		t.Errorf("the commit says %q, want %q", got, want)
	}
	if got := must.Run(t, dir, "git", "cat-file", "-t", "v"+unreleased); got != "tag" {
		t.Errorf("v%s is a %s, want an annotated tag", unreleased, got)
	}
	if got, want := must.Run(t, dir, "git", "rev-parse", "v"+unreleased+"^{}"), must.Run(t, dir, "git", "rev-parse", "HEAD"); got != want {
		t.Errorf("the tag is on %s, the commit is %s", got, want)
	}
	const csv = "bundle/manifests/memcached-operator.clusterserviceversion.yaml"
	for _, c := range [][2]string{
		{"Makefile", "\nVERSION ?= " + unreleased + "\n"},
		{"config/manager/kustomization.yaml", "\n  newTag: v" + unreleased + "\n"},
		{"bundle/tests/scorecard/config.yaml", "-scorecard:v" + unreleased + "\n"},
		{"config/scorecard/kustomization.yaml", "\n  newTag: v" + unreleased + "\n"},
		{csv, "\n    createdAt: \"2030-01-02T03:04:05Z\"\n"},
		{csv, digest},
		{"images.yaml", digest},
		{"dist/install.yaml", "image: ghcr.io/memcached-operator/memcached-operator:v" + unreleased + "@" + digest + "\n"},
		{"charts/memcached-operator/templates/operator.yaml", ":v" + unreleased + "@" + digest},
		{"charts/memcached-operator/Chart.yaml", "\nversion: " + unreleased + "\n"},
		{"docs/install.md", "?ref=v" + unreleased + `"`},
		{"catalog/configs/memcached-operator/catalog.yaml", "name: memcached-operator.v" + unreleased + "\n"},
		{community + "/operators/memcached-operator/ci.yaml", "- latest\n"},
		{community + "-prod/operators/memcached-operator/" + unreleased + "/release-config.yaml", "- Stable\n"},
	} {
		if content := string(must.Read(t, filepath.Join(dir, c[0]))); !strings.Contains(content, c[1]) {
			t.Errorf("%s does not contain %q", c[0], c[1])
		}
	}
	for _, copied := range []string{"catalog/releases/" + unreleased, community + "/operators/memcached-operator/" + unreleased} {
		if out, err := exec.Command("diff", "-r", "-x", "release-config.yaml", filepath.Join(dir, "bundle"), filepath.Join(dir, copied)).CombinedOutput(); err != nil {
			t.Errorf("%s is not bundle/: %s", copied, out)
		}
	}
	if strings.Contains(output, "docs/bench-new.md") {
		t.Errorf("a page that was measured after the last release is reported:\n%s", output)
	}
	for _, want := range []string{`(?m)^warning: docs/bench-old\.md was measured on 2026-02-01, before the last release on 2026-02-02: measure it again$`, `(?m)^generating the bundle … done in [0-9]+ s$`, `(?m)^  git push origin HEAD v9\.0\.0 `} {
		if !regexp.MustCompile(want).MatchString(output) {
			t.Errorf("the output does not match %s", want)
		}
	}
	changelog := string(must.Read(t, filepath.Join(dir, "CHANGELOG.md")))
	want := "# Changelog\n\n## [Unreleased]\n\n## [9.0.0] - 2030-01-02\n\n### Added\n- It scales.\n\n" +
		"[Unreleased]: https://example.com/compare/v9.0.0...HEAD\n[9.0.0]: https://example.com/compare/v1.0.0...v9.0.0\n"
	if changelog != want {
		t.Errorf("the changelog is\n%swant\n%s", changelog, want)
	}

	if output, err := prepare(t, dir, "9.1.0"); err == nil || !strings.Contains(output, "lists no change under") {
		t.Errorf("a release without changes: %v, %s", err, output)
	}
}

func TestFailedReleaseRestoresTheTree(t *testing.T) {
	dir := project(t)
	const changes = "echo >>bundle/more"
	for name, test := range map[string]struct{ make, git, want string }{
		"interrupted":                          {`[ "$1" != catalog ] || kill -TERM "$PPID"`, "", "rendering the catalog … failed\ninterrupted"},
		"failing generators":                   {changes + "; echo no >&2; exit 2", "", "generating the bundle … failed\nno"},
		"generated files that are out of date": {"echo >>config/crd/bases/cache.memcached-operator.io_memcacheds.yaml", "", "run make generate manifests and commit them first:\nrelease:  M config/crd/bases/"},
		"a commit that can't be tagged":        {changes, `[ "$1 $2" != "tag -a" ] || exit 1`, "committing and tagging … failed"},
	} {
		t.Run(name, func(t *testing.T) {
			before := must.Run(t, dir, "git", "rev-parse", "HEAD")
			program(t, "make", test.make)
			program(t, "go", "exit 0")
			program(t, "git", test.git+"\nexec \"$REAL\" \"$@\"")
			output, err := prepare(t, dir, unreleased)
			if err == nil || !strings.Contains(output, test.want) || !strings.Contains(output, "nothing was committed, and the tree is restored") {
				t.Errorf("%v, the output is %s, want %q in it", err, output, test.want)
			}
			if status := must.Run(t, dir, "git", "status", "--porcelain"); status != "" {
				t.Errorf("the tree has changes:\n%s", status)
			}
			if got := must.Run(t, dir, "git", "rev-parse", "HEAD"); got != before {
				t.Errorf("%s was committed", got)
			}
			if tags := must.Run(t, dir, "git", "tag"); tags != "" {
				t.Errorf("%s was tagged", tags)
			}
		})
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
			dir := t.TempDir()
			for _, file := range []string{"catalog/releases/1.0.0/a", "catalog/releases/1.1.0/a", "catalog/releases/checksums", "Makefile"} {
				write(t, filepath.Join(dir, file), "VERSION ?= 1.1.0\n")
			}
			must.Succeed(t, os.CopyFS(filepath.Join(dir, "hack"), os.DirFS("..")))
			commit(t, dir)
			must.Run(t, dir, "git", "tag", "v1.3.0")
			if test.dirty != "" {
				write(t, filepath.Join(dir, test.dirty), "changed")
			}
			before := must.Run(t, dir, "git", "status", "--porcelain")
			output, err := prepare(t, dir, test.version, test.digest)
			if err == nil || !strings.Contains(output, test.want) {
				t.Errorf("%v, the output is %s, want %q in it", err, output, test.want)
			}
			// Uncommitted changes stay.
			if after := must.Run(t, dir, "git", "status", "--porcelain"); after != before {
				t.Errorf("the tree was\n%s and is\n%s", before, after)
			}
		})
	}
}
