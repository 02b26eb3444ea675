package copy

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/snapshot/wire"
)

const (
	// window is how many batches of a shard may be without an answer.
	window = 4
	// maxEmptyConnections is how many connections in a row may end without an answer.
	maxEmptyConnections = 10
	// emptyConnectionPause is the pause after the first of them; later ones are longer.
	emptyConnectionPause = 50 * time.Millisecond
)

// batch is a number of requests that are sent together.
type batch struct {
	text []byte
	ends []int // of each request in text
	keys keys
	// expires are the Unix times of the server at which the items expire, in a save according to the key
	// dump; 0 means never.
	expires []int64
	// size in bytes of the items that are requested or sent, as far as it is known.
	size int64
	// answered counts the requests with an answer.
	answered int
	// resent is set once some requests were sent twice, prepared once prepare succeeded.
	resent, prepared bool

	// stream writes the only request, whose value is larger than memory, in place of text.
	stream func(ctx context.Context, w io.Writer) error
}

func (b *batch) count() int { return len(b.ends) }

// batches are not in use, but have memory.
var batches = sync.Pool{New: func() any { return &batch{} }}

func newBatch() *batch {
	b := batches.Get().(*batch)
	*b = batch{text: b.text[:0], ends: b.ends[:0], keys: keys{text: b.keys.text[:0], ends: b.keys.ends[:0]}, expires: b.expires[:0]}
	return b
}

// recycle lets newBatch reuse a batch, unless it contained something large.
func (b *batch) recycle() {
	if cap(b.text) <= 2*maxBatchBytes {
		batches.Put(b)
	}
}

// unanswered returns the text of the requests without an answer, and where each of them ends.
func (b *batch) unanswered() (text []byte, ends []int) {
	if b.answered == 0 {
		return b.text, b.ends
	}
	from := b.ends[b.answered-1]
	for _, end := range b.ends[b.answered:] {
		ends = append(ends, end-from)
	}
	return b.text[from:], ends
}

// keys are the keys of a batch's requests, in one slice.
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

// handler creates the requests of a pipeline and handles the answers. A *wire.Failure
// or errLost from any method ends the run.
type handler interface {
	// next returns the next batch, or errNoMore. A batch that comes with another error
	// is sent first when the run continues.
	next(ctx context.Context) (*batch, error)
	// readAnswer reads the answer to request b.answered. An error closes the connection.
	readAnswer(b *batch, c *conn) error
	// complete is called once all requests of a batch are answered.
	complete(b *batch)
}

// pipeline sends requests to a shard without waiting for answers, and reconnects when
// a connection is lost.
type pipeline struct {
	handler handler
	// prepare may remove requests from a batch before it is sent for the first time. An
	// error closes the connection. It may be nil.
	prepare func(ctx context.Context, b *batch) error
	// checkServer is called with each new connection, which may lead to another server, and
	// over another one once all requests are answered.
	checkServer func(c *conn) error
	target
	// timeout is how long the shard may be unavailable.
	timeout time.Duration
	log     *slog.Logger
	// buffer is the size of the read buffer in bytes.
	buffer int
}

// errNoMore follows the last batch. It isn't io.EOF, which is the end of a connection
// and as such can be the error of a canceled rate limit.
var errNoMore = errors.New("there are no more requests")

type retryable struct{ err error }

func (r retryable) Error() string { return r.err.Error() }
func (r retryable) Unwrap() error { return r.err }

func isTerminal(err error) bool {
	return wire.AsFailure(err) != nil || errors.Is(err, errLost)
}

// asRetryable wraps an error unless it is terminal.
func asRetryable(err error) error {
	if isTerminal(err) {
		return err
	}
	return retryable{err}
}

