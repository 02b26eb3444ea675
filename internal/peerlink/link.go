// Package peerlink is what the agents of two pods need to exchange items: a link over which they send frames, the identity by which
// they accept each other, a limit of their rate, and tables of what the other one has.
package peerlink

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
)

const (
	// BeatInterval is that of beats.
	BeatInterval = time.Second
	// Silence is the time after which a peer that sends nothing is dead.
	Silence = 10 * time.Second
	// OpenTimeout bounds the connection and its handshake.
	OpenTimeout = Silence
	// StepTimeout bounds a step of a peer, which may have to stop memcached or to scan its memory, and a write.
	StepTimeout = 2 * time.Minute
	// BatchItems are sent at once.
	BatchItems = 200
	// BatchBytes are, too.
	BatchBytes = 1 << 20
)

// buffer is the size of the buffers of each direction, in bytes: that of a record of TLS, which each read and write has one of. A shard that
// leaves has a link to each of the others.
const buffer = 16 << 10

// Kind is what a frame contains. A frame is one byte of its kind, four bytes of the length of its content (big endian), and the content.
type Kind byte

// KindBeat is the empty frame that both sides send while they have nothing else to send.
const KindBeat Kind = 'b'

// HeadSize is that of the head of a frame in bytes.
const HeadSize = 1 + 4

// ErrFrame is what no version of a protocol sends.
var ErrFrame = errors.New("invalid frame")

// Protocol is what the frames of a link may be.
type Protocol struct {
	// Limits are the largest contents of frames in bytes, by kind, but for beats.
	Limits map[Kind]uint32
	// Failed is the kind of frames with the failure of a peer, Errors are those that both sides know, by their code.
	Failed Kind
	Errors map[string]error
	// Patience bounds the time in which a peer that sends beats must continue; 0 doesn't.
	Patience time.Duration
}

// maxFailure bounds the message of a failure in bytes. A control character has six of them as JSON.
const maxFailure = 512

// failure names an error, so that the peer can recognize it.
type failure struct{ Code, Message string }

// Fail sends why this side fails.
func (l *Link) Fail(err error) error {
	f := failure{"Failed", err.Error()}
	for code, known := range l.protocol.Errors {
		if errors.Is(err, known) {
			f.Code = code
		}
	}
	f.Message = f.Message[:min(len(f.Message), maxFailure)]
	return l.Send(l.protocol.Failed, f)
}

// ReadFailure returns the failure in a frame of size bytes as an error.
func (p Protocol) ReadFailure(r *bufio.Reader, size int) error {
	f, err := ReadMessage[failure](r, size)
	if err != nil {
		return err
	}
	known, ok := p.Errors[f.Code]
	if !ok {
		return fmt.Errorf("the source failed: %q", f.Message)
	}
	if text := strings.TrimPrefix(strings.TrimPrefix(f.Message, known.Error()), ": "); text != "" {
		return fmt.Errorf("%w: %q", known, text)
	}
	return known
}

// ReadHead returns kind and size of a frame, which is within the limits.
func (p Protocol) ReadHead(r *bufio.Reader) (Kind, int, error) {
	var head [HeadSize]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, 0, err
	}
	k, size := Kind(head[0]), binary.BigEndian.Uint32(head[1:])
	limit, known := p.Limits[k]
	if !known && k != KindBeat {
		return 0, 0, fmt.Errorf("%w: unknown kind %q", ErrFrame, head[0])
	}
	if size > limit {
		return 0, 0, fmt.Errorf("%w: %d bytes in a frame of kind %q", ErrFrame, size, head[0])
	}
	return k, int(size), nil
}

// AppendHead appends the head of a frame.
func AppendHead(dst []byte, k Kind, size int) []byte {
	return binary.BigEndian.AppendUint32(append(dst, byte(k)), uint32(size))
}

// ReadMessage reads a message in JSON.
func ReadMessage[T any](r *bufio.Reader, size int) (message T, err error) {
	err = readMessage(r, size, &message)
	return message, err
}

func readMessage(r *bufio.Reader, size int, message any) error {
	text := make([]byte, size)
	if _, err := io.ReadFull(r, text); err != nil {
		return protocol.Unexpected(err)
	}
	if err := json.Unmarshal(text, message); err != nil {
		return fmt.Errorf("%w: %w", ErrFrame, err)
	}
	return nil
}

