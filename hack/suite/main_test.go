package main

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/memcached-operator/memcached-operator/hack/internal/must"
)

// scripted is a run whose go, make and bin/cluster are scripts.
type scripted struct {
	t *testing.T
	*run
	bin string
	out strings.Builder
}

func newScripted(t *testing.T, tiers ...tier) *scripted {
	t.Helper()
	s := &scripted{t: t, bin: t.TempDir()}
	s.run = &run{tiers: tiers, cluster: filepath.Join(s.bin, "cluster"), dist: t.TempDir(), commit: "abc", out: &s.out}
	t.Setenv("PATH", s.bin+":"+os.Getenv("PATH"))
	s.script("cluster", `echo "export SET=$2"`)
	return s
}

func (s *scripted) script(name, script string) {
	s.t.Helper()
	must.Succeed(s.t, os.WriteFile(filepath.Join(s.bin, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755))
}

// prints is a script that prints lines.
func prints(lines []string) string { return "cat <<'END'\n" + strings.Join(lines, "\n") + "\nEND\n" }

// goPrints makes "go test" print lines of the format of "go test -json", and others when a test is run alone.
func (s *scripted) goPrints(first []string, alone ...string) {
	s.t.Helper()
	s.script("go", `echo "$@" >>`+s.bin+"/calls\ncase \"$*\" in *-run=*)\n"+prints(alone)+";; *)\n"+prints(first)+";; esac")
}

func (s *scripted) calls() []string {
	s.t.Helper()
	content := must.Read(s.t, filepath.Join(s.bin, "calls"))
	return strings.Split(strings.TrimSpace(string(content)), "\n")
}

// want runs the tiers and checks the result and the last line.
func (s *scripted) want(err error, last string) {
	s.t.Helper()
	if got := s.all(s.t.Context()); !errors.Is(got, err) {
		s.t.Errorf("the run returned %v, want %v", got, err)
	}
	if lines := strings.Split(strings.TrimSpace(s.out.String()), "\n"); lines[len(lines)-1] != last {
		s.t.Errorf("the last line is %q, want %q, after\n%s", lines[len(lines)-1], last, s.out.String())
	}
}

// wantShown checks what else the run prints.
func (s *scripted) wantShown(wanted ...string) {
	s.t.Helper()
	for _, want := range wanted {
		if !strings.Contains(s.out.String(), want) {
			s.t.Errorf("%q is missing in\n%s", want, s.out.String())
		}
	}
}

func (s *scripted) recorded() []flake {
	s.t.Helper()
	content := must.Read(s.t, filepath.Join(s.dist, "flakes.json"))
	var flakes []flake
	must.Succeed(s.t, json.Unmarshal(content, &flakes))
	return flakes
}

func line(e event) string {
	e.Package = "example.com/a"
	content, _ := json.Marshal(e) // which has no value that it can't encode
	return string(content)
}

func on(action, test string) string { return line(event{Action: action, Test: test}) }

func output(test, text string) string {
	return line(event{Action: "output", Test: test, Output: text + "\n"})
}

func ofPackage(action string) string { return on(action, "") }

func ran(test, action string) []string {
	return []string{on("run", test), output(test, "output of "+test), on(action, test)}
}

var (
	unit   = tier{name: "unit", lane: computes, module: ".", packages: []string{"./..."}, needs: []string{forAPI}}
	failed = slices.Concat(ran("TestA", "pass"), ran("TestB", "fail"), []string{output("", "exit status 1"), ofPackage("fail")})
	passed = slices.Concat(ran("TestB", "pass"), []string{ofPackage("pass")})
)

func TestFailedTestThatPassesAloneIsARecordedFlake(t *testing.T) {
	s := newScripted(t, unit)
	s.goPrints(failed, passed...)
	s.want(nil, "2 passed, 0 failed")
	s.wantShown("\nFLAKE a.TestB: failed in the tier unit and passed alone")
	s.goPrints(passed)
	s.out.Reset()
	s.run.flakes, s.reports, s.repeated = nil, nil, 0
	s.want(nil, "1 passed, 0 failed") // the next run keeps the record
	flakes := s.recorded()
	if len(flakes) != 1 || flakes[0].Test != "TestB" || flakes[0].Package != "example.com/a" || flakes[0].Tier != "unit" || flakes[0].Commit != "abc" || flakes[0].Output != "output of TestB\n" {
		t.Errorf("recorded %+v", flakes)
	}
	calls := s.calls()
	if want := "-C . test -json example.com/a -run=^TestB$ -count=1"; len(calls) != 3 || calls[1] != want {
		t.Errorf("go was called with %q, want the second %q", calls, want)
	}
}

func TestTestThatFailsTwiceFails(t *testing.T) {
	s := newScripted(t, unit)
	s.goPrints(failed, failed...)
	s.want(errFailed, "1 passed, 1 failed")
	if flakes := s.recorded(); len(flakes) != 0 {
		t.Errorf("recorded %+v", flakes)
	}
	s.wantShown("unit.txt:\n--- a.TestB\noutput of TestB\n", "\nFailed: unit\n")
	if strings.Contains(s.out.String(), "output of TestA") {
		t.Errorf("prints the output of a test that passed:\n%s", s.out.String())
	}
}

// The alarm of "go test" prints where its tests hang as the output of the test that printed last.
func TestReportSaysWhereATestHangs(t *testing.T) {
	s := newScripted(t, unit)
	s.goPrints(slices.Concat([]string{on("run", "TestHangs")}, ran("TestPasses", "pass"), []string{
		output("TestPasses", "panic: test timed out after 20m0s"), output("TestPasses", "\trunning tests:"), output("TestPasses", "\t\tTestHangs (20m0s)"), output("TestPasses", ""),
		output("TestPasses", "goroutine 1 [chan receive]:"), output("TestPasses", "\ttesting.go:1"), output("TestPasses", ""),
		output("TestPasses", "goroutine 2 [select]:"), output("TestPasses", "\thangs_test.go:7"), ofPackage("fail")}))
	s.want(errFailed, "1 passed, 2 failed")
	s.wantShown("--- a\npanic: test timed out after 20m0s\n\trunning tests:\n\t\tTestHangs (20m0s)\n\ngoroutine 2 [select]:\n\thangs_test.go:7\n")
}

func TestReportHasTheDataRaceThatALongOutputBeginsWith(t *testing.T) {
	race := []string{on("run", "TestRace"), output("TestRace", "=================="), output("TestRace", "WARNING: DATA RACE"), output("TestRace", "==================")}
	s := newScripted(t, tier{name: "race", lane: computes, module: ".", packages: []string{"./..."}, strict: true})
	s.goPrints(slices.Concat(race, slices.Repeat([]string{output("TestRace", "later")}, longest), []string{on("fail", "TestRace"), ofPackage("fail")}))
	s.want(errFailed, "0 passed, 1 failed")
	s.wantShown("later\n==================\nWARNING: DATA RACE\n==================\n")
}

func TestNotRepeated(t *testing.T) {
	four := slices.Concat(ran("TestA", "fail"), ran("TestB", "fail"), ran("TestC", "fail"), ran("TestD", "fail"), []string{ofPackage("fail")})
	cases := map[string]struct {
		events []string
		strict bool
		last   string
	}{
		"tier of data loss":     {failed, true, "1 passed, 1 failed"},
		"more than three":       {four, false, "0 passed, 4 failed"},
		"panic":                 {slices.Concat(ran("TestA", "fail"), []string{output("", "panic: nil"), ofPackage("fail")}), false, "0 passed, 2 failed"},
		"other exit status":     {slices.Concat(ran("TestA", "fail"), []string{output("", "exit status 66"), ofPackage("fail")}), false, "0 passed, 2 failed"},
		"test without a result": {slices.Concat(ran("TestA", "fail"), []string{on("run", "TestB"), ofPackage("fail")}), false, "0 passed, 3 failed"},
		"package without tests": {slices.Concat(ran("TestA", "pass"), []string{ofPackage("fail")}), false, "1 passed, 1 failed"},
		"build": {[]string{`{"ImportPath":"example.com/a [example.com/a.test]","Action":"build-output","Output":"undefined: x\n"}`,
			`{"ImportPath":"example.com/a [example.com/a.test]","Action":"build-fail"}`, ofPackage("start"), ofPackage("fail")}, false, "0 passed, 1 failed"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			one := unit
			one.strict = c.strict
			s := newScripted(t, one)
			s.goPrints(c.events, passed...)
			s.want(errFailed, c.last)
			if calls := s.calls(); len(calls) != 1 {
				t.Errorf("go was called with %q, want no second call", calls)
			}
		})
	}
}

