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
	// workers that do one thing at a time each.
	workers = 4
	// keysEach is how many keys a worker has.
	keysEach = 500
	// pause of a worker after each thing it did.
	pause = 2 * time.Millisecond
	// repeats make a value as long as a small record.
	repeats = 8
	// sweepWithin is how long the last read of a key is tried.
	sweepWithin = 10 * time.Second
)

// Of a hundred things that a worker does, those are writes and deletions; the others
// are reads, one of so many of a key that is written to no more.
const (
	writesOf100    = 30
	deletesOf100   = 10
	oneOfSoManyOld = 8
)

// Finding is an answer that cannot be right.
type Finding struct {
	Kind Kind
	At   time.Time
	// Key that was read, what it held by the worker's book, and what was found.
	Key, Held, Found string
}

func (f Finding) String() string {
	return fmt.Sprintf("%s %s: %s held %s, and %s was read", f.At.Format("15:04:05.000"), f.Kind, f.Key, f.Held, f.Found)
}

// Report is what came of a checker's life.
type Report struct {
	// Reads, Writes and Deletes that were answered.
	Reads, Writes, Deletes int
	// Unanswered is how many writes and deletions may or may not have been done, and
	// Refused how many things were certainly not.
	Unanswered, Refused int
	// Lost is how many keys were found to hold nothing though they should.
	Lost     int
	Findings []Finding
	// Err is why a key could not be read in the end.
	Err error
}

// String tells the report in a sentence, and each finding in a line.
func (r Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d reads, %d writes and %d deletions were answered, %d without an answer, %d refused; %d items lost, %d answers that cannot be right",
		r.Reads, r.Writes, r.Deletes, r.Unanswered, r.Refused, r.Lost, len(r.Findings))
	for _, f := range r.Findings {
		b.WriteString("\n  " + f.String())
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
	r.Refused += other.Refused
	r.Lost += other.Lost
	r.Findings = append(r.Findings, other.Findings...)
	if r.Err == nil {
		r.Err = other.Err
	}
}

// Checker checks until it is stopped.
type Checker struct {
	stop    context.CancelFunc
	ended   sync.WaitGroup
	workers []*worker
	once    sync.Once
}

// Start begins to check the cache whose shards have these addresses, which must be
// empty of its keys. The seed chooses what is done to which key.
func Start(seed uint64, addresses ...string) *Checker {
	ctx, stop := context.WithCancel(context.Background())
	c := &Checker{stop: stop}
	for i := range workers {
		w := newWorker(fmt.Sprintf("checked-%d", i), keysEach, rand.New(rand.NewPCG(seed, uint64(i))), dial(addresses))
		c.workers = append(c.workers, w)
		c.ended.Go(func() {
			for ctx.Err() == nil {
				w.step()
				time.Sleep(pause)
			}
		})
	}
	return c
}

// Stop ends the checker, reads every key once more, and returns what came of it
// all. It may be called again.
func (c *Checker) Stop() Report {
	c.stop()
	c.ended.Wait()
	c.once.Do(func() {
		for _, w := range c.workers {
			c.ended.Go(w.sweep)
		}
		c.ended.Wait()
	})
	var r Report
	for _, w := range c.workers {
		r.add(w.report)
	}
	return r
}

// worker has keys of its own.
type worker struct {
	name   string
	random *rand.Rand
	store  store
	// keys that are written to, and old ones, each of which has a write without an
	// answer.
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

// step does one thing to one key.
func (w *worker) step() {
	i := w.random.IntN(len(w.keys))
	k := w.keys[i]
	switch dice := w.random.IntN(100); {
	case dice < writesOf100:
		w.version++
		w.wrote(i, w.version, w.store.set(k.name, value(k.name, w.version)), &w.report.Writes)
	case dice < writesOf100+deletesOf100:
		w.wrote(i, absent, w.store.delete(k.name), &w.report.Deletes)
	case len(w.old) > 0 && w.random.IntN(oneOfSoManyOld) == 0:
		_ = w.read(w.old[w.random.IntN(len(w.old))])
	default:
		_ = w.read(k)
	}
}

// wrote takes what came of a write of a version to a key.
func (w *worker) wrote(i, version int, err error, answered *int) {
	k, came := w.keys[i], outcomeOf(err)
	k.write(version, came)
	switch came {
	case done:
		*answered++
	case undone:
		w.report.Refused++
	case unknown:
		w.report.Unanswered++
		w.old = append(w.old, k)
		w.keys[i] = w.newKey()
	}
}

// read reads a key and compares it with the book.
func (w *worker) read(k *key) error {
	found, there, err := w.store.get(k.name)
	if err != nil {
		w.report.Refused++
		return err
	}
	w.report.Reads++
	version, known := absent, true
	if there {
		version, known = versionOf(k.name, found)
	}
	held := k.state
	kind := Wrong
	if known {
		kind = k.saw(version)
	}
	switch kind {
	case fine:
	case Lost:
		w.report.Lost++
	default:
		w.report.Findings = append(w.report.Findings, Finding{kind, time.Now(), k.name, held.String(), fmt.Sprintf("%.60q", found)})
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

// sweep reads every key.
func (w *worker) sweep() {
	deadline := time.Now().Add(sweepWithin)
	for _, keys := range [][]*key{w.keys, w.old} {
		for _, k := range keys {
			err := w.read(k)
			for err != nil && time.Now().Before(deadline) {
				time.Sleep(pause)
				err = w.read(k)
			}
			if err != nil {
				w.report.Err = fmt.Errorf("reading %s in the end: %w", k.name, err)
				return
			}
		}
	}
}

// value returns what a version of a key is.
func value(key string, version int) string {
	return strings.Repeat(key+"="+strconv.Itoa(version)+";", repeats)
}

// versionOf returns which version of a key a value is, if it is one.
func versionOf(key, text string) (int, bool) {
	rest, ok := strings.CutPrefix(text, key+"=")
	number, _, _ := strings.Cut(rest, ";")
	version, err := strconv.Atoi(number)
	return version, ok && err == nil && version > absent && text == value(key, version)
}
