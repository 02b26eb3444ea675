package snapshot

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"time"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/internal/memcache"
	"github.com/memcached-operator/memcached-operator/internal/snapshotapi"
)

const (
	// defaultPatience is how long a server may be away: a warm restart takes
	// seconds, another pod on another node a minute or so.
	defaultPatience = 2 * time.Minute
	// silence is how long a server may say nothing to a request before its
	// connection counts as dropped.
	silence = 30 * time.Second
	// dialTimeout of one try.
	dialTimeout = 5 * time.Second
	// readBuffer holds the answers that arrive together.
	readBuffer = 64 << 10
	// maxFruitless is how often in a row a connection may end without a single answer.
	maxFruitless = 10
)

// batch is requests that are written at once.
type batch struct {
	text []byte
	ends []int // of each request in text
	keys keys
	// expires are the Unix times at which the items expire, as they were listed, where
	// they were.
	expires []int64
	// asked is when it was first sent, a Unix time.
	asked int64
	// size in bytes of what is asked for or brought, as far as it is known.
	size int64
	// done is how many are answered; again says that some were asked twice.
	done  int
	again bool
	// ready says that it was prepared, which is done once, before it is sent.
	ready bool

	// stream writes the one request in place of text, of a value that is larger than memory.
	stream func(ctx context.Context, w io.Writer) error
}

func (b *batch) count() int { return len(b.ends) }

func (b *batch) reset() {
	*b = batch{text: b.text[:0], ends: b.ends[:0], keys: keys{text: b.keys.text[:0], ends: b.keys.ends[:0]}, expires: b.expires[:0]}
}

// keys are the keys of a batch's requests, in one piece of memory.
type keys struct {
	text []byte
	ends []int
}

func (k *keys) add(key []byte) {
	k.text = append(k.text, key...)
	k.ends = append(k.ends, len(k.text))
}

func (k *keys) at(i int) []byte {
	if i == 0 {
		return k.text[:k.ends[0]]
	}
	return k.text[k.ends[i-1]:k.ends[i]]
}

// rest is the text of the requests that were not answered.
func (b *batch) rest() []byte {
	if b.done == 0 {
		return b.text
	}
	return b.text[b.ends[b.done-1]:]
}

// link is a connection to a shard, over which requests go one after the other
// without waiting for answers, and which is made again when it drops.
type link struct {
	ordinal  int
	address  string
	patience time.Duration
	log      *slog.Logger
	// window is how many batches may be unanswered, buffer how many bytes of answers
	// are read at once.
	window, buffer int

	// next returns the next batch, and errNoMore after the last. What it returns with
	// another error is kept for the next connection.
	next func(ctx context.Context) (*batch, error)
	// prepare may take requests from a batch that is about to be sent; nil takes none.
	// Its errors are of a connection.
	prepare func(ctx context.Context, b *batch) error
	// answer reads the answer to request b.done of b. A *snapshotapi.Failure ends
	// all, any other error the connection.
	answer func(b *batch, conn net.Conn, r *bufio.Reader) error
	// answered is told of a batch whose answers are all there.
	answered func(b *batch)
	// returned looks at a server to which there is a new connection. A Failure or errLost
	// ends all.
	returned func(conn net.Conn, r *bufio.Reader) error
}

// errNoMore is the end of the batches. It is no io.EOF, which the end of a connection
// is: a limit that waits is told of that as the cause of its end.
var errNoMore = errors.New("there are no more requests")

// errLost is a server that came back without its items.
var errLost = errors.New("it came back without its items")

// dropped is an error of a connection, which is made again.
type dropped struct{ err error }

func (d dropped) Error() string { return d.err.Error() }
func (d dropped) Unwrap() error { return d.err }

// ends reports whether an error is beyond a new connection.
func ends(err error) bool {
	return snapshotapi.AsFailure(err) != nil || errors.Is(err, errLost)
}

// run sends all batches and reads their answers. Errors are a Failure, errLost, that
// of next, or the context's cause.
func (l *link) run(ctx context.Context) error {
	var pending []*batch
	for fruitless := 0; ; {
		conn, r, err := l.connect(ctx)
		if err != nil {
			return err
		}
		var progress bool
		pending, progress, err = l.session(ctx, conn, r, pending)
		var drop dropped
		if !errors.As(err, &drop) {
			return err
		}
		if progress {
			fruitless = 0
		}
		if fruitless++; fruitless > maxFruitless {
			return snapshotapi.Fail(v1alpha1.ReasonShardUnreachable, "shard %d at %s: %d connections in a row ended without an answer, the last one so: %w", l.ordinal, l.address, fruitless, drop.err)
		}
		l.log.Info("The connection dropped and is made again.", "shard", l.ordinal, "unanswered", len(pending), "error", drop.err)
		for _, b := range pending {
			b.again = true
		}
	}
}

