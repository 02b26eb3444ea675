package main

import (
	"strings"
	"testing"
	"time"
)

func TestTheDocumentTellsWhatBecameOfEachMutant(t *testing.T) {
	results := []result{
		{mutant: mutant{name: "a gate is dropped", area: "rollout", file: "a.go"}, killed: "TestGates", took: 1500 * time.Millisecond},
		{mutant: mutant{name: "a loop does not end", area: "rollout", file: "b.go"}, killed: "TestLoop", hung: true, took: time.Minute},
		{mutant: mutant{name: "a file is half written", area: "agent", file: "c.go"}, took: time.Second},
	}
	raw, err := document(results, time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC), 2)
	if err != nil {
		t.Fatal(err)
	}
	text := string(raw)
	for _, line := range []string{
		"2 of 3 mutants are killed. `make mutants` found this out on 2026-11-21, in 1 minutes on 2 cores,",
		"| a gate is dropped | `a.go` | `TestGates` | 1.5 |",
		"| a loop does not end | `b.go` | `TestLoop`, which hangs | 60.0 |",
		"| a file is half written | `c.go` | **nothing** | 1.0 |",
	} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("no line %q in:\n%s", line, text)
		}
	}
	if strings.Count(text, "\n## ") != 2 || strings.Index(text, "## rollout") > strings.Index(text, "## agent") {
		t.Errorf("the areas are not those of the list, in its order:\n%s", text)
	}
	if shown := table(results); strings.Count(shown, "\n") != 4 || !strings.Contains(shown, "survives") {
		t.Errorf("the table is\n%s", shown)
	}
}
