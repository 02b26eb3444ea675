package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/test/benchscale/usage"
	"github.com/memcached-operator/memcached-operator/test/internal/audit"
)

func TestGaugesAreThoseOfTheControllerOfMemcacheds(t *testing.T) {
	const text = `# HELP controller_runtime_reconcile_total Total number of reconciliations per controller
controller_runtime_reconcile_total{controller="memcached",result="error"} 2
controller_runtime_reconcile_total{controller="memcached",result="success"} 1.5e+01
controller_runtime_reconcile_total{controller="memcachedbackup",result="success"} 100
controller_runtime_active_workers{controller="memcached"} 3
controller_runtime_max_concurrent_reconciles{controller="memcached"} 4
workqueue_depth{controller="memcached",name="memcached",priority="0"} 5
workqueue_depth{controller="memcached",name="memcached",priority="-100"} 6
go_goroutines 70
`
	got, err := parseGauges(strings.NewReader(text))
	if want := (gauges{Reconciles: 17, Queued: 14, Workers: 4}); err != nil || got != want {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	if _, err := parseGauges(strings.NewReader(`workqueue_depth{controller="memcached"} many`)); err == nil {
		t.Error("a value that is not a number: no error")
	}
	if workers, err := got.startedWorkers(); err != nil || workers != 4 {
		t.Errorf("%d workers, %v", workers, err)
	}
}

// Before a controller starts, controller-runtime has no metric of its workers or one that is 0. As the number of requests
// that must be in flight it would make every bottleneck wrong.
func TestWorkersAreUnknownBeforeTheControllerStarts(t *testing.T) {
	for _, text := range []string{"", "controller_runtime_max_concurrent_reconciles{controller=\"memcached\"} 0\n"} {
		g, err := parseGauges(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if n, err := g.startedWorkers(); err == nil {
			t.Errorf("%q: %d workers and no error", text, n)
		}
	}
}

func TestObjectsHaveTheNameOfTheirMemcached(t *testing.T) {
	for _, name := range []string{"m00017", "m00017-2", "m00017-preflight-0123456789", "m00017-1-abcde", "m00017.18a0b1c2d3e4f506"} {
		if got := memcachedOf(audit.Request{Name: name}); got != nameOf(17) {
			t.Errorf("%s belongs to %s", name, got)
		}
	}
	if numberOf(nameOf(17)) != 17 || numberOf("cache") != 0 {
		t.Error("the number of a name differs")
	}
}

func TestMemcachedIsUpToDateWhenNothingIsLeftToDo(t *testing.T) {
	upToDate := func() *v1alpha1.Memcached {
		m := &v1alpha1.Memcached{ObjectMeta: metav1.ObjectMeta{Generation: 2}}
		m.Status = v1alpha1.MemcachedStatus{ObservedGeneration: 2, ReadySize: shards, Version: "1.6.45", Conditions: []metav1.Condition{
			{Type: v1alpha1.ConditionAvailable, Status: metav1.ConditionTrue}, {Type: v1alpha1.ConditionProgressing, Status: metav1.ConditionFalse}}}
		for range shards {
			m.Status.Shards = append(m.Status.Shards, v1alpha1.ShardStatus{Version: "1.6.45", Current: true})
		}
		return m
	}
	if m := upToDate(); !isAvailable(m) || !isUpToDate("1.6.45")(m) || isUpToDate("1.6.38")(m) {
		t.Error("it is not up to date")
	}
	for name, change := range map[string]func(*v1alpha1.Memcached){
		"the spec is newer":        func(m *v1alpha1.Memcached) { m.Generation++ },
		"a shard is unavailable":   func(m *v1alpha1.Memcached) { m.Status.ReadySize-- },
		"an update is in progress": func(m *v1alpha1.Memcached) { m.Status.Update = &v1alpha1.UpdateStatus{} },
		"it is progressing":        func(m *v1alpha1.Memcached) { m.Status.Conditions[1].Status = metav1.ConditionTrue },
		"it is not available":      func(m *v1alpha1.Memcached) { m.Status.Conditions[0].Status = metav1.ConditionFalse },
		"a shard is not current":   func(m *v1alpha1.Memcached) { m.Status.Shards[1].Current = false },
		"a shard is older":         func(m *v1alpha1.Memcached) { m.Status.Shards[2].Version = "1.6.38" },
	} {
		m := upToDate()
		if change(m); isUpToDate("1.6.45")(m) {
			t.Errorf("%s, and it is up to date", name)
		}
	}
}

// sampleDocument has two runs whose figures are proportional to the size.
func sampleDocument() document {
	d := document{options: options{perNamespace: 100, window: time.Minute, from: "1.6.38", to: "1.6.45"}, machine: "A machine.", date: noon,
		idle: &idle{Alone: usage.Memory{Now: 30 << 20, Peak: 31 << 20}, Beside: usage.Memory{Now: 32 << 20, Peak: 33 << 20}}}
	for _, size := range []int{100, 1000} {
		r := run{Size: size, Limit: 256 << 20, Workers: 4, CommandLine: "GOGC=50"}
		for _, name := range []string{phaseCreate, phaseSteady, phaseResync, phaseRestart, phaseUpdate} {
			r.Phases = append(r.Phases, phase{Name: name, Took: time.Duration(size) * time.Second / 10, Reconciles: size, First: []time.Duration{time.Second, 2 * time.Second},
				Counts: audit.Counts{Reads: size, Writes: 10 * size, Made: 9 * size, Statuses: size, Events: 4 * size},
				Memory: usage.Memory{Now: int64(size) << 16, Peak: int64(size) << 17}})
		}
		d.runs = append(d.runs, r)
	}
	return d
}

func TestDocumentHasEachRun(t *testing.T) {
	text, err := sampleDocument().text()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| Memcacheds | 100 | 1,000 |",
		"| **Create**: seconds until all are Available | 10.0 | 100.0 |",
		"| … writes per Memcached | 11.00 | 11.00 |",
		"| … writes that created no object per Memcached | 2.00 | 2.00 |",
		"| … until half of them, and 99%, had a first write | 1.0 s, 2.0 s | 1.0 s, 2.0 s |",
		"| **Idle**: writes and events | 1,100 and 400 | 11,000 and 4,000 |",
		"| with 8,000 pods and 1,000 Secrets of others | 32 MiB | 33 MiB |",
		"`make bench-scale` measured this on 2026-01-01",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("there is no %q in\n%s", want, text)
		}
	}
}