func TestSkippedTestFails(t *testing.T) {
	s := newScripted(t, unit)
	skipped := slices.Concat(ran("TestA", "skip"), []string{on("run", "TestB"), on("run", "TestB/part"), on("skip", "TestB/part"), on("pass", "TestB"), ofPackage("pass")})
	s.goPrints(skipped, skipped...)
	s.want(errFailed, "0 passed, 2 failed")
}

func TestCommandThatFailsAfterItsTestsFails(t *testing.T) {
	s := newScripted(t, unit)
	s.script("go", prints(passed)+"exit 1")
	s.want(errFailed, "1 passed, 1 failed")
}

func TestTargetWithoutTestsIsOneTest(t *testing.T) {
	lint := tier{name: "lint", lane: computes, target: "check-lint"}
	s := newScripted(t, lint)
	s.script("make", `[ "$2" = check-lint ] && echo words`)
	s.want(nil, "1 passed, 0 failed")
	s.script("make", "echo words; exit 2")
	s.out.Reset()
	s.reports = nil
	s.want(errFailed, "0 passed, 1 failed")
	s.wantShown("logs/lint.txt:\nwords\n")
}

func TestTierWithoutATestFails(t *testing.T) {
	none := []string{ofPackage("start"), output("", "testing: warning: no tests to run"), ofPackage("pass")}
	s := newScripted(t, unit)
	s.goPrints(none)
	s.want(errFailed, "0 passed, 1 failed")
	s = newScripted(t, tier{name: "e2e", lane: onCluster, target: "tier-e2e"})
	s.more = []string{"-test.run=Typo"}
	s.script("make", prints(none))
	s.want(errFailed, "0 passed, 1 failed")
	s.wantShown("logs/e2e.txt:\nno test matches -test.run=Typo\n")
}

