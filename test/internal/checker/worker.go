package checker

import (
	"encoding/base64"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
)

type keyKind int

const (
	text keyKind = iota
	counter
	// binary keys contain bytes that a request has as base64.
	binary
	large
)

// item is a key and what it contains as far as its worker knows.
type item struct {
	kind keyKind
	name string
	content
	// token is the CAS of a read when serial was tokenSerial.
	token       uint64
	tokenSerial int
	// serial counts the changes of the value.
	serial  int
	version int
}

// worker does one operation at a time, of any kind, on keys of its own.
type worker struct {
	name       string
	random     *rand.Rand
	client     *client
	clock      *clock
	keys, old  []*item
	made       int
	largeBytes int
	// began is when the operation in progress did.
	began  time.Time
	report Report
}

func newWorker(o Options, number int, c *client, answers *clock) *worker {
	w := &worker{name: fmt.Sprintf("checked-%d", number), random: rand.New(rand.NewPCG(o.Seed, uint64(number))), client: c, clock: answers}
	for n := range o.Keys {
		kind := text
		switch n % 8 {
		case 0, 1:
			kind = counter
		case 2:
			kind = binary
		}
		w.keys = append(w.keys, w.newItem(kind))
	}
	if number == 0 && o.LargeBytes > 0 {
		w.largeBytes = o.LargeBytes
		for range 3 {
			w.keys = append(w.keys, w.newItem(large))
		}
	}
	return w
}

func (w *worker) newItem(kind keyKind) *item {
	w.made++
	k := &item{kind: kind, name: fmt.Sprintf("%s-%d", w.name, w.made), content: content{before: map[uint64]struct{}{}}}
	if kind == binary {
		k.name += " \x01\xff"
	}
	return k
}

// do sends a command for a key, with flags and, for one that stores it, a value.
func (w *worker) do(command string, k *item, flags string, value ...string) (protocol.Head, []byte, error) {
	name := k.name
	if k.kind == binary {
		name, flags = base64.StdEncoding.EncodeToString([]byte(k.name)), flags+" b"
	}
	request := command + " " + name + flags + "\r\n"
	if len(value) > 0 {
		request = fmt.Sprintf("%s %s %d%s\r\n%s\r\n", command, name, len(value[0]), flags, value[0])
	}
	head, data, err := w.client.do([]byte(request))
	isWrong := protocol.IsAnswer(err) || errors.Is(err, protocol.ErrMalformed)
	if err == nil || isWrong {
		w.clock.answered()
	}
	if isWrong && w.report.Err == nil {
		w.report.Err = fmt.Errorf("%.60q: %w", request, err)
	}
	return head, data, err
}

// step does one operation on one key.
func (w *worker) step() {
	w.began = time.Now()
	i := w.random.IntN(len(w.keys))
	k := w.keys[i]
	if k.kind == large && w.random.IntN(4) != 0 {
		return
	}
	if len(w.old) > 0 && w.random.IntN(20) == 0 {
		w.read(w.old[w.random.IntN(len(w.old))])
		return
	}
	now := time.Now()
	dice := w.random.IntN(100)
	certain, there := k.certain(now), k.now.there
	switch {
	case dice < 20:
		w.set(k)
	case dice < 26:
		w.delete(k)
	case dice < 30 && certain && !there:
		w.addOrVivify(k)
	case dice < 42 && certain && there:
		w.modify(k)
	case dice < 50 && certain && there:
		w.touch(k)
	case dice < 52 && certain && there:
		w.invalidate(k)
	case dice < 56 && certain && there:
		w.swap(k)
	default:
		w.read(k)
	}
	if k.open() {
		w.old = append(w.old, k)
		w.keys[i] = w.newItem(k.kind)
	}
}

// expiry returns a random one as an argument, and when it is over.
func (w *worker) expiry(k *item) (string, time.Time) {
	seconds := 0
	switch dice := w.random.IntN(20); {
	case k.kind == large || dice < 12:
		return "0", time.Time{}
	case dice == 12:
		seconds = 1 + w.random.IntN(3)
	case dice < 19:
		seconds = 60 + w.random.IntN(1000)
	default:
		// Above 30 days it is an absolute time.
		at := time.Now().Add(40 * 24 * time.Hour).Truncate(time.Second)
		return strconv.FormatInt(at.Unix(), 10), at
	}
	return strconv.Itoa(seconds), time.Now().Add(time.Duration(seconds) * time.Second)
}

