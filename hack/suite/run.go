package main

import (
	"bytes"
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
	ok             bool
}

// all runs the tiers and reports.
func (r *run) all(ctx context.Context) error {
	r.began = time.Now()
	r.running = map[string]time.Time{}
	var wg sync.WaitGroup
	built := r.build(ctx, &wg)
	for _, l := range []lane{onCluster, processes, computes} {
		wg.Go(func() {
			for _, t := range r.tiers {
				if t.lane == l {
					r.tier(ctx, t, built)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	ticks := time.NewTicker(30 * time.Second)
	defer ticks.Stop()
	for {
		select {
		case <-done:
			return r.summary()
		case now := <-ticks.C:
			r.progress(now)
		}
	}
}

// tools is a set of "bin/cluster env" that is being built. err is valid when built is closed.
type tools struct {
	built chan struct{}
	err   error
}

// build builds what the tiers need, a set after the other.
func (r *run) build(ctx context.Context, wg *sync.WaitGroup) map[string]*tools {
	result := map[string]*tools{}
	needed := needed(r.tiers)
	for _, set := range needed {
		result[set] = &tools{built: make(chan struct{})}
	}
	wg.Go(func() {
		for _, set := range needed {
			began, name := time.Now(), "tools-"+set
			ended, log := r.runs(name), r.log(name)
			err := r.execute(ctx, []string{"nice", "-n", "5", r.cluster, "env", set}, nil, log)
			_ = log.Close()
			if took := time.Since(began); err != nil || took > 5*time.Second { // else it was built before
				r.report(report{tier: name, took: took, ok: err == nil, failed: count(err != nil)}, r.logged(name))
			}
			ended()
			result[set].err = err
			close(result[set].built)
		}
	})
	return result
}

func count(is bool) int {
	if is {
		return 1
	}
	return 0
}

// tier runs a tier when what it needs is built.
func (r *run) tier(ctx context.Context, t tier, built map[string]*tools) {
	for _, set := range t.needs {
		<-built[set].built
		if built[set].err != nil {
			r.report(report{tier: t.name, failed: 1}, "it needs tools-"+set+"\n")
			return
		}
	}
	if ctx.Err() != nil {
		r.report(report{tier: t.name, failed: 1}, "interrupted\n")
		return
	}
	began, results, log := time.Now(), newResults(), r.log(t.name)
	defer r.runs(t.name)()
	err := r.tests(ctx, t, t.command(r.more), results, log)
	v := results.verdict()
	none := v.none || t.target == "" && len(results.order) == 0
	ok := err == nil && !none && len(v.failed) == 0 && len(v.broken) == 0
	failures := results.failures(v)
	switch {
	case ok || failures != "":
	case err == nil && none && len(r.more) > 0:
		failures = "no test matches " + strings.Join(r.more, " ") + "\n"
	case err == nil && none:
		failures = "no test ran: check the names of tests and packages\n"
	default:
		failures = tail(r.logged(t.name))
	}
	if r.repeats(t, v) {
		ok = r.again(ctx, t, results, &v, log)
	}
	_ = log.Close()
	took := time.Since(began)
	if err := results.junit(filepath.Join(r.dist, "junit", t.name+".xml"), t.name, v, took); err != nil {
		ok, failures = false, failures+"writing the results: "+err.Error()+"\n"
	}
	rep := report{tier: t.name, passed: len(v.passed), failed: len(v.failed) + len(v.broken), took: took, ok: ok}
	if rep.passed+rep.failed == 0 { // a command is a test
		rep.passed = count(ok)
	}
	if rep.failed == 0 {
		rep.failed = count(!ok)
	}
	r.report(rep, failures)
}

// tests runs a command of a tier and reads its results.
func (r *run) tests(ctx context.Context, t tier, argv []string, results *results, log io.Writer) error {
	w := &reader{results: results, log: log}
	err := r.execute(ctx, t.inEnvironment(r.cluster, argv), t.variables(r.began, len(r.tiers) == 1), w)
	w.flush()
	return err
}

// repeats returns whether the failed tests of a tier are repeated.
func (r *run) repeats(t tier, v verdict) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if t.strict || len(v.failed) == 0 || len(v.broken) > 0 || r.repeated+len(v.failed) > repeatable {
		return false
	}
	r.repeated += len(v.failed)
	return true
}

// again repeats the failed tests, each alone, and moves those that pass to the passed ones, as flakes. It returns whether
// all passed.
func (r *run) again(ctx context.Context, t tier, first *results, v *verdict, log io.Writer) bool {
	var failed []testID
	for _, id := range v.failed {
		fmt.Fprintf(log, "\n=== repeating %s alone\n", id.short())
		second := newResults()
		err := r.tests(ctx, t, t.again(id), second, log)
		if w := second.verdict(); err != nil || len(w.passed) == 0 || len(w.failed) > 0 || len(w.broken) > 0 {
			failed = append(failed, id)
			continue
		}
		v.passed = append(v.passed, id)
		output := tail(first.outcomes[id].output.String())
		r.mu.Lock()
		r.flakes = append(r.flakes, flake{Time: time.Now().UTC(), Commit: r.commit, Tier: t.name, Package: id.pkg, Test: id.test, Output: output})
		r.mu.Unlock()
	}
	v.failed = failed
	return len(failed) == 0
}

// reader splits output into lines, for the results and the log.
type reader struct {
	results *results
	log     io.Writer
	partial []byte
}

func (w *reader) Write(p []byte) (int, error) {
	w.partial = append(w.partial, p...)
	for {
		end := bytes.IndexByte(w.partial, '\n')
		if end < 0 {
			return len(p), nil
		}
		if _, err := w.log.Write(w.results.line(w.partial[:end+1])); err != nil {
			return 0, err
		}
		w.partial = w.partial[end+1:]
	}
}

// flush reads a last line without an end.
func (w *reader) flush() {
	if len(w.partial) > 0 {
		_, _ = w.Write([]byte("\n"))
	}
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

// runs records that a tier runs, until stopped is called.
func (r *run) runs(name string) (stopped func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running[name] = time.Now()
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.running, name)
	}
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

// log creates the log of a tier.
func (r *run) log(name string) io.WriteCloser {
	if err := os.MkdirAll(filepath.Dir(r.logPath(name)), 0o755); err != nil {
		panic(err)
	}
	f, err := os.Create(r.logPath(name))
	if err != nil {
		panic(err)
	}
	return f
}

func (r *run) logged(name string) string {
	content, err := os.ReadFile(r.logPath(name))
	if err != nil {
		return err.Error()
	}
	return string(content)
}

// report prints the result of a tier, and what failed.
func (r *run) report(rep report, failures string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reports = append(r.reports, rep)
	if rep.ok {
		fmt.Fprintf(r.out, "passed  %s: %d in %d s\n", rep.tier, rep.passed, seconds(rep.took))
		return
	}
	fmt.Fprintf(r.out, "FAILED  %s after %d s, %d of %d. From %s:\n%s\n", rep.tier, seconds(rep.took), rep.failed, rep.passed+rep.failed, r.logPath(rep.tier), failures)
}

func seconds(d time.Duration) int { return int(d.Round(time.Second).Seconds()) }

// summary prints the table of seconds, the flakes, which it records, and the sums.
func (r *run) summary() error {
	whole := report{tier: "all", ok: true, took: time.Since(r.began)}
	var failed []string
	for _, rep := range r.reports {
		whole.passed += rep.passed
		whole.failed += rep.failed
		if !rep.ok {
			failed, whole.ok = append(failed, rep.tier), false
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
		fmt.Fprintf(r.out, "FLAKE %s: failed in the tier %s and passed alone, a fault that %s keeps\n", testID{f.Package, f.Test}.short(), f.Tier, flakes)
	}
	if len(failed) > 0 {
		fmt.Fprintf(r.out, "Failed: %s\n", strings.Join(failed, ", "))
	}
	fmt.Fprintf(r.out, "%d passed, %d failed\n", whole.passed, whole.failed)
	if !whole.ok {
		return errFailed
	}
	return nil
}
