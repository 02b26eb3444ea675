package handover

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/memcached/memfile"
	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
)

const (
	// beatInterval is that of beats. A peer that sends nothing for silence is dead.
	beatInterval = time.Second
	silence      = 10 * time.Second
	// openTimeout bounds the connection and its handshake.
	openTimeout = silence
	// stepTimeout bounds the time in which a peer that sends beats must continue: it may have to stop
	// memcached or scan its memory.
	stepTimeout = 2 * time.Minute
)

// buffer is the size of the buffers of each direction, in bytes.
const buffer = 64 << 10

// link sends and receives frames. One goroutine reads; any number write.
type link struct {
	conn *protocol.BoundedConn
	r    *bufio.Reader

	mu   sync.Mutex
	w    *bufio.Writer
	head []byte
}

func newLink(conn net.Conn) *link {
	bounded := &protocol.BoundedConn{Conn: conn, ReadTimeout: silence, WriteTimeout: stepTimeout}
	return &link{conn: bounded, r: bufio.NewReaderSize(bounded, buffer), w: bufio.NewWriterSize(bounded, buffer)}
}

func (l *link) close() { _ = l.conn.Close() }

// send sends a frame and everything before it. A nil message is an empty frame.
func (l *link) send(k kind, message any) error {
	var content []byte
	if message != nil {
		var err error
		if content, err = json.Marshal(message); err != nil {
			return err
		}
		if limit, _ := k.limit(); len(content) > int(limit) {
			return fmt.Errorf("%w: a message of %d bytes", errFrame, len(content))
		}
	}
	return l.sendContent(k, content)
}

func (l *link) sendContent(k kind, content []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	// Together: a confirmation is either in the connection or not.
	l.head = append(appendFrameHead(l.head[:0], k, len(content)), content...)
	if _, err := l.w.Write(l.head); err != nil {
		return err
	}
	return l.w.Flush()
}

// sendItem buffers an item.
func (l *link) sendItem(item *memfile.Item) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.head = appendItem(l.head[:0], item)
	if _, err := l.w.Write(l.head); err != nil {
		return err
	}
	_, err := l.w.Write(item.Value)
	return err
}

// sendName buffers a key.
func (l *link) sendName(key []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.head = append(appendFrameHead(l.head[:0], kindName, len(key)), key...)
	_, err := l.w.Write(l.head)
	return err
}

func (l *link) flush() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Flush()
}

// beat sends beats until the context is done or the connection fails, which the reader notices too:
// before that, it may read why.
func (l *link) beat(ctx context.Context) {
	ticker := time.NewTicker(beatInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if l.send(kindBeat, nil) != nil {
			return
		}
	}
}

// next returns kind and size of the next frame that is not a beat.
func (l *link) next() (kind, int, error) {
	for started := time.Now(); ; {
		k, size, err := readFrameHead(l.r)
		if err != nil || k != kindBeat {
			return k, size, err
		}
		if time.Since(started) > stepTimeout {
			return 0, 0, fmt.Errorf("the peer has not continued for %s", stepTimeout)
		}
	}
}

// expect reads a message of a kind, or the peer's failure.
func expect[T any](l *link, want kind) (message T, err error) {
	k, size, err := l.next()
	if err != nil {
		return message, err
	}
	if k != want {
		return message, l.unexpected(k, size)
	}
	return readMessage[T](l.r, size)
}

// unexpected returns the error for a frame: that which the peer reports, if any.
func (l *link) unexpected(k kind, size int) error {
	if k != kindError {
		return fmt.Errorf("%w: unexpected kind %q", errFrame, k)
	}
	f, err := readMessage[failure](l.r, size)
	if err != nil {
		return err
	}
	return f.err()
}

// abort fails all current and later reads and writes, without waiting for any.
func (l *link) abort() {
	if c, ok := l.conn.Conn.(interface{ NetConn() net.Conn }); ok {
		_ = c.NetConn().Close()
		return
	}
	_ = l.conn.Close()
}
