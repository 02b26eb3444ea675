// Package sabotage tests that the simulation finds faults: it builds the simulation with one fault in the operator at a
// time and requires that a scenario or one of the first seeds fails.
package sabotage

import (
	"encoding/json"
	"fmt"
	"github.com/memcached-operator/memcached-operator/test/internal/pods"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// seeds that may be needed to find a fault.
const seeds = "30"

func TestOracleFindsSabotage(t *testing.T) {
	table := make([]string, len(defects))
	t.Cleanup(func() { t.Logf("what finds each fault:\n%s", strings.Join(table, "\n")) })
	for i, d := range defects {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			began := time.Now()
			binary := d.build(t)
			finder, found := "", ""
			for _, args := range [][]string{
				{"-test.run=^TestScenariosConverge$", "-test.failfast"},
				{"-test.run=^TestInvariantsHoldForRandomSeeds$", "-seeds=" + seeds, "-from=1", "-first", "-story=1"},
			} {
				if finder, found = run(t, binary, args); found != "" {
					break
				}
			}
			if found == "" {
				t.Errorf("neither a scenario nor one of %s seeds finds it", seeds)
			}
			table[i] = fmt.Sprintf("%-70s %4.0f s  %s: %s", d.name, time.Since(began).Seconds(), finder, found)
		})
	}
}

// TestDefectsOccurInTheSource fails with the change of the source, and not in the night after it.
func TestDefectsOccurInTheSource(t *testing.T) {
	for _, d := range defects {
		d.source(t)
	}
}

// source returns the path of the defect's file, and its content with the defect.
func (d defect) source(t *testing.T) (file, content string) {
	t.Helper()
	file, err := filepath.Abs("../../../" + d.file)
	pods.Must(t, err)
	raw, err := os.ReadFile(file)
	pods.Must(t, err)
	content = string(raw)
	for _, e := range d.edits {
		if n := strings.Count(content, e.old); n != 1 {
			t.Errorf("%s contains %q %d times, not once: update the table of defects", d.file, e.old, n)
		}
		content = strings.Replace(content, e.old, e.new, 1)
	}
	return file, content
}

// build builds the simulation's tests with the defect in a copy of its file.
func (d defect) build(t *testing.T) string {
	t.Helper()
	file, source := d.source(t)
	folder := t.TempDir()
	changed, overlay, binary := filepath.Join(folder, "changed.go"), filepath.Join(folder, "overlay.json"), filepath.Join(folder, "sim.test")
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{file: changed}})
	pods.Must(t, err)
	for name, content := range map[string][]byte{changed: []byte(source), overlay: replace} {
		pods.Must(t, os.WriteFile(name, content, 0o600))
	}
	if out, err := exec.CommandContext(t.Context(), "go", "test", "-c", "-overlay="+overlay, "-o", binary, "..").CombinedOutput(); err != nil {
		t.Fatalf("%s does not build: %v\n%s", d.name, err, out)
	}
	return binary
}

var (
	failed = regexp.MustCompile(`(?m)^ +--- FAIL: \w+/(\S+)|^(seed \d+), step`)
	reason = regexp.MustCompile(`(?m)^seed \d+, step \d+: (.+)|_test\.go:\d+: (.+)`)
)

// run runs the simulation's tests and returns which scenario or seed fails, and the invariant that does not hold. Both are
// empty when all pass.
func run(t *testing.T, binary string, args []string) (finder, found string) {
	t.Helper()
	simulation := exec.CommandContext(t.Context(), binary, args...)
	simulation.Dir = ".."
	out, err := simulation.CombinedOutput()
	if err == nil {
		return "", ""
	}
	by, why := failed.FindSubmatch(out), reason.FindSubmatch(out)
	if by == nil || why == nil || strings.Contains(string(out), "\npanic: ") {
		t.Fatalf("it fails without naming what does not hold: %v\n%s", err, out)
	}
	return string(by[1]) + string(by[2]), string(why[1]) + string(why[2])
}
