package checker

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
)

type keyKind int

const (
	text keyKind = iota
	counter
	// binary keys contain bytes that only meta commands accept, as base64.
	binary
	large
)

// item is a key and what it contains as far as its worker knows.
type item struct {
	kind keyKind
	name string
	content
	// token is that of a gets when serial was tokenSerial.
	token       string
	tokenSerial int
	// serial counts the changes of the value.
	serial  int
	version int
}

// worker does one operation at a time, with any command, on keys of its own.
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

// meta returns the name as an argument of a meta command, with its flag.
func (k *item) meta() (name, flag string) {
	if k.kind == binary {
		return base64.StdEncoding.EncodeToString([]byte(k.name)), " b"
	}
	return k.name, ""
}

// do sends a request, and counts its outcome unless there was an answer.
func (w *worker) do(request string, data ...string) (reply, error) {
	var b bytes.Buffer
	b.WriteString(request + "\r\n")
	for _, d := range data {
		b.WriteString(d + "\r\n")
	}
	r, err := w.client.do(b.Bytes())
	if err == nil {
		w.clock.answered()
		if strings.Contains(r.line, "ERROR") && w.report.Err == nil {
			w.report.Err = fmt.Errorf("%.60q was answered with %s", request, r.line)
		}
	}
	return r, err
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
		w.readMeta(w.old[w.random.IntN(len(w.old))])
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
	case dice < 30 && certain && !there && k.kind != binary:
		w.addOrVivify(k)
	case dice < 42 && certain && there:
		w.modify(k)
	case dice < 50 && certain && there:
		w.touch(k)
	case dice < 52 && certain && there:
		w.invalidate(k)
	case dice < 56 && certain && there && k.kind != binary:
		w.swap(k)
	case dice < 70 && certain && k.kind != binary:
		w.readClassic(k)
	default:
		w.readMeta(k)
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

// empty reports whether a reply says that there is no item.
func (r reply) empty() bool {
	switch r.line {
	case "NOT_FOUND", "NF", "NOT_STORED", "NS", "EN", "END":
		return true
	}
	return false
}

// unexpected records an answer that is neither success nor that there is no item.
func (w *worker) unexpected(k *item, r reply) {
	if w.report.Err == nil {
		w.report.Err = fmt.Errorf("unexpected answer for %.60q: %s", k.name, r.line)
	}
	k.write(stored{}, unknown)
}

func (w *worker) set(k *item) {
	ttl, at := w.expiry(k)
	next := stored{there: true, text: w.newValue(k), flags: w.random.Uint32(), expires: at}
	var r reply
	var err error
	if name, flag := k.meta(); k.kind == binary || w.random.IntN(2) == 0 {
		r, err = w.do(fmt.Sprintf("ms %s %d F%d T%s%s", name, len(next.text), next.flags, ttl, flag), next.text)
	} else {
		r, err = w.do(fmt.Sprintf("set %s %d %s %d", name, next.flags, ttl, len(next.text)), next.text)
	}
	if err == nil && r.line != "STORED" && r.line != "HD" {
		w.unexpected(k, r)
		return
	}
	w.wrote(k, next, err, &w.report.Writes)
}

func (w *worker) delete(k *item) {
	name, flag := k.meta()
	request := "delete " + name
	if k.kind == binary || w.random.IntN(2) == 0 {
		request = "md " + name + flag
	}
	certain, there := k.certain(time.Now()), k.now.there
	r, err := w.do(request)
	switch {
	case err != nil:
	case r.empty():
		if certain && there {
			w.compare(k, stored{})
		}
	case r.line != "DELETED" && r.line != "HD":
		w.unexpected(k, r)
		return
	case certain && !there:
		w.find(Finding{Back, time.Now(), k.name, "nothing", "an item to delete"})
	}
	w.wrote(k, stored{}, err, &w.report.Deletes)
}

// addOrVivify writes a key that is empty, with add, or with the placeholder of a meta get.
func (w *worker) addOrVivify(k *item) {
	if w.random.IntN(2) == 0 {
		next := stored{there: true, text: w.newValue(k), flags: w.random.Uint32()}
		r, err := w.do(fmt.Sprintf("add %s %d 0 %d", k.name, next.flags, len(next.text)), next.text)
		switch {
		case err != nil || r.line == "STORED":
			w.wrote(k, next, err, &w.report.Writes)
		case r.empty():
			w.readMeta(k)
		default:
			w.unexpected(k, r)
		}
		return
	}
	r, err := w.do("mg " + k.name + " v f t N300")
	if err == nil && !strings.Contains(r.line, " W") {
		w.compare(k, r.value())
		return
	}
	w.wrote(k, stored{there: true, placeholder: true, expires: time.Now().Add(300 * time.Second)}, err, &w.report.Writes)
}

// modify changes a value that is there.
func (w *worker) modify(k *item) {
	next := k.now
	name, flag := k.meta()
	var request string
	var data []string
	if k.kind == counter {
		delta := w.random.IntN(30)
		number, err := strconv.Atoi(next.text)
		if err != nil { // after a finding
			w.set(k)
			return
		}
		command, mode := "incr", "I"
		if w.random.IntN(3) == 0 {
			command, mode = "decr", "D"
			next.text = strconv.Itoa(max(number-delta, 0))
		} else {
			next.text = strconv.Itoa(number + delta)
		}
		request = fmt.Sprintf("%s %s %d", command, name, delta)
		if w.random.IntN(2) == 0 {
			request = fmt.Sprintf("ma %s M%s D%d v", name, mode, delta)
		}
	} else {
		if len(next.text) > max(4000, w.largeBytes) {
			w.set(k)
			return
		}
		k.version++
		part := fmt.Sprintf("+%d;", k.version)
		if k.kind == large {
			part = strings.Repeat(part, 10_000)
		}
		command, mode := "append", "A"
		if w.random.IntN(3) == 0 {
			command, mode = "prepend", "P"
			next.text = part + next.text
		} else {
			next.text += part
		}
		data = []string{part}
		request = fmt.Sprintf("%s %s 0 0 %d", command, name, len(part))
		if k.kind == binary || w.random.IntN(2) == 0 {
			request = fmt.Sprintf("ms %s %d M%s%s", name, len(part), mode, flag)
		}
	}
	r, err := w.do(request, data...)
	switch {
	case err != nil:
	case r.empty():
		w.compare(k, stored{})
		return
	case k.kind == counter:
		got := r.line
		if strings.HasPrefix(r.line, "VA ") {
			got = strings.TrimRight(r.data, " ")
		}
		if got != next.text {
			w.find(Finding{Stale, time.Now(), k.name, next.text + " after " + request, got})
			next.text = got
		}
	case r.line != "STORED" && r.line != "HD":
		w.unexpected(k, r)
		return
	}
	w.wrote(k, next, err, &w.report.Writes)
}

// touch changes the expiry of an item that is there.
func (w *worker) touch(k *item) {
	next := k.now
	ttl, at := w.expiry(k)
	next.expires = at
	name, flag := k.meta()
	var request string
	kind := w.random.IntN(3)
	switch {
	case kind == 0 && k.kind != binary:
		request = "touch " + name + " " + ttl
	case kind == 1 && k.kind != binary:
		request = "gat " + ttl + " " + name
	default:
		request = "mg " + name + " v f T" + ttl + flag
	}
	r, err := w.do(request)
	if err == nil {
		if r.empty() {
			w.compare(k, stored{})
			return
		}
		if r.line != "TOUCHED" {
			w.compare(k, r.value())
			next.text, next.flags = k.now.text, k.now.flags
		}
	}
	serial := k.serial
	w.wrote(k, next, err, &w.report.Writes)
	k.serial = serial // a token stays valid
}

// invalidate marks an item as stale.
func (w *worker) invalidate(k *item) {
	next := k.now
	next.stale = true
	name, flag := k.meta()
	r, err := w.do("md " + name + flag + " I")
	if err == nil && r.empty() {
		w.compare(k, stored{})
		return
	}
	w.wrote(k, next, err, &w.report.Deletes)
}

// swap writes with a token of gets, which must match only if the value did not change since.
func (w *worker) swap(k *item) {
	if k.token == "" {
		w.readClassic(k)
		return
	}
	changed := k.serial != k.tokenSerial
	next := stored{there: true, text: w.newValue(k), flags: w.random.Uint32()}
	r, err := w.do(fmt.Sprintf("cas %s %d 0 %d %s", k.name, next.flags, len(next.text), k.token), next.text)
	k.token = ""
	switch {
	case err == nil && r.line == "EXISTS":
		return
	case err == nil && r.empty():
		w.compare(k, stored{})
		return
	case err == nil && r.line != "STORED":
		w.unexpected(k, r)
		return
	case err == nil && changed:
		w.find(Finding{Token, time.Now(), k.name, "EXISTS", r.line})
	}
	w.wrote(k, next, err, &w.report.Writes)
}

func (w *worker) readClassic(k *item) {
	command := "get "
	if k.token == "" || w.random.IntN(4) == 0 {
		command = "gets "
	}
	r, err := w.do(command + k.name)
	if err != nil {
		w.report.Failed++
		return
	}
	w.report.Reads++
	w.compare(k, r.value())
	if r.token != "" {
		k.token, k.tokenSerial = r.token, k.serial
	}
}

func (w *worker) readMeta(k *item) {
	if err := w.tryReadMeta(k); err != nil {
		w.report.Failed++
	}
}

func (w *worker) tryReadMeta(k *item) error {
	w.began = time.Now()
	name, flag := k.meta()
	r, err := w.do("mg " + name + " v f t" + flag)
	if err != nil {
		return err
	}
	w.report.Reads++
	w.compare(k, r.value())
	return nil
}

// compare compares what was found with what should be there.
func (w *worker) compare(k *item, found stored) {
	if k.kind == counter {
		found.text = strings.TrimRight(found.text, " ") // decr leaves blanks
	}
	found.within, found.behind = time.Since(w.began), w.client.clocks.total()
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
		err := w.tryReadMeta(k)
		for err != nil && time.Now().Before(deadline) {
			time.Sleep(sweepPause) //nolint:forbidigo // a shard that starts reports no event
			err = w.tryReadMeta(k)
		}
		if err != nil {
			w.report.Err = errors.Join(w.report.Err, fmt.Errorf("reading %s at the end: %w", k.name, err))
			return
		}
	}
	// A token of an earlier value or server must not match.
	for _, k := range w.keys {
		if k.token != "" && k.certain(time.Now()) && k.now.there && k.kind != large {
			w.swap(k)
		}
	}
}
