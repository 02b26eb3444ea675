// Command release prepares a release, everything except pushing:
//
//	go -C hack run ./release VERSION [DIGEST]
//
// "make release VERSION=1.0.0" runs it. It sets version, time and the digest of the operator's image, also in the
// commands of documents, moves the unreleased changes in CHANGELOG.md to the version, generates the bundle, copies it
// to catalog/releases, renders and tests the catalog, writes dist/community-operators, builds the images, commits and
// tags. When a step fails or is interrupted, it restores the tree.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/blang/semver/v4"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if len(os.Args) != 2 && len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: make release VERSION=1.1.0 [IMAGE_DIGEST=sha256:…]")
		os.Exit(1)
	}
	r := release{root: "..", version: os.Args[1], digest: strings.Join(os.Args[2:], ""), now: time.Now(), out: os.Stdout, images: true}
	if err := r.prepare(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

type release struct {
	root    string // the project's folder
	version string
	digest  string // of the operator's image if it is pushed already
	now     time.Time
	out     io.Writer
	images  bool // whether to build them, which takes minutes
}

// changed are the paths that a release changes and commits. The generators also write those in generated, which must
// not change.
var (
	changed = []string{
		"Makefile", changelogFile, "images.yaml", "config/manager/kustomization.yaml", "config/scorecard/kustomization.yaml", "config/samples/olmv1",
		"bundle", "bundle.Dockerfile", "catalog", "README.md", "docs/quickstart.md", "docs/install.md",
	}
	generated = []string{"config/crd/bases", "config/rbac/role.yaml"}
)

// Tests skip the first of these steps, and the second one can't be interrupted.
const (
	building   = "building the images"
	committing = "committing and tagging"
)

// prepare prepares the release, or leaves the tree unchanged.
func (r release) prepare(ctx context.Context) error {
	start := time.Now()
	if err := r.check(ctx); err != nil {
		return err
	}
	steps := []struct {
		what string
		do   func(context.Context) error
	}{
		{"setting the version", r.name},
		{"generating the bundle", r.program("make", "bundle")},
		{"copying it to catalog/releases", r.program("make", "catalog-add")},
		{"rendering the catalog", r.program("make", "catalog")},
		{"checking that no other file changed", r.noOtherChange},
		{"testing the bundle and the catalog", r.program("go", "-C", "hack", "test", "-count=1", "./bundle", "./catalog")},
		{"writing " + communityDir, r.program("sh", "-c", r.community())},
		{building, r.program("make", "release-images")},
		{committing, r.commit},
	}
	for _, s := range steps {
		if s.what == building && !r.images {
			continue
		}
		err := r.step(s.what, func() error { return s.do(ctx) })
		if ctx.Err() != nil && s.what != committing {
			err = fmt.Errorf("%s: interrupted", s.what)
		}
		if err != nil {
			return errors.Join(err, r.restore())
		}
	}
	fmt.Fprintf(r.out, "\nPrepared release %s in %s. Nothing was pushed; to publish it:\n\n", r.version, time.Since(start).Round(time.Second))
	r.printNextSteps()
	return nil
}

// name sets version and time in the sources.
func (r release) name(context.Context) error {
	if err := r.set("Makefile", `VERSION \?= `, r.version); err != nil {
		return err
	}
	if err := r.set("Makefile", `RELEASED \?= `, r.now.UTC().Format(time.RFC3339)); err != nil {
		return err
	}
	var ofImage, ofReference string
	if r.digest != "" {
		ofImage, ofReference = " "+r.digest, " @"+r.digest
	}
	if err := r.set("Makefile", `DIGEST \?=`, ofReference); err != nil {
		return err
	}
	if err := r.set("images.yaml", `- name: ghcr\.io/memcached-operator/memcached-operator\n  digest:`, ofImage); err != nil {
		return err
	}
	if err := r.set("config/manager/kustomization.yaml", `  newTag: `, "v"+r.version); err != nil {
		return err
	}
	if err := r.set("config/scorecard/kustomization.yaml", `  newTag: `, "v"+r.version); err != nil {
		return err
	}
	// The documents don't install a candidate.
	if !strings.Contains(r.version, "-") {
		if err := r.set("README.md", "The commands above install the latest release, ", r.version+"."); err != nil {
			return err
		}
		if err := r.unmark(); err != nil {
			return err
		}
	}
	for _, document := range changed {
		if strings.HasSuffix(document, ".md") && document != changelogFile && !strings.Contains(r.version, "-") {
			if err := r.set(document, `kubectl apply --server-side -k "https://.*\?ref=`, "v"+r.version+`"`); err != nil {
				return err
			}
		}
	}
	changelog, err := r.changelog()
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.root, changelogFile), []byte(changelog), 0o644)
}

