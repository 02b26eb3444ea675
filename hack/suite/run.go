package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// errFailed is returned after everything about the failure has been printed.
var errFailed = errors.New("tests failed")

// repeatable is how many failed tests of a run are repeated. When more fail, the tree is wrong or the machine is.
const repeatable = 3

// rareCollection makes compilers, linkers and tests collect garbage less often, which takes a fifth less of the processors.
const rareCollection = "GOGC=400"

// run is a run of some tiers.
type run struct {
	tiers   []tier
	more    []string
	cluster string // the program of the local cluster
	dist    string // the folder of logs and results
	commit  string
	out     io.Writer

	began    time.Time
	builds   map[string]func() error // build a set of "bin/cluster env" once, after those before it
	mu       sync.Mutex
	repeated int
	running  map[string]time.Time // the tiers that run, and since when
	reports  []report
	flakes   []flake
}

// report is what a tier's run left.
type report struct {
	tier           string
	passed, failed int
	took           time.Duration
}

// all runs the tiers and reports.
func (r *run) all(ctx context.Context) error {
	r.began, r.running, r.builds = time.Now(), map[string]time.Time{}, map[string]func() error{}
	last := func() error { return nil }
	for _, set := range needed(r.tiers) {
		before := last
		last = sync.OnceValue(func() error {
			_ = before() // a set after the other; a tier reports what it lacks
			return r.build(ctx, set)
		})
		r.builds[set] = last
	}
	for _, folder := range []string{"logs", "junit"} {
		if err := os.MkdirAll(filepath.Join(r.dist, folder), 0o755); err != nil {
			return err
		}
	}
	var wg sync.WaitGroup
	wg.Go(func() { _ = last() })
	for _, l := range []lane{onCluster, processes, computes} {
		wg.Go(func() {
			for _, t := range r.tiers {
				if t.lane == l {
					r.tier(ctx, t)
				}
			}
		})
	}
	ticks := time.NewTicker(30 * time.Second)
	defer ticks.Stop()
	go func() {
		for now := range ticks.C {
			r.progress(now)
		}
	}()
	wg.Wait()
	return r.summary()
}

// build builds a set of "bin/cluster env".
func (r *run) build(ctx context.Context, set string) error {
	began, name := time.Now(), "tools-"+set
	log, end := r.begins(name)
	defer end()
	err := r.execute(ctx, []string{"nice", "-n", "5", r.cluster, "env", set}, nil, log)
	if took := time.Since(began); err != nil {
		r.report(report{tier: name, failed: 1, took: took}, r.logged(name))
	} else if took > 5*time.Second { // else it was built before
		r.report(report{tier: name, took: took}, "")
	}
	return err
}

// tier runs a tier when what it needs is built.
func (r *run) tier(ctx context.Context, t tier) {
	for _, set := range t.needs {
		if err := r.builds[set](); err != nil {
			r.report(report{tier: t.name, failed: 1}, "it needs tools-"+set+"\n")
			return
		}
	}
	if ctx.Err() != nil {
		r.report(report{tier: t.name, failed: 1}, "interrupted\n")
		return
	}
	began := time.Now()
	log, end := r.begins(t.name)
	defer end()
	results, err := r.tests(ctx, t, t.command(r.more), log)
	passed, failed := results.verdict()
	isTest := t.target != "" && len(results.outcomes) == 0 // the command
	problem := ""
	switch {
	case len(failed) > 0:
		for _, o := range failed {
			problem += o.shown()
		}
	case err != nil:
		problem = r.logged(t.name)
	case len(passed) == 0 && !isTest && len(r.more) > 0:
		problem = "no test matches " + strings.Join(r.more, " ") + "\n"
	case len(passed) == 0 && !isTest:
		problem = "no test ran: check the names of tests and packages\n"
	}
	if r.repeats(t, failed) {
		var again []*outcome
		for _, o := range failed {
			if r.passesAlone(ctx, t, o, log) {
				passed = append(passed, o)
			} else {
				again = append(again, o)
			}
		}
		if failed = again; len(again) == 0 {
			problem = ""
		}
	}
	rep := report{tier: t.name, passed: len(passed), failed: len(failed), took: time.Since(began)}
	if err := junit(filepath.Join(r.dist, "junit", t.name+".xml"), t.name, passed, failed, rep.took); err != nil {
		problem += "writing the results: " + err.Error() + "\n"
	}
	switch {
	case problem != "":
		rep.failed = max(rep.failed, 1)
	case isTest:
		rep.passed = 1
	}
	r.report(rep, problem)
}

