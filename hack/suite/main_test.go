package main

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
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

// goPrints makes "go test" print lines of the format of "go test -json", and others when a test is run alone.
func (s *scripted) goPrints(first []string, alone ...string) {
	s.t.Helper()
	s.script("go", fmt.Sprintf(`echo "$@" >>%s/calls
case "$*" in *-run=*) cat <<'END'
%s
END
;; *) cat <<'END'
%s
END
;; esac
[ ! -e %s/fails ] || exit 1`, s.bin, strings.Join(alone, "\n"), strings.Join(first, "\n"), s.bin))
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

func (s *scripted) recorded() []flake {
	s.t.Helper()
	content := must.Read(s.t, filepath.Join(s.dist, "flakes.json"))
	var flakes []flake
	must.Succeed(s.t, json.Unmarshal(content, &flakes))
	return flakes
}

func on(action, test string) string {
	return fmt.Sprintf(`{"Time":"2026-11-26T00:00:00Z","Action":%q,"Package":"example.com/a","Test":%q}`, action, test)
}

func output(test, text string) string {
	return fmt.Sprintf(`{"Action":"output","Package":"example.com/a","Test":%q,"Output":%q}`, test, text+"\n")
}

func ofPackage(action string) string {
	return fmt.Sprintf(`{"Action":%q,"Package":"example.com/a"}`, action)
}

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
	if want := "\nFLAKE a.TestB: failed in the tier unit and passed alone"; !strings.Contains(s.out.String(), want) {
		t.Errorf("no line begins with %q:\n%s", want, s.out.String())
	}
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
	for _, want := range []string{"unit.txt:\n--- a.TestB\noutput of TestB\n", "\nFailed: unit\n"} {
		if !strings.Contains(s.out.String(), want) {
			t.Errorf("%q is missing in\n%s", want, s.out.String())
		}
	}
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
	if want := "--- a\npanic: test timed out after 20m0s\n\trunning tests:\n\t\tTestHangs (20m0s)\n\ngoroutine 2 [select]:\n\thangs_test.go:7\n"; !strings.Contains(s.out.String(), want) {
		t.Errorf("%q is missing in\n%s", want, s.out.String())
	}
}

func TestReportHasTheDataRaceThatALongOutputBeginsWith(t *testing.T) {
	race := []string{on("run", "TestRace"), output("TestRace", "=================="), output("TestRace", "WARNING: DATA RACE"), output("TestRace", "==================")}
	s := newScripted(t, tier{name: "race", lane: computes, module: ".", packages: []string{"./..."}, strict: true})
	s.goPrints(slices.Concat(race, slices.Repeat([]string{output("TestRace", "later")}, longest), []string{on("fail", "TestRace"), ofPackage("fail")}))
	s.want(errFailed, "0 passed, 1 failed")
	if want := "later\n==================\nWARNING: DATA RACE\n==================\n"; !strings.Contains(s.out.String(), want) {
		t.Errorf("%q is missing in\n%s", want, s.out.String())
	}
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
	s.goPrints(passed)
	must.Succeed(t, os.WriteFile(filepath.Join(s.bin, "fails"), nil, 0o644))
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
	if !strings.Contains(s.out.String(), "logs/lint.txt:\nwords\n") {
		t.Errorf("the log isn't printed:\n%s", s.out.String())
	}
}