// set sets the value of the one line that begins with prefix, a regular expression.
func (r release) set(file, prefix, value string) error {
	path := filepath.Join(r.root, file)
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	line := regexp.MustCompile(`(?m)^(` + prefix + `).*$`)
	if n := len(line.FindAll(content, -1)); n != 1 {
		return fmt.Errorf("%s has %d lines that begin with %q, want one", file, n, prefix)
	}
	return os.WriteFile(path, line.ReplaceAll(content, []byte("${1}"+value)), 0o644)
}

// unmark removes the version from the README, which marks with it what no release had before.
func (r release) unmark() error {
	path := filepath.Join(r.root, "README.md")
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	mark := regexp.MustCompile(`\s+\(` + regexp.QuoteMeta(r.version) + `\)`)
	return os.WriteFile(path, mark.ReplaceAll(content, nil), 0o644)
}

// noOtherChange returns an error when a release must not change a file, such as a generated one that was out of date.
func (r release) noOtherChange(ctx context.Context) error {
	paths := []string{"status", "--porcelain", "--untracked-files=all", "--", "."}
	for _, path := range changed {
		paths = append(paths, ":(exclude)"+path)
	}
	status, err := r.git(ctx, paths...)
	if err != nil {
		return err
	}
	if status != "" {
		return fmt.Errorf("a release does not change these files; run make generate manifests and commit them first:\n%s", status)
	}
	return nil
}

// communityDir is for a pull request to https://github.com/k8s-operatorhub/community-operators.
const communityDir = "dist/community-operators"

// community returns the command that writes the bundle and its ci.yaml in the layout of OperatorHub.
func (r release) community() string {
	operator := communityDir + "/operators/memcached-operator"
	return fmt.Sprintf("rm -rf %s && mkdir -p %s && cp -R bundle %[2]s/%[3]s && cp catalog/ci.yaml %[2]s", communityDir, operator, r.version)
}

func (r release) commit(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	if _, err := r.git(ctx, append([]string{"add", "--"}, changed...)...); err != nil {
		return err
	}
	message := "Release " + r.version
	if _, err := r.git(ctx, "commit", "-q", "-m", message); err != nil {
		return err
	}
	if _, err := r.git(ctx, "tag", "-a", "v"+r.version, "-m", message); err != nil {
		_, undone := r.git(ctx, "reset", "-q", "--soft", "HEAD~1")
		return errors.Join(err, undone)
	}
	return nil
}

// restore undoes changes of the tree, which was clean.
func (r release) restore() error {
	if _, err := r.output(context.Background(), "sh", "-c", undo()); err != nil {
		return fmt.Errorf("nothing was committed, and restoring the tree failed: %w", err)
	}
	return errors.New("nothing was committed, and the tree is restored")
}

// undo returns the command that reverts an uncommitted release.
func undo() string {
	paths := strings.Join(slices.Concat(changed, generated), " ")
	return "git restore --source=HEAD --staged --worktree -- " + paths + " && git clean -fdq -- " + paths
}

