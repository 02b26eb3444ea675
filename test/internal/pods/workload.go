package pods

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/agent/datadir"
	"github.com/memcached-operator/memcached-operator/internal/memcached/memfile"
	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
)

// Layouts are arguments with which the memory file has a different layout.
var Layouts = []string{
	"", "-I 8m -C -f 1.05 -n 8", "-I 2m -o slab_chunk_max=16", "-I 8m -o slab_sizes=100-200-400-1000-100000,no_slab_reassign",
	"-o no_chunked_items",
}

// LayoutArguments returns the arguments that give the memory file of a version a layout.
func LayoutArguments(version, options string) []string {
	if version == Oldest { // in KiB since 1.6.24, in bytes before
		options = strings.Replace(options, "slab_chunk_max=16", "slab_chunk_max=16384", 1)
	}
	// An item in a page that moves gets another CAS (1.6.18), or is deleted if it's in use for long.
	options += " -o slab_automove=0"
	return append([]string{"-m", "100"}, strings.Fields(options)...)
}

// MemoryFile opens the memory file of memcached.
func (c *Cache) MemoryFile(arguments []string) *memfile.File {
	c.T.Helper()
	layout, err := memfile.LayoutOf(arguments, c.version)
	Must(c.T, err)
	file, err := memfile.Open(filepath.Join(c.Dir, "memory"), layout)
	Must(c.T, err)
	c.T.Cleanup(func() { _ = file.Close() })
	return file
}

// ClockOfMeta returns memcached's clock as it was saved.
func ClockOfMeta(t *testing.T, server *Cache) memfile.Clock {
	t.Helper()
	clock, err := datadir.SavedClock(server.Dir)
	Must(t, err)
	return clock
}

// Content is what of an item must be equal.
type Content struct {
	value string
	flags uint64
	CAS   uint64
	TTL   int64
}

func (c Content) String() string {
	return fmt.Sprintf("%d bytes %.20q flags %d cas %d ttl %d", len(c.value), c.value, c.flags, c.CAS, c.TTL)
}

type scanFunc func(memfile.Clock, func(*memfile.Item) error) (memfile.Report, error)

// Collect returns the items that a scan finds, by key.
func Collect(t *testing.T, scan scanFunc, clock memfile.Clock) map[string]Content {
	t.Helper()
	items := map[string]Content{}
	report, err := scan(clock, func(item *memfile.Item) error {
		key := string(item.Key)
		var ttl int64
		if item.Expires != 0 {
			ttl = int64(item.Expires) - int64(clock.Now)
		}
		var value []byte
		err := item.EachPart(func(part []byte) error { value = append(value, part...); return nil })
		items[key] = Content{string(value), uint64(item.Flags), item.CAS, ttl}
		return err
	})
	if err != nil || report.Unreadable != 0 || report.Items != int64(len(items)) {
		t.Errorf("%d items, %+v: %v", len(items), report, err)
	}
	return items
}

// WantInFile fails the test unless a memory file has these items.
func WantInFile(t *testing.T, when string, file *memfile.File, clock memfile.Clock, want map[string]Content) {
	t.Helper()
	WantEqual(t, when, Collect(t, file.Scan, clock), want)
	WantEqual(t, when+", coldest first", Collect(t, file.ScanColdFirst, clock), want)
	WantEqual(t, when+", hottest first", Collect(t, file.ScanHotFirst, clock), want)
	wantOrder(t, when, file.ScanColdFirst, clock, func(last, next uint32) bool { return last <= next })
	wantOrder(t, when, file.ScanHotFirst, clock, func(last, next uint32) bool { return last >= next })
}