// session sends what is pending and then all further batches, and returns what was
// not answered, and whether anything was. The error is dropped when a new connection may do better.
func (l *link) session(ctx context.Context, conn net.Conn, r *bufio.Reader, pending []*batch) (unanswered []*batch, progress bool, err error) {
	defer conn.Close()
	run, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	context.AfterFunc(run, func() { _ = conn.Close() })

	inflight := make(chan *batch, l.window)
	// One for each batch that is written: until then its memory is the writer's, too. All
	// that are not yet answered have room there.
	sent := make(chan struct{}, l.window+2)
	written := make(chan struct{})
	var left []*batch // of the writer, once written is closed
	go func() {
		defer close(written)
		defer close(inflight)
		var err error
		if left, err = l.write(run, conn, inflight, sent, pending); err != nil {
			cancel(err)
		}
	}()

	for b := range inflight {
		before := b.done
		err := l.read(run, b, sent, conn, r)
		progress = progress || b.done > before
		if err == nil {
			if b.stream == nil {
				select {
				case <-sent:
				case <-written:
				}
			}
			l.answered(b)
			continue
		}
		cancel(err)
		unanswered = append(unanswered, b)
		break
	}
	if err := context.Cause(run); err == nil {
		return nil, progress, nil
	}
	<-written
	for b := range inflight {
		unanswered = append(unanswered, b)
	}
	if ctx.Err() != nil {
		return nil, progress, context.Cause(ctx)
	}
	return append(unanswered, left...), progress, context.Cause(run)
}

// write sends batches, each of which it first puts into inflight. It returns those
// that are not there.
func (l *link) write(ctx context.Context, conn net.Conn, inflight chan<- *batch, sent chan<- struct{}, pending []*batch) ([]*batch, error) {
	for {
		var b *batch
		if len(pending) > 0 {
			b = pending[0]
		} else {
			var err error
			b, err = l.next(ctx)
			if errors.Is(err, errNoMore) {
				return nil, nil
			}
			if b != nil {
				pending = append(pending[:0], b)
			}
			if err != nil {
				return pending, err
			}
		}
		if l.prepare != nil && !b.ready {
			if err := l.prepare(ctx, b); err != nil {
				return pending, dropped{err}
			}
		}
		b.ready = true
		text := b.rest() // not later: the reader counts what is answered
		select {
		case inflight <- b:
			pending = pending[1:]
		case <-ctx.Done():
			return pending, ctx.Err()
		}
		var err error
		if b.stream != nil {
			err = b.stream(ctx, deadlineWriter{conn})
		} else {
			_, err = deadlineWriter{conn}.Write(text)
		}
		if err != nil {
			if !ends(err) {
				err = dropped{err}
			}
			return pending, err
		}
		sent <- struct{}{}
	}
}

// read reads what is missing of a batch's answers. One that is streamed may take long
// until it is sent.
func (l *link) read(ctx context.Context, b *batch, sent <-chan struct{}, conn net.Conn, r *bufio.Reader) error {
	if b.stream != nil {
		select {
		case <-sent:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if err := conn.SetReadDeadline(time.Now().Add(silence)); err != nil {
		return dropped{err}
	}
	for b.done < b.count() {
		if err := l.answer(b, conn, r); err != nil {
			if !ends(err) {
				err = dropped{err}
			}
			return err
		}
		b.done++
	}
	return nil
}

// deadlineWriter fails when the other side takes nothing for long.
type deadlineWriter struct{ conn net.Conn }

func (w deadlineWriter) Write(p []byte) (n int, err error) {
	const most = 1 << 20
	for len(p) > 0 {
		if err := w.conn.SetWriteDeadline(time.Now().Add(silence)); err != nil {
			return n, err
		}
		m, err := w.conn.Write(p[:min(len(p), most)])
		n += m
		if err != nil {
			return n, err
		}
		p = p[m:]
	}
	return n, nil
}

// connect dials until the server answers, or patience ends, and has the server looked
// at: it may be another one than it was.
func (l *link) connect(ctx context.Context) (net.Conn, *bufio.Reader, error) {
	began := time.Now()
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		conn, r, err := l.dial(ctx)
		if err == nil && l.returned != nil {
			if err = l.returned(conn, r); err != nil {
				_ = conn.Close()
			}
		}
		if err == nil || ends(err) {
			return conn, r, err
		}
		if ctx.Err() != nil {
			return nil, nil, context.Cause(ctx)
		}
		if time.Since(began) > l.patience {
			return nil, nil, snapshotapi.Fail(v1alpha1.ReasonShardUnreachable, "shard %d at %s cannot be reached: %w", l.ordinal, l.address, err)
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil, nil, context.Cause(ctx)
		}
	}
}

// dial returns a connection to a server that answers.
func (l *link) dial(ctx context.Context) (net.Conn, *bufio.Reader, error) {
	conn, err := (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, "tcp", l.address)
	if err != nil {
		return nil, nil, err
	}
	r := bufio.NewReaderSize(conn, l.buffer)
	// A Service's connection may be taken and ended by what stands before the server.
	_ = conn.SetDeadline(time.Now().Add(dialTimeout)) // the next call tells
	// One that wants a password says so to this: 1.6.45 ends the connection upon mn.
	if _, err = conn.Write([]byte("version\r\n")); err == nil {
		_, err = memcache.ReadVersion(r)
	}
	_ = conn.SetDeadline(time.Time{})
	if err == nil {
		return conn, r, nil
	}
	_ = conn.Close()
	var refused *memcache.ClientError
	if errors.As(err, &refused) {
		return nil, nil, snapshotapi.FailFinally(v1alpha1.ReasonShardUnreachable, "shard %d at %s: %w; only servers without authentication can be copied", l.ordinal, l.address, err)
	}
	return nil, nil, fmt.Errorf("greeting it: %w", err)
}