// run sends all batches and reads their answers. Errors are a Failure, errLost, that
// of next, or the context's cause.
func (p *pipeline) run(ctx context.Context) error {
	var pending []*batch
	for emptyConnections := 0; ; {
		c, err := p.connect(ctx)
		if err != nil {
			return err
		}
		var progress bool
		pending, progress, err = p.session(ctx, c, pending)
		var lost retryable
		switch {
		case err == nil:
			return p.checkAgain(ctx)
		case !errors.As(err, &lost):
			return err
		}
		if progress {
			emptyConnections = 0
		}
		if emptyConnections++; emptyConnections > maxEmptyConnections {
			return wire.Fail(wire.ReasonShardUnreachable, "shard %d at %s gave no answer over %d connections in a row; last error: %w", p.ordinal, p.address, emptyConnections, lost.err)
		}
		p.log.Info("Reconnecting after a lost connection", "shard", p.ordinal, "unanswered", len(pending), "error", lost.err)
		for _, b := range pending {
			b.resent = true
		}
		if !progress { // a shard without memory for answers may have some a moment later
			select {
			case <-time.After(time.Duration(emptyConnections) * emptyConnectionPause):
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
	}
}

// checkAgain checks the server once more: items that were lost while a connection was open,
// as by flush_all, are not noticed before.
func (p *pipeline) checkAgain(ctx context.Context) error {
	c, err := p.connect(ctx)
	if err != nil {
		return err
	}
	return c.Close()
}

// session sends pending and all further batches over one connection. It returns the
// batches without all answers, and whether there was any answer. The error is
// retryable if a new connection may help.
func (p *pipeline) session(ctx context.Context, c *conn, pending []*batch) (unanswered []*batch, progress bool, err error) {
	defer c.Close()
	run, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	c.closeAfter(run)

	inflight := make(chan *batch, window)
	// Gets an element for each batch that was written: until then the writer uses its
	// memory. It has room for all batches without an answer.
	sent := make(chan struct{}, window+2)
	written := make(chan struct{})
	var unsent []*batch // valid once written is closed
	go func() {
		defer close(written)
		defer close(inflight)
		var err error
		if unsent, err = p.write(run, c, inflight, sent, pending); err != nil {
			cancel(err)
		}
	}()

	for b := range inflight {
		before := b.answered
		err := p.read(run, b, sent, c)
		progress = progress || b.answered > before
		if err == nil {
			if b.stream == nil {
				select {
				case <-sent:
				case <-written:
				}
			}
			p.handler.complete(b)
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
	return append(unanswered, unsent...), progress, context.Cause(run)
}

// write adds each batch to inflight and then sends it. It returns the batches that are not
// in inflight.
func (p *pipeline) write(ctx context.Context, c *conn, inflight chan<- *batch, sent chan<- struct{}, pending []*batch) ([]*batch, error) {
	for {
		var b *batch
		if len(pending) > 0 {
			b = pending[0]
		} else {
			var err error
			b, err = p.handler.next(ctx)
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
		if !b.prepared && p.prepare != nil {
			if err := p.prepare(ctx, b); err != nil {
				return pending, retryable{err}
			}
		}
		b.prepared = true
		text, ends := b.unanswered() // not later: the reader counts answers
		select {
		case inflight <- b:
			pending = pending[1:]
		case <-ctx.Done():
			return pending, ctx.Err()
		}
		var err error
		if b.stream != nil {
			err = b.stream(ctx, c)
		} else {
			err = c.writeRequests(text, ends)
		}
		if err != nil {
			return pending, asRetryable(err)
		}
		sent <- struct{}{}
	}
}

// read reads the missing answers of a batch. Sending a stream may take longer than
// ioTimeout, so that its answer is read only after that.
func (p *pipeline) read(ctx context.Context, b *batch, sent <-chan struct{}, c *conn) error {
	if b.stream != nil {
		select {
		case <-sent:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	for b.answered < b.count() {
		if err := p.handler.readAnswer(b, c); err != nil {
			return asRetryable(err)
		}
		b.answered++
	}
	return nil
}

func (p *pipeline) dial(ctx context.Context) (*conn, error) { return p.target.dial(ctx, p.buffer) }

// connect dials until the shard answers or the timeout is over.
func (p *pipeline) connect(ctx context.Context) (*conn, error) {
	began := time.Now()
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		c, err := p.dial(ctx)
		if err == nil {
			if err = p.checkServer(c); err == nil {
				return c, nil
			}
			_ = c.Close()
		}
		if isTerminal(err) {
			return nil, err
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if time.Since(began) > p.timeout {
			return nil, wire.Fail(wire.ReasonShardUnreachable, "shard %d at %s is unreachable: %w", p.ordinal, p.address, err)
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}
