package protocol

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/memcached/slab"
)

// DumpRequest requests the names of all keys in the hash table: a dump of the LRUs
// misses items that move from one to another. memcached reads no further request from
// the connection before the end of the answer.
const DumpRequest = "lru_crawler metadump hash\r\n"

var (
	// ErrBusy is a dump that can't start or continue now, because another one is running
	// or a part of the hash table is locked.
	ErrBusy = errors.New("memcached is busy with another dump or crawl")
	// ErrDumpDisabled is a server that was started with -X.
	ErrDumpDisabled = errors.New("the dump of keys is disabled by -X")
	// ErrCrawlerDisabled is one without its LRU crawler, which any client can disable.
	ErrCrawlerDisabled = errors.New("the LRU crawler, which lists the keys, is disabled")
)

// Listed is an item of a dump. A dump omits expired items, and clients may have changed
// an item since.
type Listed struct {
	// Key is valid until the next call of the reader.
	Key []byte
	// Expires is a Unix time in seconds; 0 is never.
	Expires int64
	// Accessed is about the Unix time in seconds of the last access: memcached records no
	// other access within a minute.
	Accessed int64
	// Size in bytes of key, value and memcached's overhead; 0 means unknown.
	Size int64
	// CAS is 0 for a memcached with -C.
	CAS uint64
}

// DumpReader reads the answer to DumpRequest.
type DumpReader struct {
	r   *bufio.Reader
	key [MaxKey]byte
	any bool
	end bool
}

// NewDumpReader returns a reader of the dump in r, whose buffer must hold the longest
// line.
func NewDumpReader(r *bufio.Reader) *DumpReader { return &DumpReader{r: r} }

// Next returns the next item, and io.EOF after the end of a complete dump. Besides those
// of all answers, errors are ErrBusy, ErrDumpDisabled and ErrCrawlerDisabled.
func (d *DumpReader) Next() (Listed, error) {
	for !d.end {
		line, err := readLine(d.r)
		if err != nil {
			return Listed{}, Unexpected(err) // a complete dump ends with END
		}
		if rest, ok := bytes.CutPrefix(line, []byte("key=")); ok {
			d.any = true
			return d.parse(rest)
		}
		// 1.6.45 starts with OK, others with the first key.
		if !d.any && string(line) == "OK" {
			d.any = true
			continue
		}
		if string(line) != "END" && !bytes.HasPrefix(line, []byte("NOTSTARTED")) {
			return Listed{}, dumpError(line)
		}
		d.end = true
	}
	return Listed{}, io.EOF
}

const (
	// busyPause is between two attempts of a dump.
	busyPause = 20 * time.Millisecond
	// waitTimeout is how long a dump waits for the LRU crawler, which the agent enables again within 10 s after a client has
	// disabled it, or for a connection while clients use all.
	waitTimeout = 20 * time.Second
	// growthPauses are how many pauses a dump waits until memcached grows its hash table: with -o no_hashexpand, it never does.
	growthPauses = 250
)

// Dump visits all items over a connection of its own, and starts again while memcached is busy, or for waitTimeout while
// its LRU crawler is disabled or it has no connection left: an item can be visited more than once. timeout bounds the connection, and each answer.
func (s Server) Dump(ctx context.Context, timeout time.Duration, visit func(Listed) error) error {
	return dumpAgain(ctx, func() error { return s.dump(ctx, timeout, visit) })
}

// Dump is that of a Server over the kept connection. No answer may be outstanding.
func (c *KeptConn) Dump(ctx context.Context, visit func(Listed) error) error {
	return dumpAgain(ctx, func() error {
		_, err := c.Wake()
		if err == nil {
			err = ReadDump(c, c.R, visit)
		}
		if IsFull(err) { // it was opened again, and memcached closes it
			c.woken = time.Time{}
		}
		return err
	})
}

func dumpAgain(ctx context.Context, dump func() error) error {
	for until := time.Now().Add(waitTimeout); ; {
		err := dump()
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, ErrBusy), (errors.Is(err, ErrCrawlerDisabled) || IsFull(err)) && time.Now().Before(until):
		default:
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		case <-time.After(busyPause):
		}
	}
}