func TestTestOfATargetIsRepeatedThroughMake(t *testing.T) {
	got := tier{name: "e2e", target: "tier-e2e"}.again(testID{"example.com/e2e", "TestA"})
	if want := []string{"make", "--no-print-directory", "tier-e2e", "ARGS=-test.run=^TestA$$"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// The shell would take these for a pipe and a subshell.
func TestMakeQuotesArguments(t *testing.T) {
	out, err := exec.Command("make", "-n", "-C", "../..", "mutants", "ARGS=-run=Test(A|B)$$ -v").Output()
	if want := " '-run=Test(A|B)$' '-v'\n"; err != nil || !strings.Contains(string(out), want) {
		t.Errorf("make runs %s, want %q in it (%v)", out, want, err)
	}
}

func TestTierWaitsForWhatItNeedsWhichIsBuiltInOrder(t *testing.T) {
	s := newScripted(t, unit, tier{name: "rights", lane: onCluster, module: ".", needs: []string{forCluster}})
	s.script("cluster", `case "$2" in cluster) sleep 0.2; touch `+s.bin+`/built;; api) [ -e `+s.bin+`/built ] || exit 1;; esac; echo "export SET=$2"`)
	s.script("go", `[ -e `+s.bin+`/built ] && [ "$SET" ] && echo '`+on("pass", "TestA")+`'`)
	s.want(nil, "2 passed, 0 failed")
}

// Some tests of processes measure the memory of programs that they start.
func TestProgramsUnderTestCollectGarbageAsUsual(t *testing.T) {
	for l, want := range map[lane]string{computes: "400", onCluster: "400", processes: ""} {
		s := newScripted(t, tier{name: "a", lane: l, module: "."})
		s.script("go", `[ "$GOGC" = "`+want+`" ] && echo '`+on("pass", "TestA")+`'`)
		s.want(nil, "1 passed, 0 failed")
	}
}

func TestTierFailsWithoutWhatItNeeds(t *testing.T) {
	s := newScripted(t, unit)
	s.goPrints(passed)
	s.script("cluster", "echo no network; exit 1")
	s.want(errFailed, "0 passed, 2 failed")
	s.wantShown("no network", "Failed: tools-api, unit\n")
}

func TestJUnitHasEachTest(t *testing.T) {
	s := newScripted(t, unit)
	colored := append([]string{output("TestB", "\x1b[31m")}, failed...)
	s.goPrints(colored, colored...)
	s.want(errFailed, "1 passed, 1 failed")
	content := string(must.Read(t, filepath.Join(s.dist, "junit", "unit.xml")))
	for _, want := range []string{`<testsuite name="unit" tests="2" failures="1" `, `<testcase classname="example.com/a" name="TestA" time="0"></testcase>`,
		`<testcase classname="example.com/a" name="TestB" time="0">`, "<failure>\uFFFD[31m&#xA;output of TestB&#xA;</failure>"} {
		if !strings.Contains(content, want) {
			t.Errorf("%q is missing in\n%s", want, content)
		}
	}
}

func TestSelection(t *testing.T) {
	for names, want := range map[string]string{"quick": "generated vet unit scenarios process", "host unit": "host unit", "unknown": "", "": ""} {
		selected, err := selectTiers(strings.Split(names, " "))
		var got []string
		for _, one := range selected {
			got = append(got, one.name)
		}
		if strings.Join(got, " ") != want || (err != nil) != (want == "") {
			t.Errorf("%q selects %q, want %q (%v)", names, got, want, err)
		}
	}
}

func TestEveryPackageWithGoroutinesIsRaced(t *testing.T) {
	files := must.Run(t, "../..", "git", "grep", "--untracked", "-lE", `^\s*go (func|[[:alnum:]_.]+)\(|"sync"|"sync/atomic"`, "--", "controllers/*.go", "internal/*.go", ":!*_test.go")
	for file := range strings.Lines(files) {
		pkg := "./" + filepath.Dir(file)
		if !slices.ContainsFunc(raced, func(r string) bool {
			return r == pkg || strings.HasPrefix(pkg+"/", strings.TrimSuffix(r, "...")) && strings.HasSuffix(r, "...")
		}) {
			t.Errorf("%s has goroutines or locks, and the tier race does not have it", pkg)
		}
	}
}

func TestContributingDescribesEachTier(t *testing.T) {
	content := string(must.Read(t, "../../CONTRIBUTING.md"))
	for _, one := range tiers {
		_, after, found := strings.Cut(content, "\n| `make test-"+one.name+"` | ")
		if content = after; !found {
			t.Fatalf("CONTRIBUTING.md does not describe the tier %s after those before it", one.name)
		}
	}
}

func TestPullRequestsRunAllTiers(t *testing.T) {
	content := must.Read(t, "../../.github/workflows/ci.yaml")
	for _, one := range tiers {
		runs := regexp.MustCompile(`(?m) test-(` + strings.Join(append(one.suites, one.name), "|") + `)( |$)`)
		if slices.Contains(one.suites, all) && !runs.Match(content) {
			t.Errorf("no job runs the tier %s", one.name)
		}
	}
}