func TestTierWithoutATestFails(t *testing.T) {
	none := []string{ofPackage("start"), output("", "testing: warning: no tests to run"), ofPackage("pass")}
	s := newScripted(t, unit)
	s.goPrints(none)
	s.want(errFailed, "0 passed, 1 failed")
	s = newScripted(t, tier{name: "e2e", lane: onCluster, target: "tier-e2e"})
	s.more = []string{"-test.run=Typo"}
	s.script("make", "cat <<'END'\n"+strings.Join(none, "\n")+"\nEND")
	s.want(errFailed, "0 passed, 1 failed")
	if want := "logs/e2e.txt:\nno test matches -test.run=Typo\n"; !strings.Contains(s.out.String(), want) {
		t.Errorf("%q is missing in\n%s", want, s.out.String())
	}
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

func TestTierWaitsForWhatItNeeds(t *testing.T) {
	s := newScripted(t, unit)
	s.script("cluster", `[ "$1" = env ] && touch `+s.bin+`/built; echo "export SET=$2"`)
	s.script("go", `[ -e `+s.bin+`/built ] && [ "$SET" = api ] && echo '`+on("pass", "TestA")+`'`)
	s.want(nil, "1 passed, 0 failed")
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
	if !strings.Contains(s.out.String(), "no network") || !strings.Contains(s.out.String(), "Failed: tools-api, unit\n") {
		t.Errorf("the reason is missing:\n%s", s.out.String())
	}
}

func TestJUnitHasEachTest(t *testing.T) {
	s := newScripted(t, unit)
	colored := append([]string{`{"Action":"output","Package":"example.com/a","Test":"TestB","Output":"\u001b[31m\n"}`}, failed...)
	s.goPrints(colored, colored...)
	s.want(errFailed, "1 passed, 1 failed")
	content := must.Read(t, filepath.Join(s.dist, "junit", "unit.xml"))
	var suite struct {
		Tests    int `xml:"tests,attr"`
		Failures int `xml:"failures,attr"`
		Cases    []struct {
			Name    string `xml:"name,attr"`
			Failure string `xml:"failure"`
		} `xml:"testcase"`
	}
	must.Succeed(t, xml.Unmarshal(content, &suite))
	if suite.Tests != 2 || suite.Failures != 1 || suite.Cases[1].Name != "TestB" || suite.Cases[1].Failure != "\uFFFD[31m\noutput of TestB\n" {
		t.Errorf("got %+v", suite)
	}
}

func TestSelection(t *testing.T) {
	names := func(selected []tier) (names []string) {
		for _, t := range selected {
			names = append(names, t.name)
		}
		return names
	}
	for _, c := range []struct {
		names []string
		has   string
		not   string
	}{{[]string{"quick"}, "scenarios", "sim"}, {[]string{"all"}, "sim", "quick"}, {[]string{"host"}, "host", "unit"}} {
		selected, err := selectTiers(c.names)
		if err != nil || !slices.Contains(names(selected), c.has) || slices.Contains(names(selected), c.not) {
			t.Errorf("%v selects %v, %v", c.names, names(selected), err)
		}
	}
	for _, name := range []string{"unknown", ""} {
		if _, err := selectTiers([]string{name}); err == nil {
			t.Errorf("%q selects tiers", name)
		}
	}
}

func TestEveryPackageWithGoroutinesIsRaced(t *testing.T) {
	found := 0
	for _, folder := range []string{"controllers", "internal"} {
		err := filepath.WalkDir(filepath.Join("../..", folder), func(path string, _ os.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			content, err := os.ReadFile(path)
			pkg := "./" + filepath.ToSlash(strings.TrimPrefix(filepath.Dir(path), "../../"))
			if err != nil || !concurrent.Match(content) {
				return err
			}
			found++
			if !slices.ContainsFunc(raced, func(r string) bool {
				return r == pkg || strings.HasPrefix(pkg+"/", strings.TrimSuffix(r, "...")) && strings.HasSuffix(r, "...")
			}) {
				t.Errorf("%s has goroutines or locks, and the tier race does not have it", pkg)
			}
			return nil
		})
		must.Succeed(t, err)
	}
	if found < 10 {
		t.Errorf("found only %d such files", found)
	}
}

// concurrent matches code that starts goroutines or locks.
var concurrent = regexp.MustCompile(`(?m)^\s*go (func|[\w.]+)\(|"sync"|"sync/atomic"`)

func TestContributingDescribesEachTier(t *testing.T) {
	content := string(must.Read(t, "../../CONTRIBUTING.md"))
	for _, one := range tiers {
		_, after, found := strings.Cut(content, "\n| `make test-"+one.name+"` | ")
		if content = after; !found {
			t.Fatalf("CONTRIBUTING.md does not describe the tier %s after those before it", one.name)
		}
	}
}
