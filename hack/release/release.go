package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// release is one that is to be made.
type release struct {
	// root is the project's folder.
	root    string
	version string
	now     time.Time
	// out is told what is being done.
	out io.Writer
	// images says whether to build them, which takes minutes.
	images bool
}

// changed are the paths that a release changes and commits; generated are others
// that its generators write, and that must not change.
var (
	changed = []string{
		"Makefile", "config/manager/kustomization.yaml", "config/scorecard/kustomization.yaml", "config/samples/olmv1",
		"bundle", "bundle.Dockerfile", "catalog",
	}
	generated = []string{"config/crd/bases", "config/rbac/role.yaml"}
)

// Two steps that are not like the others: tests leave out the first one, and the
// last one is not interrupted.
const (
	building   = "building the images"
	committing = "committing and tagging"
)

// make makes the release, or leaves the tree as it was.
func (r release) make(ctx context.Context) error {
	start := time.Now()
	if err := r.check(ctx); err != nil {
		return err
	}
	steps := []struct {
		what string
		do   func(context.Context) error
	}{
		{"naming " + r.version, r.name},
		{"generating the bundle", r.program("make", "bundle")},
		{"keeping it in catalog/releases", r.program("make", "catalog-add")},
		{"rendering the catalog", r.program("make", "catalog")},
		{"looking for other changes", r.noOtherChange},
		{"testing the bundle", r.program("go", "test", "-count=1", "./hack/bundle")},
		{"testing the catalog", r.program("go", "-C", "hack/catalog", "test", "-count=1", "./...")},
		{"writing " + communityDir, r.community},
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
	fmt.Fprintf(r.out, "\nReleased %s in %s, and pushed nothing. What is left:\n\n", r.version, time.Since(start).Round(time.Second))
	return r.left()
}

// name puts version and time where they stand in the sources.
func (r release) name(context.Context) error {
	if err := r.set("Makefile", `VERSION \?= `, r.version); err != nil {
		return err
	}
	if err := r.set("Makefile", `RELEASED \?= `, r.now.UTC().Format(time.RFC3339)); err != nil {
		return err
	}
	if err := r.set("config/manager/kustomization.yaml", `  newTag: `, "v"+r.version); err != nil {
		return err
	}
	return r.set("config/scorecard/kustomization.yaml", `  newTag: `, "v"+r.version)
}

// set gives the line of file that begins with prefix, an expression, a value.
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

// noOtherChange is an error when something changed that a release does not
// change, such as a generated file that was not up to date.
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
		return fmt.Errorf("files changed that a release does not change; if they are generated, run make generate manifests and commit them first:\n%s", status)
	}
	return nil
}

// communityDir becomes part of a pull request to
// https://github.com/k8s-operatorhub/community-operators.
const communityDir = "dist/community-operators"

// community writes the release as OperatorHub wants it: the bundle in a folder
// that is called by its version, and how its versions follow each other.
func (r release) community(context.Context) error {
	if err := os.RemoveAll(filepath.Join(r.root, communityDir)); err != nil {
		return err
	}
	operator := filepath.Join(r.root, communityDir, "operators/memcached-operator")
	if err := os.CopyFS(filepath.Join(operator, r.version), os.DirFS(filepath.Join(r.root, "bundle"))); err != nil {
		return err
	}
	ci, err := os.ReadFile(filepath.Join(r.root, "catalog/ci.yaml"))
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(operator, "ci.yaml"), ci, 0o644)
}

// commit records the release. It is short, and not interrupted half-way.
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

// restore makes the tree what it was, for which it had to be clean.
func (r release) restore() error {
	for _, command := range undo() {
		if _, err := r.git(context.Background(), command...); err != nil {
			return fmt.Errorf("nothing was committed, and restoring the tree went wrong: %w\n%s", err, undoSentence())
		}
	}
	return errors.New("nothing was committed, and the tree is as it was")
}

// undo are git's commands that take a release back that was not committed.
func undo() [][]string {
	paths := slices.Concat(changed, generated)
	return [][]string{
		append([]string{"restore", "--source=HEAD", "--staged", "--worktree", "--"}, paths...),
		append([]string{"clean", "-fdq", "--"}, paths...),
	}
}

func undoSentence() string {
	var commands []string
	for _, command := range undo() {
		commands = append(commands, "git "+strings.Join(command, " "))
	}
	return "what a release left that was killed is taken back by: " + strings.Join(commands, " && ")
}

// left prints what is still to be done.
func (r release) left() error {
	table := tabwriter.NewWriter(r.out, 0, 0, 3, ' ', 0)
	for _, line := range [][2]string{
		{"make docker-buildx", "the operator's image for every platform (make docker-push: for this machine's, of dist/)"},
		{"make bundle-push catalog-push scorecard-push", "the images that OLM reads, and the scorecard's"},
		{"git push origin HEAD v" + r.version, "the commit and its tag"},
		{communityDir, "to be copied into a fork of github.com/k8s-operatorhub/community-operators, for a pull request"},
	} {
		fmt.Fprintf(table, "  %s\t%s\n", line[0], line[1])
	}
	return table.Flush()
}