func TestDisturbanceIsTheShareOfOtherPrograms(t *testing.T) {
	d := sampleDocument()
	if got := d.disturbance(); got != 0 {
		t.Errorf("without processor time the share is %g", got)
	}
	for _, r := range d.runs {
		for i := range r.Phases {
			r.Phases[i].Spent = spent{Machine: 100 * time.Second, Operator: 10 * time.Second, Server: 30 * time.Second, Controllers: 20 * time.Second, Bench: 15 * time.Second}
		}
	}
	if got := d.disturbance(); got != 0.25 {
		t.Errorf("the share is %g, want 0.25", got)
	}
}

func TestChartShowsEachRun(t *testing.T) {
	// Three lines of two runs, and two lines of two runs and of none.
	if got := bytes.Count(sampleDocument().chart().SVG(), []byte("<circle")); got != 3*2+2*3 {
		t.Errorf("it has %d marks", got)
	}
}

func TestParseRejectsInvalidOptions(t *testing.T) {
	o, err := parse([]string{"-n", "1000,100", "-out", ""})
	if err != nil || len(o.sizes) != 2 || o.sizes[0] != 100 {
		t.Errorf("%+v, %v", o, err)
	}
	for _, args := range [][]string{{"-n", "0"}, {"-n", "many"}, {"-together", "0"}, {"-from", "1.6.45"}} {
		if _, err := parse(append(args, "-out", "")); err == nil {
			t.Errorf("%q: no error", args)
		}
	}
}
