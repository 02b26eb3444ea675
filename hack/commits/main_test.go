package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestFault(t *testing.T) {
	for subject, want := range map[string]string{
		"Start 1.1.0":                       "",
		"Embed the time zones":              "",
		"Process a shard at a time":         "",
		"Makefile: build once":              "",
		"hack/release: keep the changelog":  "",
		"Re-read the status":                "",
		strings.Repeat("Add ", 18):          "",
		strings.Repeat("Add ", 18) + "x":    "it has 73 characters",
		"Add ü" + strings.Repeat("ü", 67):   "",
		"Add a field.":                      "full stop",
		"add a field":                       "capitalized verb",
		"":                                  "capitalized verb",
		"Area: ":                            "capitalized verb",
		"Added a field":                     `in place of "added"`,
		"Adds a field":                      `in place of "adds"`,
		"Adding a field":                    `in place of "adding"`,
		"The operator has a field":          `in place of "the"`,
		"Tests: the operator has a field":   `in place of "the"`,
		"Reliability: 10,183 seeds":         "capitalized verb",
		"Resources of a spec are corrected": `in place of "resources"`,
	} {
		if got := fault(subject); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%q: %q, want %q", subject, got, want)
		}
	}
}

// repository creates a repository with empty commits.
func repository(t *testing.T, subjects ...string) string {
	t.Helper()
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	dir := t.TempDir()
	git(t, dir, "init", "-q", "-b", "main")
	for _, subject := range subjects {
		git(t, dir, "-c", "user.name=A", "-c", "user.email=a@example.com", "commit", "-q", "--allow-empty", "-m", subject)
	}
	return dir
}

func git(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

func TestCommitsSinceTheFirstReleaseAreChecked(t *testing.T) {
	dir := repository(t, "Older ones are as they are.", since, "Start 1.1.0", "Fixed a bug", "Fix a bug")
	if checked, _, err := check(dir); err == nil || checked != 3 || !strings.Contains(err.Error(), `"Fixed a bug": start with a verb`) || strings.Contains(err.Error(), "Older") {
		t.Errorf("%d commits: %v", checked, err)
	}
	git(t, dir, "-c", "user.name="+bot, "-c", "user.email=a@example.com", "commit", "-q", "--allow-empty", "-m", strings.Repeat("long", 20))
	if checked, _, _ := check(dir); checked != 3 {
		t.Errorf("%d commits were checked, want those of authors other than %s", checked, bot)
	}
	dir = repository(t, "Start")
	if _, _, err := check(dir); err == nil || !strings.Contains(err.Error(), `no commit has the subject "Release 1.0.0"`) {
		t.Errorf("without a release: %v", err)
	}
}

func TestShallowCloneIsCheckedAsFarAsItReaches(t *testing.T) {
	origin := repository(t, "Older ones are as they are.", since, "Fixed a bug", "Fix a bug")
	for depth, test := range map[string]struct {
		checked int
		valid   bool
	}{"1": {1, true}, "2": {2, false}, "3": {2, false}} {
		dir := filepath.Join(t.TempDir(), "clone")
		git(t, t.TempDir(), "clone", "-q", "--depth="+depth, "file://"+origin, dir)
		checked, shallow, err := check(dir)
		if !shallow || checked != test.checked || (err == nil) != test.valid {
			t.Errorf("with %s commits, %d were checked, shallow %t: %v", depth, checked, shallow, err)
		}
	}
}
