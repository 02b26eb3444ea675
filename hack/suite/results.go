package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// testID names a test, or with an empty test a package.
type testID struct{ pkg, test string }

// String returns the name without the path of the package.
func (id testID) String() string {
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
	Test       string // of a subtest: the name of its test, a slash and its own
	Elapsed    float64
	Output     string
}

// outcome is what is known of a test of the first level, or of a package.
type outcome struct {
	testID
	action  string // the last one
	elapsed time.Duration
	output  strings.Builder
	died    bool // a package whose program exited for another reason than failed tests
}

// results collects the events of a tier.
type results struct {
	outcomes []*outcome
	byID     map[testID]*outcome
}

func newResults() *results { return &results{byID: map[testID]*outcome{}} }

func (r *results) of(id testID) *outcome {
	if r.byID[id] == nil {
		r.byID[id] = &outcome{testID: id}
		r.outcomes = append(r.outcomes, r.byID[id])
	}
	return r.byID[id]
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
	o, pkg := r.of(testID{e.Package, name}), r.of(testID{e.Package, ""})
	pkg.died = pkg.died || isDeath(e.Output)
	switch {
	case e.Output != "" && pkg.died:
		// "go test" gives what a program prints when it dies, such as where its tests hang, to the test that printed last, which may have passed.
		pkg.output.WriteString(e.Output)
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

// isDeath returns whether a program that prints the line exits for another reason than failed tests.
func isDeath(line string) bool {
	return strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ") ||
		strings.HasPrefix(line, "exit status ") && strings.TrimSpace(line) != "exit status 1"
}

// verdict returns the tests that passed, and the packages and tests that failed. A package did if its failure isn't that of
// its tests: it does not build, died, hangs, or no test of it failed.
func (r *results) verdict() (passed, failed []*outcome) {
	explained, unfinished := map[string]bool{}, map[string]bool{}
	for _, o := range r.outcomes {
		switch {
		case o.test == "":
		case o.action == "pass":
			passed = append(passed, o)
		default:
			failed = append(failed, o)
			explained[o.pkg] = true
			unfinished[o.pkg] = unfinished[o.pkg] || o.action != "fail"
		}
	}
	var packages []*outcome
	for _, o := range r.outcomes {
		hasFailed := strings.HasSuffix(o.action, "fail") // or "build-fail"
		if o.test == "" && (unfinished[o.pkg] || hasFailed && (o.died || !explained[o.pkg])) {
			packages = append(packages, o)
		}
	}
	return passed, append(packages, failed...)
}

// raceRule is the line before and after a report of the race detector.
const raceRule = "==================\n"

// longest is how many lines of a test's output are shown; the log has all.
const longest = 150

// shown returns what is shown of the output, of a panic only those goroutines that run a test.
func (o *outcome) shown() string {
	output := o.output.String()
	if o.died {
		output = strings.Join(slices.DeleteFunc(strings.SplitAfter(output, "\n\n"), func(block string) bool {
			return strings.HasPrefix(block, "goroutine ") && !strings.Contains(block, "_test.go:")
		}), "")
	}
	return fmt.Sprintf("--- %s\n%s", o.testID, tail(output))
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
