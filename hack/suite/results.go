package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// testID names a test, or with an empty test a package. A subtest's name is that of its test, a slash and its own.
type testID struct{ pkg, test string }

// short returns the name without the path of the package.
func (id testID) short() string {
	pkg := id.pkg[strings.LastIndex(id.pkg, "/")+1:]
	if id.test == "" {
		return pkg
	}
	return pkg + "." + id.test
}

// event is a line of "go test -json".
type event struct {
	Action     string
	Package    string
	ImportPath string // of a package that does not build
	Test       string
	Elapsed    float64
	Output     string
}

// outcome is what is known of a test of the first level, or of a package.
type outcome struct {
	action  string // the last one
	elapsed time.Duration
	output  bytes.Buffer
}

// results collects the events of a tier.
type results struct {
	outcomes map[testID]*outcome
	order    []testID
	dying    map[string]bool // packages whose program panicked
}

func newResults() *results {
	return &results{outcomes: map[testID]*outcome{}, dying: map[string]bool{}}
}

// line reads a line of output and returns what the log has of it.
func (r *results) line(line []byte) []byte {
	var e event
	if !bytes.HasPrefix(line, []byte("{")) || json.Unmarshal(line, &e) != nil || e.Action == "" {
		return line
	}
	r.event(e)
	return []byte(e.Output)
}

func (r *results) event(e event) {
	if e.Package == "" {
		e.Package, _, _ = strings.Cut(e.ImportPath, " ") // followed by the test binary that needs the package
	}
	name, _, isPart := strings.Cut(e.Test, "/")
	id := testID{e.Package, name}
	// "go test" gives what a program prints when it dies, such as where its tests hang, to the test that printed last, which may have passed.
	if e.Action == "output" {
		if r.dying[e.Package] = r.dying[e.Package] || panicked(e.Output); r.dying[e.Package] {
			id.test = ""
		}
	}
	o := r.outcomes[id]
	if o == nil {
		o = &outcome{}
		r.outcomes[id] = o
		r.order = append(r.order, id)
	}
	switch {
	case e.Output != "":
		o.output.WriteString(e.Output)
	case e.Action == "skip" && e.Test != "":
		o.output.WriteString("    " + e.Test + " was skipped. No test is: provide what it needs, or delete it.\n")
		o.action = "fail"
	case isPart:
	case o.action != "fail":
		o.action, o.elapsed = e.Action, time.Duration(e.Elapsed*float64(time.Second))
	}
}

// verdict is what a tier's tests say together with the exit status of their command.
type verdict struct {
	passed, failed []testID // tests
	broken         []testID // packages that failed otherwise: they do not build, panicked, hang, or no test of theirs failed
	none           bool     // programs of tests ran, and no test of theirs
}

func (r *results) verdict() verdict {
	var v verdict
	unfinished := map[string]bool{}
	failed := map[string]bool{}
	for _, id := range r.order {
		o := r.outcomes[id]
		switch {
		case id.test == "":
		case o.action == "pass":
			v.passed = append(v.passed, id)
		case o.action == "fail":
			v.failed = append(v.failed, id)
			failed[id.pkg] = true
		default:
			v.failed = append(v.failed, id)
			unfinished[id.pkg] = true
		}
	}
	for _, id := range r.order {
		if o := r.outcomes[id]; id.test == "" && (o.action == "fail" || o.action == "build-fail") {
			if unfinished[id.pkg] || !failed[id.pkg] || panicked(o.output.String()) {
				v.broken = append(v.broken, id)
			}
		} else if id.test == "" && unfinished[id.pkg] {
			v.broken = append(v.broken, id) // its command was killed
		}
	}
	v.none = len(r.order) > 0 && len(v.passed)+len(v.failed)+len(v.broken) == 0
	return v
}

// panicked returns whether the program of a package exited for another reason than failed tests.
func panicked(output string) bool {
	for line := range strings.Lines(output) {
		if strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ") ||
			strings.HasPrefix(line, "exit status ") && strings.TrimSpace(line) != "exit status 1" {
			return true
		}
	}
	return false
}

// raceRule is the line before and after a report of the race detector.
const raceRule = "==================\n"

// longest is how many lines of a test's output are shown; the log has all.
const longest = 150

// failures returns the output of failed tests and packages.
func (r *results) failures(v verdict) string {
	var b strings.Builder
	for _, id := range slices.Concat(v.broken, v.failed) {
		fmt.Fprintf(&b, "--- %s\n%s", id.short(), tail(ofTests(r.outcomes[id].output.String())))
	}
	return b.String()
}

// ofTests returns the output of a program without those goroutines of a panic that run no test.
func ofTests(output string) string {
	if !panicked(output) {
		return output
	}
	return strings.Join(slices.DeleteFunc(strings.SplitAfter(output, "\n\n"), func(block string) bool {
		return strings.HasPrefix(block, "goroutine ") && !strings.Contains(block, "_test.go:")
	}), "")
}

// tail returns the last lines of a text. The report of a data race comes last, since a test continues after one.
func tail(text string) string {
	if parts := strings.SplitN(text, raceRule, 3); len(parts) == 3 {
		text = parts[0] + parts[2] + raceRule + parts[1] + raceRule
	}
	all := strings.SplitAfter(strings.TrimRight(text, "\n"), "\n")
	if omitted := len(all) - longest; omitted > 0 {
		all = append([]string{fmt.Sprintf("[%d lines omitted]\n", omitted)}, all[omitted:]...)
	}
	return strings.Join(all, "") + "\n"
}