func (s Server) dump(ctx context.Context, timeout time.Duration, visit func(Listed) error) error {
	connecting, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	conn, err := s.Connect(connecting)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	bounded := &BoundedConn{Conn: conn, ReadTimeout: timeout, WriteTimeout: timeout}
	return ReadDump(bounded, bufio.NewReaderSize(bounded, MaxLine), visit)
}

// ReadDump visits all items, unless the stats show that memcached crawls: ErrBusy. memcached has an answer for that too, but
// while the client of another dump doesn't read, the thread that gets the request stands still with all its connections. If a
// dump could stop memcached, it waits before. w and r are of one connection.
func ReadDump(w io.Writer, r *bufio.Reader, visit func(Listed) error) error {
	for n := range growthPauses {
		if n > 0 {
			time.Sleep(busyPause)
		}
		if _, err := io.WriteString(w, "stats\r\n"); err != nil {
			return err
		}
		general, err := ReadStats(r)
		if err != nil {
			return err
		}
		if general.int("lru_crawler_running") != 0 {
			return ErrBusy
		}
		if !general.growsNext() {
			break
		}
	}
	if _, err := io.WriteString(w, DumpRequest); err != nil {
		return err
	}
	for dump := NewDumpReader(r); ; {
		item, err := dump.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = visit(item)
		}
		if err != nil {
			return err
		}
	}
}

// growsNext returns whether memcached is about to grow its hash table, which it does within a second. Before 1.6.28 the thread
// that grows it then waits for the one that dumps, which waits for it, forever (https://github.com/memcached/memcached/commit/788f592f4).
func (s Stats) growsNext() bool {
	power := s.int("hash_power_level")
	return power > 0 && s.int("curr_items") > 3<<power/2 && slab.IsBefore(s["version"], 1, 6, 28)
}

func dumpError(line []byte) error {
	switch string(line) {
	case "ERROR locked try again later", "BUSY currently processing crawler request":
		return ErrBusy
	case "ERROR metadump not allowed":
		return ErrDumpDisabled
	case "CLIENT_ERROR lru crawler disabled":
		return ErrCrawlerDisabled
	}
	return answerError(line)
}

func (d *DumpReader) parse(line []byte) (Listed, error) {
	name, rest, _ := bytes.Cut(line, []byte(" "))
	n, ok := unescape(d.key[:], name)
	if !ok || n == 0 {
		return Listed{}, fmt.Errorf("%w: key=%.80q", ErrMalformed, line)
	}
	listed := Listed{Key: d.key[:n]}
	for len(rest) > 0 {
		var field []byte
		field, rest, _ = bytes.Cut(rest, []byte(" "))
		name, value, _ := bytes.Cut(field, []byte("="))
		var into *int64
		switch string(name) {
		case "exp":
			into = &listed.Expires
		case "la":
			into = &listed.Accessed
		case "size":
			into = &listed.Size
		case "cas":
			if listed.CAS, ok = parseUint(value); !ok {
				return Listed{}, fmt.Errorf("%w: key=%.80q", ErrMalformed, line)
			}
			continue
		default:
			continue
		}
		number, ok := parseInt(value)
		if !ok || number < -1 {
			return Listed{}, fmt.Errorf("%w: key=%.80q", ErrMalformed, line)
		}
		*into = max(number, 0) // exp=-1 means never
	}
	return listed, nil
}

// unescape decodes the URL encoding of a key into dst and returns its length.
func unescape(dst, name []byte) (n int, ok bool) {
	for i := 0; i < len(name); i++ {
		if n == len(dst) {
			return 0, false
		}
		c := name[i]
		if c == '%' {
			if len(name) < i+3 {
				return 0, false
			}
			var decoded [1]byte
			if _, err := hex.Decode(decoded[:], name[i+1:i+3]); err != nil {
				return 0, false
			}
			c = decoded[0]
			i += 2
		}
		dst[n] = c
		n++
	}
	return n, true
}

// parseInt reads a decimal number of at most 64 bits. It allocates nothing.
func parseInt(text []byte) (int64, bool) {
	n, err := strconv.ParseInt(string(text), 10, 64)
	return n, err == nil
}
