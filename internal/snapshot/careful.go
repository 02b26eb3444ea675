package snapshot

import (
	"bufio"
	"bytes"
	"context"
	"net"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/memcache"
)

// A memcached without room deletes the item that it has under a key whose new value it
// refuses, though it was only to be added ("avoid stale data", process_mset_cmd_start
// in proto_parser.c). One that must not evict (-M), or that said once that it has no
// room, is asked for each key before an item is sent. What a client writes between the
// two is as safe as from any other client without room.

// asker is the connection over which a target is asked for keys.
type asker struct {
	conn net.Conn
	r    *bufio.Reader
	text []byte
	has  []bool
}

func (a *asker) close() {
	if a.conn != nil {
		_ = a.conn.Close() // it was only read from
		a.conn = nil
	}
}

// weed takes those requests from a batch whose keys the target has, and counts them as
// kept, if the target has to be asked for that. Errors are those of a connection.
func (t *target) weed(ctx context.Context, b *batch) error {
	if !t.add || !t.careful.Load() || b.stream != nil {
		return nil
	}
	a := &t.asker
	if a.conn == nil {
		conn, r, err := t.link.dial(ctx)
		if err != nil {
			return err
		}
		a.conn, a.r = conn, r
	}
	stop := context.AfterFunc(ctx, func() { _ = a.conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if err := a.ask(b); err != nil {
		a.close()
		return err
	}
	kept := 0
	text, ends, names := b.text[:0], b.ends[:0], keys{text: b.keys.text[:0], ends: b.keys.ends[:0]}
	from := 0
	for i, has := range a.has {
		// What is moved goes to the left of where it was, and is read before.
		end, key := b.ends[i], b.keys.at(i)
		if !has {
			text = append(text, b.text[from:end]...)
			ends = append(ends, len(text))
			names.add(key)
		} else {
			kept++
		}
		from = end
	}
	if kept == 0 {
		return nil
	}
	t.counts.kept.Add(int64(kept))
	t.env.Meter.add(int64(kept), 0)
	t.release(int64(len(b.text) - len(text)))
	b.text, b.ends, b.keys = text, ends, names
	return nil
}

// ask finds out which of a batch's keys the target has.
func (a *asker) ask(b *batch) error {
	if err := a.conn.SetDeadline(time.Now().Add(silence)); err != nil {
		return err
	}
	a.text, a.has = a.text[:0], a.has[:0]
	from := 0
	for _, end := range b.ends {
		// ms key size …: the key is named as it is there.
		line, _, _ := bytes.Cut(b.text[from:end], []byte("\r\n"))
		_, rest, _ := bytes.Cut(line, []byte(" "))
		name, _, _ := bytes.Cut(rest, []byte(" "))
		a.text = append(append(a.text, "mg "...), name...)
		if bytes.HasSuffix(line, []byte(" b")) {
			a.text = append(a.text, " b"...)
		}
		a.text = append(a.text, " u\r\n"...)
		from = end
	}
	if _, err := a.conn.Write(a.text); err != nil {
		return err
	}
	for range b.ends {
		head, err := memcache.ReadHead(a.r)
		if err != nil {
			return err
		}
		a.has = append(a.has, head.Code == memcache.MetaHit)
	}
	return nil
}
