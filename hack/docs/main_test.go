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

// The page and the plugin say the same about a reason, whichever condition, gate or event has it.
func TestReasonIsDescribedOnce(t *testing.T) {
	const gate = "// GateOdd: it is odd.\n//\n// Do: Wait.\nGateOdd Gate = \"Odd\"\n"
	for source, want := range map[string]string{
		"// ReasonOdd: it is odd.\nReasonOdd = \"Odd\"\n":                              "ReasonOdd needs a comment",
		gate + "ReasonOdd = string(GateOdd)\n":                                         "",
		gate + "// ReasonOdd: it is very odd.\n//\n// Do: run.\nReasonOdd = \"Odd\"\n": "ReasonOdd describes Odd again",
	} {
		directory := t.TempDir()
		must.Succeed(t, os.WriteFile(filepath.Join(directory, "conditions.go"), []byte("package v1beta1\n\nconst (\n"+source+")\n"), 0o600))
		all, err := readReasons(directory)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) || err == nil && len(all) != 1 {
			t.Errorf("%s\ngot %v, error %v", source, all, err)
		}
	}
}