// Link sends and receives frames. One goroutine reads; any number write.
type Link struct {
	// Conn is the connection, R what it receives.
	R        *bufio.Reader
	Conn     *protocol.BoundedConn
	protocol Protocol

	mu   sync.Mutex
	w    *bufio.Writer
	head []byte
}

// Dial returns a link over a connection to a source that has the same identity.
func Dial(ctx context.Context, connect func(context.Context) (net.Conn, error), identity *tls.Config, p Protocol) (*Link, error) {
	ctx, cancel := context.WithTimeout(ctx, OpenTimeout)
	defer cancel()
	conn, err := connect(ctx)
	if err != nil {
		return nil, err
	}
	secured := tls.Client(conn, identity)
	if err := secured.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return New(secured, p), nil
}

// New returns a link over a connection, which it closes.
func New(conn net.Conn, p Protocol) *Link {
	bounded := &protocol.BoundedConn{Conn: conn, ReadTimeout: Silence, WriteTimeout: StepTimeout}
	return &Link{Conn: bounded, protocol: p, R: bufio.NewReaderSize(bounded, buffer), w: bufio.NewWriterSize(bounded, buffer)}
}

// Close closes the connection.
func (l *Link) Close() { _ = l.Conn.Close() }

// Abort closes the connection even while TLS waits for the peer, to which Close would send an alert first.
func (l *Link) Abort() {
	if c, ok := l.Conn.Conn.(interface{ NetConn() net.Conn }); ok {
		_ = c.NetConn().Close()
		return
	}
	_ = l.Conn.Close()
}

// Send sends a frame and everything before it. A nil message is an empty frame.
func (l *Link) Send(k Kind, message any) error {
	var content []byte
	if message != nil {
		var err error
		if content, err = json.Marshal(message); err != nil {
			return err
		}
		if len(content) > int(l.protocol.Limits[k]) {
			return fmt.Errorf("%w: a message of %d bytes", ErrFrame, len(content))
		}
	}
	return l.SendContent(k, content)
}

// SendContent sends a frame and everything before it.
func (l *Link) SendContent(k Kind, content []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	// Together: a confirmation is either in the connection or not.
	l.head = append(AppendHead(l.head[:0], k, len(content)), content...)
	if _, err := l.w.Write(l.head); err != nil {
		return err
	}
	return l.w.Flush()
}

// Write buffers a frame, which appendHead appends without its last parts.
func (l *Link) Write(appendHead func([]byte) []byte, eachLast func(func([]byte) error) error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.head = appendHead(l.head[:0])
	if _, err := l.w.Write(l.head); err != nil {
		return err
	}
	return eachLast(func(part []byte) error {
		_, err := l.w.Write(part)
		return err
	})
}

// Flush sends what is buffered.
func (l *Link) Flush() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Flush()
}

// Beat sends beats until the context is done or the connection fails, which the reader notices too:
// before that, it may read why.
func (l *Link) Beat(ctx context.Context) {
	ticker := time.NewTicker(BeatInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if l.Send(KindBeat, nil) != nil {
			return
		}
	}
}

// Head returns kind and size of the next frame.
func (l *Link) Head() (Kind, int, error) { return l.protocol.ReadHead(l.R) }

// Next returns kind and size of the next frame that is not a beat.
func (l *Link) Next() (Kind, int, error) {
	for started := time.Now(); ; {
		k, size, err := l.Head()
		if err != nil || k != KindBeat {
			return k, size, err
		}
		if patience := l.protocol.Patience; patience > 0 && time.Since(started) > patience {
			return 0, 0, fmt.Errorf("the peer has not continued for %s", patience)
		}
	}
}

// Expect reads a message of a kind, or the peer's failure.
func Expect[T any](l *Link, want Kind) (message T, err error) {
	err = l.expect(want, &message)
	return message, err
}

func (l *Link) expect(want Kind, message any) error {
	k, size, err := l.Next()
	if err != nil {
		return err
	}
	if k != want {
		return l.Unexpected(k, size)
	}
	return readMessage(l.R, size, message)
}

// Unexpected returns the error for a frame: that which the peer reports, if any.
func (l *Link) Unexpected(k Kind, size int) error {
	if k != l.protocol.Failed {
		return fmt.Errorf("%w: unexpected kind %q", ErrFrame, k)
	}
	return l.protocol.ReadFailure(l.R, size)
}

// Sleep returns an error if the context is done before the time is over.
func Sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}
