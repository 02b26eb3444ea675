package monitoring

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestEveryAlertHasItsAnnotationsAndRunbook(t *testing.T) {
	name := regexp.MustCompile(`^Memcached([A-Z][a-z]+)+$`)
	criticals := 0
	runbooks := map[string]bool{"README.md": true}
	for _, r := range slices.Concat(shardRules, operatorRules, []rule{operatorDown("")}) {
		if r.severity == "" {
			continue
		}
		if !name.MatchString(r.name) || r.summary == "" || !strings.Contains(r.description, "{{ $") && r.name != "MemcachedOperatorDown" {
			t.Errorf("%s lacks a name in CamelCase, a summary, or a description with its labels", r.name)
		}
		switch {
		case r.severity == critical:
			criticals++
			if r.wait != "5m" {
				t.Errorf("%s is critical and waits %s", r.name, r.wait)
			}
		case r.severity != warning && r.severity != info:
			t.Errorf("%s has the severity %s", r.name, r.severity)
		}
		file := r.name + ".md"
		runbooks[file] = true
		text, err := os.ReadFile(filepath.Join("..", "..", "docs", "runbooks", file))
		if err != nil {
			t.Errorf("%s has no runbook: %v", r.name, err)
			continue
		}
		last := 0
		for _, heading := range []string{"# " + r.name + "\n", "\n## Meaning\n", "\n## Impact\n", "\n## Diagnosis\n", "\n## Mitigation\n"} {
			at := strings.Index(string(text), heading)
			if at < last {
				t.Errorf("%s lacks %q, or has it in another order", file, strings.TrimSpace(heading))
			}
			last = max(at, last)
		}
	}
	if criticals != 3 {
		t.Errorf("%d alerts are critical, not 3", criticals)
	}
	entries, err := os.ReadDir(filepath.Join("..", "..", "docs", "runbooks"))
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if !runbooks[entry.Name()] {
			t.Errorf("%s belongs to no alert", entry.Name())
		}
	}
}
