package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/hack/internal/must"
)

const root = "../.."

func TestEveryReasonSaysWhatToDo(t *testing.T) {
	reasons, err := readReasons(filepath.Join(root, "api", "v1beta1"))
	must.Succeed(t, err)
	page, err := troubleshootingPage(string(must.Read(t, filepath.Join(root, "docs/troubleshooting.md"))), reasons)
	must.Succeed(t, err)
	var values []string
	for _, r := range reasons {
		values = append(values, r.value)
		if strings.Count(page, "\n### `"+r.value+"`\n")+strings.Count(page, "\n| `"+r.value+"` | ") != 1 {
			t.Errorf("the page doesn't have %s once", r.value)
		}
	}
	if _, err := troubleshootingPage(strings.Replace(page, "### `StoreFull`", "### `Other`", 1), reasons); err == nil || !strings.Contains(err.Error(), "### `StoreFull`") {
		t.Errorf("without a section, the error is %v", err)
	}
	if _, err := metricsPage("no lists"); err == nil {
		t.Error("a page of metrics without lists is not an error")
	}
	// One of each group, so that a group that is no longer found fails.
	for _, want := range []string{v1beta1.ReasonShardsNotReady, v1beta1.ReasonScalingIn, string(v1beta1.GateImageNotVerified), v1beta1.ReasonNodeLost,
		v1beta1.EventRefillSkipped, v1beta1.ReasonStoreFull, v1beta1.EventDeletionBlocked, v1beta1.ReasonSuspended, v1beta1.EventMissedSchedule} {
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
	source := "package v1beta1\n\n// Reasons of Ready.\nconst (\n\t// ReasonOdd: it is odd.\n\tReasonOdd = \"Odd\"\n)\n"
	must.Succeed(t, os.WriteFile(filepath.Join(directory, "conditions.go"), []byte(source), 0o600))
	if _, err := readReasons(directory); err == nil || !strings.Contains(err.Error(), "ReasonOdd needs a comment") {
		t.Errorf("error %v", err)
	}
}
