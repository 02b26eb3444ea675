package copy

import (
	"bytes"
	"context"

	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
)

// A memcached without free memory deletes the item under a key whose new value it
// rejects, even if the value was only to be added ("avoid stale data",
// process_mset_cmd_start in proto_parser.c). Before a batch is sent to a shard that
// must not evict (-M), or that reported once that it is out of memory, an addGuard
// therefore finds out which keys exist. A client that writes between the two steps
// has the same risk as with any other client of a full memcached.

type addGuard struct {
	conn  *conn
	text  []byte
	found []bool
}

func (g *addGuard) close() {
	if g.conn != nil {
		_ = g.conn.Close() // nothing was written
		g.conn = nil
	}
}

// dropExisting removes the requests from a batch whose keys exist, and counts them as
// kept, if the shard needs that. Errors are those of a connection.
func (l *shardLoader) dropExisting(ctx context.Context, b *batch) error {
	if !l.add || !l.probeBeforeAdd.Load() || b.stream != nil {
		return nil
	}
	g := &l.guard
	if g.conn == nil {
		var err error
		if g.conn, err = l.pipeline.dial(ctx); err != nil {
			return err
		}
	}
	stop := g.conn.closeAfter(ctx)
	defer stop()
	if err := g.lookUp(b); err != nil {
		g.close()
		return err
	}
	kept := 0
	text, ends, expires, names := b.text[:0], b.ends[:0], b.expires[:0], keys{text: b.keys.text[:0], ends: b.keys.ends[:0]}
	from := 0
	for i, found := range g.found {
		// What moves is written to the left of where it is, and is read before.
		end, key := b.ends[i], b.keys.at(i)
		if !found {
			text = append(text, b.text[from:end]...)
			ends = append(ends, len(text))
			expires = append(expires, b.expires[i])
			names.add(key)
		} else {
			kept++
		}
		from = end
	}
	if kept == 0 {
		return nil
	}
	l.counts.kept.Add(int64(kept))
	l.options.Progress.add(int64(kept), 0)
	l.release(int64(len(b.text) - len(text)))
	b.text, b.ends, b.expires, b.keys = text, ends, expires, names
	return nil
}

func (g *addGuard) lookUp(b *batch) error {
	g.text, g.found = g.text[:0], g.found[:0]
	from := 0
	for _, end := range b.ends {
		// ms key size …: the key is already in the form of a request.
		line, _, _ := bytes.Cut(b.text[from:end], []byte("\r\n"))
		_, rest, _ := bytes.Cut(line, []byte(" "))
		name, _, _ := bytes.Cut(rest, []byte(" "))
		g.text = append(append(g.text, "mg "...), name...)
		if bytes.HasSuffix(line, []byte(" b")) {
			g.text = append(g.text, " b"...)
		}
		g.text = append(g.text, " u\r\n"...)
		from = end
	}
	return g.conn.heads(g.text, len(b.ends), func(_ int, head protocol.Head) { g.found = append(g.found, head.Code == protocol.MetaHit) })
}