func (w *worker) newValue(k *item) string {
	k.version++
	switch k.kind {
	case counter:
		return strconv.Itoa(w.random.IntN(1000) * 10)
	case large:
		part := fmt.Sprintf("%s=%d;", k.name, k.version)
		return strings.Repeat(part, (w.largeBytes/2+w.random.IntN(w.largeBytes/2))/len(part))
	default:
		return strings.Repeat(fmt.Sprintf("%s=%d;", k.name, k.version), 1+w.random.IntN(16))
	}
}

// wrote records the outcome of a change.
func (w *worker) wrote(k *item, next stored, err error, answered *int) {
	came := outcomeOf(err)
	next.within = max(next.within, time.Since(w.began))
	k.write(next, came)
	switch came {
	case done:
		k.serial++
		*answered++
	case undone:
		w.report.Failed++
	case unknown:
		k.serial++
		w.report.Unanswered++
	}
}

// unexpected records an answer that is neither success nor that there is no item.
func (w *worker) unexpected(k *item, head protocol.Head) {
	if w.report.Err == nil {
		w.report.Err = fmt.Errorf("unexpected answer for %.60q: %s", k.name, head.Code)
	}
	k.write(stored{}, unknown)
}

// changed reports whether a request changed an item that was there, or may have done so. It records any other answer.
func (w *worker) changed(k *item, head protocol.Head, err error) bool {
	switch {
	case err != nil || head.Code == protocol.MetaHit || head.Code == protocol.MetaValue:
		return true
	case isMiss(head):
		w.compare(k, stored{})
	default:
		w.unexpected(k, head)
	}
	return false
}

func (w *worker) set(k *item) {
	ttl, at := w.expiry(k)
	next := stored{there: true, text: w.newValue(k), flags: w.random.Uint32(), expires: at}
	head, _, err := w.do("ms", k, fmt.Sprintf(" F%d T%s", next.flags, ttl), next.text)
	if err == nil && head.Code != protocol.MetaHit {
		w.unexpected(k, head)
		return
	}
	w.wrote(k, next, err, &w.report.Writes)
}

func (w *worker) delete(k *item) {
	certain, there := k.certain(time.Now()), k.now.there
	head, _, err := w.do("md", k, "")
	switch {
	case err != nil:
	case isMiss(head):
		if certain && there {
			w.compare(k, stored{})
		}
	case head.Code != protocol.MetaHit:
		w.unexpected(k, head)
		return
	case certain && !there:
		w.find(Finding{Back, time.Now(), k.name, "nothing", "an item to delete"})
	}
	w.wrote(k, stored{}, err, &w.report.Deletes)
}

// addOrVivify writes a key that is empty, by adding it or with the placeholder of a read.
func (w *worker) addOrVivify(k *item) {
	if w.random.IntN(2) == 0 {
		next := stored{there: true, text: w.newValue(k), flags: w.random.Uint32()}
		head, _, err := w.do("ms", k, fmt.Sprintf(" ME F%d", next.flags), next.text)
		switch {
		case err != nil || head.Code == protocol.MetaHit:
			w.wrote(k, next, err, &w.report.Writes)
		case isMiss(head):
			w.read(k)
		default:
			w.unexpected(k, head)
		}
		return
	}
	head, value, err := w.do("mg", k, " v f t N300")
	if err == nil && !head.Won {
		w.compare(k, foundIn(head, value, head.TTL))
		return
	}
	w.wrote(k, stored{there: true, placeholder: true, expires: time.Now().Add(300 * time.Second)}, err, &w.report.Writes)
}

// modify changes a value that is there.
func (w *worker) modify(k *item) {
	if k.kind == counter {
		w.count(k)
		return
	}
	next := k.now
	if len(next.text) > max(4000, w.largeBytes) {
		w.set(k)
		return
	}
	k.version++
	part := fmt.Sprintf("+%d;", k.version)
	if k.kind == large {
		part = strings.Repeat(part, 10_000)
	}
	mode := " MA"
	if w.random.IntN(3) == 0 {
		mode = " MP"
		next.text = part + next.text
	} else {
		next.text += part
	}
	if head, _, err := w.do("ms", k, mode, part); w.changed(k, head, err) {
		w.wrote(k, next, err, &w.report.Writes)
	}
}