func (r release) printNextSteps() {
	for _, line := range [][2]string{
		{"make docker-buildx", "the operator's image for all platforms (or make docker-push, for that of this machine only)"},
		{"make bundle-push catalog-push scorecard-push", "the images of bundle, catalog and scorecard"},
		{"git push origin HEAD v" + r.version, "the commit and its tag"},
		{communityDir, "copy it into a fork of github.com/k8s-operatorhub/community-operators, for a pull request"},
	} {
		fmt.Fprintf(r.out, "  %-44s   %s\n", line[0], line[1])
	}
}

// check returns an error when there can't be such a release now.
func (r release) check(ctx context.Context) error {
	version, err := semver.Parse(r.version)
	if err != nil || len(version.Build) > 0 {
		return fmt.Errorf("%q is not a version: use one such as VERSION=1.1.0, or VERSION=1.1.0-rc.1 for a candidate", r.version)
	}
	if r.digest != "" && !isDigest.MatchString(r.digest) {
		return fmt.Errorf("%q is not a digest: use one such as IMAGE_DIGEST=sha256:0123…, with 64 digits", r.digest)
	}
	status, err := r.git(ctx, "status", "--porcelain")
	if err != nil {
		return err
	}
	if status != "" {
		return fmt.Errorf("the tree has uncommitted changes: commit or revert them; to revert a release that was killed: %s\n%s", undo(), status)
	}
	// A tag without a folder is a release of another clone.
	tags, err := r.git(ctx, "tag", "--list", "v"+r.version)
	if err != nil {
		return err
	}
	last, err := r.lastRelease()
	if err != nil {
		return err
	}
	switch {
	case tags != "" || version.EQ(last):
		return fmt.Errorf("%s is released already, and a release never changes: release a greater version", version)
	case version.LT(last):
		return fmt.Errorf("%s is not after %s, the last release: OLM would not upgrade to it", version, last)
	}
	_, err = r.changelog()
	return err
}

var isDigest = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// lastRelease returns the greatest version in catalog/releases, 0.0.0 without one.
func (r release) lastRelease() (semver.Version, error) {
	var last semver.Version
	entries, err := os.ReadDir(filepath.Join(r.root, "catalog/releases"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return last, fmt.Errorf("reading the releases: %w", err)
	}
	for _, entry := range entries {
		if !entry.IsDir() {
			continue
		}
		version, err := semver.Parse(entry.Name())
		if err != nil {
			return last, fmt.Errorf("the name of catalog/releases/%s is not a version: %w", entry.Name(), err)
		}
		if version.GT(last) {
			last = version
		}
	}
	return last, nil
}

// step reports what it does, and how long it took.
func (r release) step(what string, do func() error) error {
	start := time.Now()
	fmt.Fprintf(r.out, "%s …", what)
	err := do()
	took := time.Since(start).Round(10 * time.Millisecond)
	if err != nil {
		fmt.Fprintf(r.out, " failed after %s\n", took)
		return fmt.Errorf("%s: %w", what, err)
	}
	fmt.Fprintf(r.out, " done in %s\n", took)
	return nil
}

// program returns a step that runs a program in the project's folder. Its error contains the end of the output.
func (r release) program(name string, args ...string) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := r.output(ctx, name, args...)
		return err
	}
}

func (r release) git(ctx context.Context, args ...string) (string, error) {
	return r.output(ctx, "git", args...)
}

func (r release) output(ctx context.Context, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = r.root
	var out, both bytes.Buffer
	cmd.Stdout, cmd.Stderr = io.MultiWriter(&out, &both), &both
	// After an interruption the tree is restored, and no child process must write to it then.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	if err := cmd.Run(); err != nil {
		lines := strings.Split(strings.TrimSpace(both.String()), "\n")
		return "", fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, strings.Join(lines[max(0, len(lines)-20):], "\n"))
	}
	return strings.TrimRight(out.String(), "\n"), nil
}
