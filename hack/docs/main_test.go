package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
)

const root = "../.."

func TestGeneratedPagesAreUpToDate(t *testing.T) {
	pages, err := generate(root)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range pages {
		got, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, string(got)); diff != "" {
			t.Errorf("%s is out of date: run \"make docs\" (-generated +committed)\n%s", name, diff)
		}
	}
}

func TestReferenceNamesTheFirstReleaseOfAField(t *testing.T) {
	root := t.TempDir() // of a project that has published 1.0.0, without two things
	for name, content := range map[string]string{"Makefile": "VERSION ?= 1.1.0\n", "CHANGELOG.md": "\n## [1.0.0] - 2026-11-22\n", "go.mod": "\tk8s.io/api v0.36.0\n"} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, folder := range []string{"catalog/releases", "config/crd/bases"} {
		if err := os.CopyFS(filepath.Join(root, folder), os.DirFS(filepath.Join("../..", folder))); err != nil {
			t.Fatal(err)
		}
	}
	crd := filepath.Join(root, "catalog/releases/1.0.0/manifests/cache.memcached-operator.io_memcacheds.yaml")
	content, err := os.ReadFile(crd)
	if err != nil {
		t.Fatal(err)
	}
	released := strings.Replace(string(content), "\n              tls:\n", "\n              encryption:\n", 1)
	released = regexp.MustCompile(`(?m)^ +- Available\n`).ReplaceAllString(released, "")
	if err := os.WriteFile(crd, []byte(released), 0o600); err != nil {
		t.Fatal(err)
	}
	releases, err := readSince(root)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"spec.size": "", "spec.handover.mode": "", `spec.handover.mode="Strict"`: "", "spec.missing": "",
		"spec.tls": "1.1.0", "spec.tls.secretName": "1.1.0", `spec.handover.mode="Available"`: "1.1.0",
	} {
		if got := releases["memcacheds"][path]; got != want {
			t.Errorf("%s is of the release %q, want %q", path, got, want)
		}
	}
	page, err := apiReference(root)
	if err != nil {
		t.Fatal(err)
	}
	for pattern, want := range map[string]int{
		"(?m)^\\| `spec\\.tls` \\|.* \\*Since 1\\.1\\.0\\.\\* \\|$": 1,
		"(?m)^\\| `spec\\.tls\\..*Since":                            0,
		"(?m)^\\| `spec\\.(size|memory|handover)`.*Since":           0,
		"`Available` \\*\\(since 1\\.1\\.0\\)\\*":                   1,
	} {
		if got := len(regexp.MustCompile(pattern).FindAllString(page, -1)); got != want {
			t.Errorf("%d lines match %s, want %d", got, pattern, want)
		}
	}
}

func TestEveryReasonHasASectionThatSaysWhatToDo(t *testing.T) {
	reasons, err := readReasons(filepath.Join(root, "api", "v1alpha1"))
	if err != nil {
		t.Fatal(err)
	}
	page, err := troubleshootingPage(reasons)
	if err != nil {
		t.Fatal(err)
	}
	var values []string
	for _, r := range reasons {
		values = append(values, r.value)
		if _, section, found := strings.Cut(page, "\n### `"+r.value+"`\n"); !found {
			t.Errorf("the page has no section %s", r.value)
		} else if section, _, _ = strings.Cut(section, "\n#"); !strings.Contains(section, "**Do:** ") {
			t.Errorf("the section %s doesn't say what to do", r.value)
		}
	}
	// One of each group, so that a group that is no longer found fails.
	for _, want := range []string{v1alpha1.ReasonShardsNotReady, v1alpha1.ReasonScalingIn, string(v1alpha1.GateImageNotVerified), v1alpha1.ReasonNodeLost,
		v1alpha1.EventRefillSkipped, v1alpha1.ReasonStoreFull, v1alpha1.EventDeletionBlocked, v1alpha1.ReasonSuspended, v1alpha1.EventMissedSchedule} {
		if !slices.Contains(values, want) {
			t.Errorf("the reason %s wasn't found in the API", want)
		}
	}
	if len(values) < 90 {
		t.Errorf("only %d reasons were found in the API", len(values))
	}
}

func TestReasonWithoutAnActionIsAnError(t *testing.T) {
	directory := t.TempDir()
	source := "package v1alpha1\n\n// Reasons of Ready.\nconst (\n\t// ReasonOdd: it is odd.\n\tReasonOdd = \"Odd\"\n)\n"
	if err := os.WriteFile(filepath.Join(directory, "conditions.go"), []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readReasons(directory); err == nil || !strings.Contains(err.Error(), "ReasonOdd needs a comment") {
		t.Errorf("error %v", err)
	}
}