// count changes a number that is there.
func (w *worker) count(k *item) {
	next, delta := k.now, w.random.IntN(30)
	number, err := strconv.Atoi(next.text)
	if err != nil { // after a finding
		w.set(k)
		return
	}
	mode := " MI"
	if w.random.IntN(3) == 0 {
		mode = " MD"
		next.text = strconv.Itoa(max(number-delta, 0))
	} else {
		next.text = strconv.Itoa(number + delta)
	}
	head, value, err := w.do("ma", k, fmt.Sprintf("%s D%d v", mode, delta))
	if !w.changed(k, head, err) {
		return
	}
	if got := strings.TrimRight(string(value), " "); err == nil && got != next.text {
		w.find(Finding{Stale, time.Now(), k.name, fmt.Sprintf("%s after%s %d", next.text, mode, delta), got})
		next.text = got
	}
	w.wrote(k, next, err, &w.report.Writes)
}

// touch changes the expiry of an item that is there, and reads it or not.
func (w *worker) touch(k *item) {
	next := k.now
	ttl, at := w.expiry(k)
	next.expires = at
	flags := " T" + ttl
	if w.random.IntN(3) > 0 {
		flags = " v f" + flags
	}
	head, value, err := w.do("mg", k, flags)
	if !w.changed(k, head, err) {
		return
	}
	if head.Code == protocol.MetaValue {
		w.compare(k, foundIn(head, value, unknownTTL))
		next.text, next.flags = k.now.text, k.now.flags
	}
	serial := k.serial
	w.wrote(k, next, err, &w.report.Writes)
	k.serial = serial // a token stays valid
}

// invalidate marks an item as stale.
func (w *worker) invalidate(k *item) {
	next := k.now
	next.stale = true
	if head, _, err := w.do("md", k, " I"); w.changed(k, head, err) {
		w.wrote(k, next, err, &w.report.Deletes)
	}
}

// swap writes with the token of a read, which must match only if the value did not change since.
func (w *worker) swap(k *item) {
	if k.token == 0 {
		w.read(k)
		return
	}
	changed := k.serial != k.tokenSerial
	next := stored{there: true, text: w.newValue(k), flags: w.random.Uint32()}
	head, _, err := w.do("ms", k, fmt.Sprintf(" F%d C%d", next.flags, k.token), next.text)
	k.token = 0
	if err == nil && head.Code == protocol.MetaExists || !w.changed(k, head, err) {
		return
	}
	if err == nil && changed {
		w.find(Finding{Token, time.Now(), k.name, protocol.MetaExists, head.Code})
	}
	w.wrote(k, next, err, &w.report.Writes)
}

func (w *worker) read(k *item) {
	if err := w.tryRead(k); err != nil {
		w.report.Failed++
	}
}

func (w *worker) tryRead(k *item) error {
	w.began = time.Now()
	flags := " v f t"
	if k.token == 0 || w.random.IntN(4) == 0 {
		flags += " c"
	}
	head, value, err := w.do("mg", k, flags)
	if err != nil {
		return err
	}
	w.report.Reads++
	w.compare(k, foundIn(head, value, head.TTL))
	if head.CAS != 0 {
		k.token, k.tokenSerial = head.CAS, k.serial
	}
	return nil
}

// compare compares what was found with what should be there.
func (w *worker) compare(k *item, found stored) {
	if k.kind == counter {
		found.text = strings.TrimRight(found.text, " ") // decr leaves blanks
	}
	found.within = time.Since(w.began)
	found.behind, found.ahead = w.client.clocks.off()
	want := k.content.String()
	switch kind := k.saw(found, time.Now()); kind {
	case fine:
	case Lost:
		w.report.Lost++
		w.report.LostKeys = append(w.report.LostKeys, k.name+": "+want)
	default:
		w.find(Finding{kind, time.Now(), k.name, want, found.String()})
	}
}

func (w *worker) find(f Finding) { w.report.Findings = append(w.report.Findings, f) }

func (w *worker) sweep() {
	deadline := time.Now().Add(sweepTimeout)
	for _, k := range append(append([]*item{}, w.keys...), w.old...) {
		err := w.tryRead(k)
		for err != nil && time.Now().Before(deadline) {
			time.Sleep(sweepPause) //nolint:forbidigo // a shard that starts reports no event
			err = w.tryRead(k)
		}
		if err != nil {
			w.report.Err = errors.Join(w.report.Err, fmt.Errorf("reading %s at the end: %w", k.name, err))
			return
		}
	}
	// A token of an earlier value or server must not match.
	for _, k := range w.keys {
		if k.token != 0 && k.certain(time.Now()) && k.now.there && k.kind != large {
			w.swap(k)
		}
	}
}
