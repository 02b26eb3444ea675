package checker

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	workers = 4
	// keysEach is the number of keys of a worker.
	keysEach = 500
	// pause of a worker after each operation.
	pause   = 4 * time.Millisecond
	repeats = 8
	// sweepTimeout bounds the last read of all keys of a worker.
	sweepTimeout = 10 * time.Second
)

// Of 100 operations of a worker these are writes and deletions. The others are reads, one in oldReadEvery of a key that
// is no longer written.
const (
	writesOf100  = 30
	deletesOf100 = 10
	oldReadEvery = 8
)

// maxLostKeys is the number of lost keys in the text of a report.
const maxLostKeys = 20

// Finding is a wrong answer.
type Finding struct {
	Kind Kind
	At   time.Time
	// Key that was read, what it should contain, and what was found.
	Key, Want, Found string
}

func (f Finding) String() string {
	return fmt.Sprintf("%s %s: read %s = %s, want %s", f.At.Format("15:04:05.000"), f.Kind, f.Key, f.Found, f.Want)
}

// Report summarizes all operations.
type Report struct {
	Reads, Writes, Deletes int
	// Unanswered writes and deletions may or may not have happened. Failed operations have not.
	Unanswered, Failed int
	// Lost counts keys that were empty but should not be.
	Lost int
	// LostKeys has a line for each of them, and Longest is the longest time without an answer, if the check used all
	// commands.
	LostKeys []string
	Longest  time.Duration
	Findings []Finding
	// Err is the error of a key that could not be read at the end.
	Err error
}

// String returns a summary, and a line for each finding.
func (r Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d reads, %d writes and %d deletions were answered, %d had no answer, %d failed; %d items lost, %d wrong answers",
		r.Reads, r.Writes, r.Deletes, r.Unanswered, r.Failed, r.Lost, len(r.Findings))
	for _, f := range r.Findings {
		b.WriteString("\n  " + f.String())
	}
	for i, key := range r.LostKeys {
		if i == maxLostKeys {
			break
		}
		b.WriteString("\n  lost " + key)
	}
	if r.Err != nil {
		fmt.Fprintf(&b, "\n  %v", r.Err)
	}
	return b.String()
}

func (r *Report) add(other Report) {
	r.Reads += other.Reads
	r.Writes += other.Writes
	r.Deletes += other.Deletes
	r.Unanswered += other.Unanswered
	r.Failed += other.Failed
	r.Lost += other.Lost
	r.LostKeys = append(r.LostKeys, other.LostKeys...)
	r.Findings = append(r.Findings, other.Findings...)
	if r.Err == nil {
		r.Err = other.Err
	}
}

// run is a check with workers of a kind.
type run[W interface {
	sweep()
	total() Report
}] struct {
	stop    context.CancelFunc
	running sync.WaitGroup
	workers []W
	once    sync.Once
}

// Stop stops the workers, reads each key once more, and returns the report. You can call it again.
func (r *run[W]) Stop() Report {
	r.stop()
	r.running.Wait()
	r.once.Do(func() {
		for _, w := range r.workers {
			r.running.Go(w.sweep)
		}
		r.running.Wait()
	})
	var report Report
	for _, w := range r.workers {
		report.add(w.total())
	}
	return report
}

// Checker checks a cache until Stop.
type Checker struct{ run[*worker] }

// Start starts to check the cache whose shards have these addresses, and which must not contain keys of a checker. The
// seed selects operations and keys.
func Start(seed uint64, addresses ...string) *Checker {
	ctx, stop := context.WithCancel(context.Background())
	c := &Checker{}
	c.stop = stop
	for i := range workers {
		w := newWorker(fmt.Sprintf("checked-%d", i), keysEach, rand.New(rand.NewPCG(seed, uint64(i))), dial(addresses))
		c.workers = append(c.workers, w)
		c.running.Go(func() {
			for ctx.Err() == nil {
				w.step()
				time.Sleep(pause) //nolint:forbidigo // the pace of a client
			}
		})
	}
	return c
}

// worker does one operation at a time on keys of its own.
type worker struct {
	name   string
	random *rand.Rand
	store  store
	// keys that are written, and old keys, whose last write had no answer.
	keys, old []*key
	made      int
	version   int
	report    Report
}

type key struct {
	name string
	state
}

func newWorker(name string, keys int, random *rand.Rand, s store) *worker {
	w := &worker{name: name, random: random, store: s}
	for range keys {
		w.keys = append(w.keys, w.newKey())
	}
	return w
}

func (w *worker) newKey() *key {
	w.made++
	return &key{name: w.name + "-" + strconv.Itoa(w.made)}
}

// step does one operation on one key.
func (w *worker) step() {
	i := w.random.IntN(len(w.keys))
	k := w.keys[i]
	switch dice := w.random.IntN(100); {
	case dice < writesOf100:
		w.version++
		w.wrote(i, w.version, w.store.set(k.name, value(k.name, w.version)), &w.report.Writes)
	case dice < writesOf100+deletesOf100:
		w.wrote(i, absent, w.store.delete(k.name), &w.report.Deletes)
	case len(w.old) > 0 && w.random.IntN(oldReadEvery) == 0:
		_ = w.read(w.old[w.random.IntN(len(w.old))])
	default:
		_ = w.read(k)
	}
}

// wrote records the outcome of a write of a version to a key.
func (w *worker) wrote(i, version int, err error, answered *int) {
	k, outcome := w.keys[i], outcomeOf(err)
	k.write(version, outcome)
	switch outcome {
	case done:
		*answered++
	case undone:
		w.report.Failed++
	case unknown:
		w.report.Unanswered++
		w.old = append(w.old, k)
		w.keys[i] = w.newKey()
	}
}

// read reads a key and compares it with what it should contain.
func (w *worker) read(k *key) error {
	found, there, err := w.store.get(k.name)
	if err != nil {
		w.report.Failed++
		return err
	}
	w.report.Reads++
	version, known := absent, true
	if there {
		version, known = versionOf(k.name, found)
	}
	want := k.state
	kind := Wrong
	if known {
		kind = k.saw(version)
	}
	switch kind {
	case fine:
	case Lost:
		w.report.Lost++
	default:
		w.report.Findings = append(w.report.Findings, Finding{kind, time.Now(), k.name, want.String(), fmt.Sprintf("%.60q", found)})
	}
	return nil
}

func (s state) String() string {
	text := "nothing"
	if s.now != absent {
		text = "version " + strconv.Itoa(s.now)
	}
	if s.open {
		text += fmt.Sprintf(" or %d", s.maybe)
	}
	return text
}

func (w *worker) total() Report { return w.report }

func (w *worker) sweep() {
	deadline := time.Now().Add(sweepTimeout)
	for _, keys := range [][]*key{w.keys, w.old} {
		for _, k := range keys {
			err := w.read(k)
			for err != nil && time.Now().Before(deadline) {
				time.Sleep(pause) //nolint:forbidigo // a shard that starts reports no event
				err = w.read(k)
			}
			if err != nil {
				w.report.Err = fmt.Errorf("reading %s at the end: %w", k.name, err)
				return
			}
		}
	}
}

func value(key string, version int) string {
	return strings.Repeat(key+"="+strconv.Itoa(version)+";", repeats)
}

// versionOf returns the version of a key that has this value.
func versionOf(key, text string) (int, bool) {
	rest, ok := strings.CutPrefix(text, key+"=")
	number, _, _ := strings.Cut(rest, ";")
	version, err := strconv.Atoi(number)
	return version, ok && err == nil && version > absent && text == value(key, version)
}
