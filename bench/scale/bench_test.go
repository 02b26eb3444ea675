package scale

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/memcached-operator/memcached-operator/test/bench/report"
	"github.com/memcached-operator/memcached-operator/test/bench/usage"
	"github.com/memcached-operator/memcached-operator/test/internal/audit"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func at(milliseconds int) time.Time { return noon.Add(time.Duration(milliseconds) * time.Millisecond) }

// sampleDocument has two runs whose figures are proportional to the size.
func sampleDocument() document {
	d := document{options: options{perNamespace: 100, window: time.Minute, from: "1.6.38", to: "1.6.45"}, idle: &idle{Alone: usage.Memory{Now: 30 << 20, Peak: 31 << 20}, Beside: usage.Memory{Now: 32 << 20, Peak: 33 << 20}}}
	for _, size := range []int{100, 1000} {
		r := run{Size: size, Limit: 256 << 20, Workers: 4, CommandLine: "GOGC=50"}
		for _, name := range []string{phaseCreate, phaseSteady, phaseResync, phaseRestart, phaseUpdate} {
			r.Phases = append(r.Phases, phase{Name: name, Took: time.Duration(size) * time.Second / 10, Reconciles: size, First: []time.Duration{time.Second, 2 * time.Second},
				Counts: Counts{Reads: size, Writes: 10 * size, Made: 9 * size, Statuses: size, Events: 4 * size},
				Memory: usage.Memory{Now: int64(size) << 16, Peak: int64(size) << 17}})
		}
		d.runs = append(d.runs, r)
	}
	return d
}

func TestDocumentHasEachRun(t *testing.T) {
	var text string
	for _, table := range sampleDocument().result("A machine.").Tables {
		text += table.Markdown()
	}
	for _, want := range []string{
		"| Memcacheds | 100 | 1,000 |",
		"| **Create**: seconds until all are Available | 10.0 | 100.0 |",
		"| … writes per Memcached | 11.00 | 11.00 |",
		"| … writes that created no object per Memcached | 2.00 | 2.00 |",
		"| … until half of them, and 99%, had a first write | 1.0 s, 2.0 s | 1.0 s, 2.0 s |",
		"| **Idle**: writes and events | 1,100 and 400 | 11,000 and 4,000 |",
		"| with 8,000 pods and 1,000 Secrets of others | 32 MiB | 33 MiB |",
	} {
		if !strings.Contains(text, want) {
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
	pictures, err := sampleDocument().chart().Pictures()
	if err != nil {
		t.Fatal(err)
	}
	if got := bytes.Count(pictures[".svg"], []byte("<circle")); got != 3*2+2*3 {
		t.Errorf("it has %d marks", got)
	}
}

func TestParseRejectsInvalidOptions(t *testing.T) {
	valid := options{sizes: "1000,100", perNamespace: 1, from: "a", to: "b"}
	if sizes, err := valid.parse(); err != nil || len(sizes) != 2 || sizes[0] != 100 {
		t.Errorf("%v, %v", sizes, err)
	}
	for _, o := range []options{{sizes: "0", perNamespace: 1, to: "b"}, {sizes: "many", perNamespace: 1, to: "b"}, {sizes: "1", to: "b"}, {sizes: "1", perNamespace: 1}} {
		if _, err := o.parse(); err == nil {
			t.Errorf("%+v: no error", o)
		}
	}
}

func TestFirstWriteCountsFromTheAnswerToTheChange(t *testing.T) {
	changes := []audit.Request{{Name: "a", Answered: at(10)}, {Name: "b", Answered: at(10)}, {Name: "c", Answered: at(10)}}
	requests := []audit.Request{
		{Name: "a", Verb: "patch", Resource: "services", Received: at(5)}, // before the change
		{Name: "a", Verb: "get", Resource: "services", Received: at(11)},  // a read
		{Name: "a", Verb: "create", Resource: "events", Received: at(12)}, // an event
		{Name: "b-1", Verb: "patch", Resource: "services", Received: at(50)},
		{Name: "a-0", Verb: "patch", Resource: "services", Received: at(30)},
		{Name: "b-0", Verb: "patch", Resource: "services", Received: at(40)}, // answered later, received before
		{Name: "d", Verb: "patch", Resource: "services", Received: at(12)},
	}
	got := firstWrites(changes, requests)
	if len(got) != 2 || report.Quantile(got, 0) != 20*time.Millisecond || report.Quantile(got, 1) != 30*time.Millisecond {
		t.Errorf("%v, want 20 ms and 30 ms", got)
	}
}

func TestInFlightIsTheTimeInWhichEnoughRequestsOverlap(t *testing.T) {
	request := func(from, until int) audit.Request {
		return audit.Request{Verb: "patch", Resource: "services", Received: at(from), Answered: at(until)}
	}
	requests := []audit.Request{
		request(0, 10), request(5, 20), request(20, 30), request(10, 25), // two from 5 to 25
		request(40, 50), request(45, 46), // two from 45 to 46
		{Verb: "watch", Resource: "pods", Received: at(0), Answered: at(100)},
		{Verb: "create", Resource: "events", Received: at(0), Answered: at(100)},
		{Verb: "update", Group: "coordination.k8s.io", Resource: "leases", Received: at(0), Answered: at(100)},
	}
	if got := inFlight(requests, 2); got != 21*time.Millisecond {
		t.Errorf("two overlap for %s, want 21 ms", got)
	}
	if got := inFlight(requests, 4); got != 0 {
		t.Errorf("never four overlap, got %s", got)
	}
}

func TestEachRequestIsCountedOnce(t *testing.T) {
	requests := []audit.Request{
		{Verb: "get", Resource: "services", Code: 404},
		{Verb: "list", Resource: "pods", Code: 200},
		{Verb: "watch", Resource: "pods", Code: 200},
		{Verb: "patch", Resource: "services", Code: 201},
		{Verb: "create", Resource: "pods", Code: 201},
		{Verb: "patch", Resource: "replicasets", Code: 200},
		{Verb: "delete", Resource: "pods", Code: 200},
		{Verb: "patch", Resource: "pods", Code: 200, DryRun: true},
		{Verb: "patch", Resource: "memcacheds/status", Code: 409},
		{Verb: "create", Group: "events.k8s.io", Resource: "events", Code: 201},
		{Verb: "create", Group: "events.k8s.io", Resource: "events", Code: 409},
		{Verb: "update", Group: "coordination.k8s.io", Resource: "leases", Code: 200},
		{Verb: "create", Group: "authentication.k8s.io", Resource: "tokenreviews", Code: 201},
		{Verb: "create", Group: "authorization.k8s.io", Resource: "subjectaccessreviews", Code: 201},
	}
	got := countOf(requests)
	want := Counts{Reads: 3, Watches: 1, Writes: 4, Made: 2, Statuses: 1, Events: 2, Rejected: 1}
	if got != want {
		t.Errorf("counted %+v, want %+v", got, want)
	}
	if got.Changes() != 5 || got.Beyond() != 3 {
		t.Errorf("%d changes, %d beyond created objects; want 5 and 3", got.Changes(), got.Beyond())
	}
}