func wantOrder(t *testing.T, when string, scan scanFunc, clock memfile.Clock, inOrder func(last, next uint32) bool) {
	t.Helper()
	var times []uint32
	_, err := scan(clock, func(item *memfile.Item) error {
		if n := len(times); n > 0 && !inOrder(times[n-1], item.LastAccess) {
			t.Errorf("%s: an item of %d after one of %d", when, item.LastAccess, times[n-1])
		}
		times = append(times, item.LastAccess)
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// WantEqual fails the test unless two sets of items are equal.
func WantEqual(t *testing.T, when string, got, want map[string]Content) {
	t.Helper()
	if len(want) == 0 {
		t.Error("there are no items")
	}
	for key, w := range want {
		g, ok := got[key]
		// The clock goes on between two observations.
		if near := g.TTL - w.TTL; ok && near > -300 && near < 300 && (g.TTL == 0) == (w.TTL == 0) {
			g.TTL = w.TTL
		}
		if !ok || g != w {
			t.Errorf("%s: item %.40q is found: %v %v, want %v", when, key, ok, g, w)
		}
	}
	for key, g := range got {
		if _, ok := want[key]; !ok {
			t.Errorf("%s: item %.40q doesn't exist: %v", when, key, g)
		}
	}
}

// Workload is a client that does all kinds of changes.
type Workload struct {
	t       *testing.T
	Rand    *rand.Rand
	conn    net.Conn
	r       *bufio.Reader
	keys    [][]byte
	largest int
}

// NewWorkload returns a client of a memcached.
func NewWorkload(t *testing.T, server *Cache) *Workload {
	t.Helper()
	w := &Workload{t: t, Rand: rand.New(rand.NewPCG(14, 0)), largest: 1 << 20}
	if server.Command != nil { // it isn't that of an agent
		if i := slices.Index(server.Command.Args, "-I"); i >= 0 {
			_, err := fmt.Sscanf(server.Command.Args[i+1], "%dm", &w.largest)
			Must(t, err)
			w.largest <<= 20
		}
	}
	for i := range 300 {
		key := []byte(fmt.Sprintf("key-%d", i))
		switch i % 5 {
		case 1:
			key = append(key, bytes.Repeat([]byte("k"), protocol.MaxKey-len(key))...)
		case 2:
			key = make([]byte, 4+w.Rand.IntN(183)) // at most 250 bytes in base64
			for i := range key {
				key[i] = byte(w.Rand.Uint32())
			}
		}
		w.keys = append(w.keys, key)
	}
	for i, key := range []string{"100%25", "schlüssel", "\x01control", "with spaces \t in it", "\x00\x01\r\n\xff", strings.Repeat("\x00", 186)} {
		w.keys[3+5*i] = []byte(key)
	}
	w.Reconnect(server)
	t.Cleanup(func() { _ = w.conn.Close() })
	return w
}

// Reconnect connects to another memcached.
func (w *Workload) Reconnect(server *Cache) {
	w.t.Helper()
	if w.conn != nil {
		_ = w.conn.Close()
	}
	var err error
	w.conn, err = net.Dial("tcp", server.Address())
	Must(w.t, err)
	w.r = bufio.NewReaderSize(w.conn, 64<<10)
}

// Run makes so many steps.
func (w *Workload) Run(steps int) {
	for range steps {
		w.Step()
	}
}

// encode returns a key and a flag with which each command accepts it.
func encode(key []byte) (text, flag string) {
	for _, c := range key {
		if c <= ' ' || c > '~' {
			return base64.StdEncoding.EncodeToString(key), " b"
		}
	}
	return string(key), ""
}

// Step changes a random key.
func (w *Workload) Step() {
	key, flag := encode(w.keys[w.Rand.IntN(len(w.keys))])
	switch w.Rand.IntN(12) {
	case 0:
		w.Do("md " + key + flag)
	case 1:
		w.Do("ma " + key + " N0 J97 D3" + flag)
	case 2:
		w.Do("ma " + key + " MD D1" + flag)
	case 3:
		w.Do("ms " + key + " 5 MA" + flag + "\r\nafter")
	case 4:
		w.Do("ms " + key + " 6 MP" + flag + "\r\nbefore")
	case 5:
		w.Do("mg " + key + " T" + w.ttl() + flag)
	case 6:
		w.Do("md " + key + " I T1000" + flag)
	case 7:
		w.Do("ms " + key + " 2" + flag + "\r\n99")
	default:
		flags := " T" + w.ttl() + flag
		if w.Rand.IntN(2) == 0 {
			flags += fmt.Sprintf(" F%d", w.Rand.Uint32())
		}
		size := w.Rand.IntN(600)
		switch w.Rand.IntN(30) {
		case 0:
			size = w.Rand.IntN(w.largest - 2000)
		case 1, 2:
			size = w.Rand.IntN(40_000)
		}
		value := make([]byte, size)
		first := byte(w.Rand.Uint32())
		for i := range value {
			value[i] = first + byte(i*i>>7)
		}
		w.Do(fmt.Sprintf("ms %s %d%s\r\n%s", key, size, flags, value))
	}
}

func (w *Workload) ttl() string {
	return []string{"0", "0", "1", "2", "1000", "100000", fmt.Sprint(time.Now().Unix() + 40*86400)}[w.Rand.IntN(7)]
}

// Do sends a request whose answer is one line.
func (w *Workload) Do(request string) {
	if _, err := w.conn.Write([]byte(request + "\r\n")); err != nil {
		w.t.Error(err)
	}
	if _, err := w.r.ReadString('\n'); err != nil {
		w.t.Error(err)
	}
}

// Answers asks memcached for all keys. It returns none that are stale.
func (w *Workload) Answers(server *Cache) map[string]Content {
	w.t.Helper()
	w.Reconnect(server)
	items := map[string]Content{}
	for _, key := range w.keys {
		text, flag := encode(key)
		_, err := fmt.Fprintf(w.conn, "mg %s v f t c u%s\r\n", text, flag)
		Must(w.t, err)
		head, err := protocol.ReadHead(w.r)
		Must(w.t, err)
		if head.Code != protocol.MetaValue {
			continue
		}
		value, err := protocol.ReadValue(w.r, nil, head.Size)
		Must(w.t, err)
		if !head.Stale {
			items[string(key)] = Content{string(value), head.Flags, head.CAS, max(head.TTL, 0)}
		}
	}
	return items
}