// tests runs a command of a tier and reads its results.
func (r *run) tests(ctx context.Context, t tier, argv []string, log io.Writer) (*results, error) {
	output, input := io.Pipe()
	go func() {
		err := r.execute(ctx, t.inEnvironment(r.cluster, argv), t.variables(r.began, len(r.tiers) == 1), input)
		_ = input.CloseWithError(err)
	}()
	results := newResults()
	for lines := bufio.NewReader(output); ; {
		line, err := lines.ReadBytes('\n')
		_, _ = log.Write(results.line(line))
		if errors.Is(err, io.EOF) {
			return results, nil
		}
		if err != nil {
			return results, err
		}
	}
}

// repeats returns whether the failed tests of a tier are repeated.
func (r *run) repeats(t tier, failed []*outcome) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	isPackage := func(o *outcome) bool { return o.test == "" }
	if t.strict || slices.ContainsFunc(failed, isPackage) || r.repeated+len(failed) > repeatable {
		return false
	}
	r.repeated += len(failed)
	return len(failed) > 0
}

// passesAlone repeats a failed test alone. One that passes is a flake.
func (r *run) passesAlone(ctx context.Context, t tier, o *outcome, log io.Writer) bool {
	fmt.Fprintf(log, "\n=== repeating %s alone\n", o.testID)
	results, err := r.tests(ctx, t, t.again(o.testID), log)
	if passed, failed := results.verdict(); err != nil || len(passed) == 0 || len(failed) > 0 {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.flakes = append(r.flakes, flake{Time: time.Now().UTC(), Commit: r.commit, Tier: t.name, Package: o.pkg, Test: o.test, Output: tail(o.output.String())})
	return true
}

// execute runs a command in its own session, whose processes are stopped with it.
func (r *run) execute(ctx context.Context, argv, variables []string, out io.Writer) error {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = append(append(os.Environ(), rareCollection), variables...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = 20 * time.Second
	err := cmd.Run()
	if ctx.Err() != nil && cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // what did not stop; the group may be empty
	}
	return err
}

// progress prints which tiers run. Their logs contain more.
func (r *run) progress(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(r.running)) {
		fmt.Fprintf(r.out, "        %s: %d s, see %s\n", name, seconds(now.Sub(r.running[name])), r.logPath(name))
	}
}

func (r *run) logPath(name string) string { return filepath.Join(r.dist, "logs", name+".txt") }

// begins creates the log of a tier, which runs until end is called.
func (r *run) begins(name string) (log *os.File, end func()) {
	log, err := os.Create(r.logPath(name))
	if err != nil {
		panic(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running[name] = time.Now()
	return log, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.running, name)
		_ = log.Close()
	}
}

// logged returns the last lines of the log of a tier.
func (r *run) logged(name string) string {
	content, _ := os.ReadFile(r.logPath(name)) // which begins created
	return tail(string(content))
}

// report prints the result of a tier, and the problem of one that failed.
func (r *run) report(rep report, problem string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reports = append(r.reports, rep)
	if rep.failed == 0 {
		fmt.Fprintf(r.out, "passed  %s: %d in %d s\n", rep.tier, rep.passed, seconds(rep.took))
		return
	}
	fmt.Fprintf(r.out, "FAILED  %s after %d s, %d of %d. From %s:\n%s\n", rep.tier, seconds(rep.took), rep.failed, rep.passed+rep.failed, r.logPath(rep.tier), problem)
}

func seconds(d time.Duration) int { return int(d.Round(time.Second).Seconds()) }

// summary prints the table of seconds, the flakes, which it records, and the sums.
func (r *run) summary() error {
	whole := report{tier: "all", took: time.Since(r.began)}
	var failed []string
	for _, rep := range r.reports {
		whole.passed += rep.passed
		whole.failed += rep.failed
		if rep.failed > 0 {
			failed = append(failed, rep.tier)
		}
	}
	fmt.Fprintln(r.out)
	for _, rep := range append(slices.Clone(r.reports), whole) {
		fmt.Fprintf(r.out, "%-14s %5d s %6d tests\n", rep.tier, seconds(rep.took), rep.passed+rep.failed)
	}
	fmt.Fprintln(r.out)
	flakes := filepath.Join(r.dist, "flakes.json")
	if err := record(flakes, r.flakes); err != nil {
		return err
	}
	for _, f := range r.flakes {
		fmt.Fprintf(r.out, "FLAKE %s: failed in the tier %s and passed alone, a fault that %s keeps\n", testID{f.Package, f.Test}, f.Tier, flakes)
	}
	if len(failed) > 0 {
		fmt.Fprintf(r.out, "Failed: %s\n", strings.Join(failed, ", "))
	}
	fmt.Fprintf(r.out, "%d passed, %d failed\n", whole.passed, whole.failed)
	if len(failed) > 0 {
		return errFailed
	}
	return nil
}
