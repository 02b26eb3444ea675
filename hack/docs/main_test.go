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
	page, err := troubleshootingPage(reasons)
	must.Succeed(t, err)
	var values []string
	for _, r := range reasons {
		values = append(values, r.value)
		_, section, found := strings.Cut(page, "\n### `"+r.value+"`\n")
		if _, harmless, _ := strings.Cut(page, "\n## Reasons that need no action\n"); !found && strings.Count(harmless, "\n| `"+r.value+"` | ") == 1 {
			continue
		} else if !found {
			t.Errorf("the page has no section %s", r.value)
		} else if section, _, _ = strings.Cut(section, "\n#"); !strings.Contains(section, "**Do:** ") {
			t.Errorf("the section %s doesn't say what to do", r.value)
		}
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
