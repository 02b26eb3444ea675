package scaling

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/handover"
	"github.com/memcached-operator/memcached-operator/internal/memcached/memfile"
	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
	"github.com/memcached-operator/memcached-operator/internal/peerlink"
)

// maxValue is the largest value that moves, in bytes. Larger ones stay with the source until the close, like keys without a pair.
const maxValue = 4 << 20

const (
	// answersSize is that of a pipe's buffer for answers, in bytes, and keptSize the largest one for a value or a batch that it keeps: a target
	// has two pipes for each of its sources.
	answersSize, keptSize = 16 << 10, 2 * maxRequests
)

// item is what memcached has returned, or gets. The key and the value are valid until the next answer.
type item struct {
	key    []byte
	binary bool
	flags  uint32
	// expires is in seconds of the clock of the memcached that has returned it; 0 for never.
	expires uint32
	cas     uint64
	value   []byte
}

// pipe sends requests to a memcached, many of them before it reads their answers.
type pipe struct {
	Memcached
	conn *protocol.KeptConn
	// run is the process that it is connected to.
	run   string
	clock protocol.Clock
	// flushes counts each flush_all.
	flushes string

	batch []byte
	// then are called with the answers to the batch.
	then  []func(protocol.Head, []byte) error
	value []byte
	// reading is whether it reads answers.
	reading bool
}

// openPipe returns ErrImpossible for a memcached that can't be compared with another one.
func openPipe(ctx context.Context, m Memcached) (*pipe, error) {
	p, err := connect(ctx, m)
	if err != nil {
		return nil, err
	}
	settings, err := p.stats("stats settings")
	switch {
	case err != nil:
		err = fmt.Errorf("reading memcached's settings: %w", err)
	case settings["cas_enabled"] != "yes":
		err = fmt.Errorf("%w: memcached has no CAS (-C)", ErrImpossible)
	case !settings.ListsKeys():
		err = fmt.Errorf("%w: memcached doesn't show its keys (-X or no_lru_crawler)", ErrImpossible)
	default:
		err = p.refresh()
	}
	if err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

// connect returns a pipe to a memcached with any settings.
func connect(ctx context.Context, m Memcached) (*pipe, error) {
	conn, err := m.Server.Keep(ctx, peerlink.Silence, answersSize)
	if err != nil {
		return nil, err
	}
	return &pipe{Memcached: m, conn: conn, run: m.Run()}, nil // of another process, the connection is broken
}

func (p *pipe) wake() error {
	again, err := p.conn.Wake()
	if err == nil && again && p.Run() != p.run {
		err = errRestarted
	}
	return err
}

func (p *pipe) stats(request string) (protocol.Stats, error) {
	if _, err := io.WriteString(p.conn, request+"\r\n"); err != nil {
		return nil, err
	}
	return protocol.ReadStats(p.conn.R)
}

// refresh reads memcached's clock and the number of flush_alls.
func (p *pipe) refresh() error {
	if err := p.check(); err != nil {
		return err
	}
	stats, err := p.stats("stats")
	if err != nil {
		return fmt.Errorf("reading memcached's clock: %w", err)
	}
	clock, err := protocol.ClockOf(stats, time.Now())
	p.clock, p.flushes = clock.Best(p.clock), stats["cmd_flush"]
	return err
}

// check returns an error unless memcached is still the process that it was. Its scans and stats are of that one then.
func (p *pipe) check() error {
	if err := p.barrier(); err != nil {
		return err
	}
	if err := p.wake(); err != nil {
		return err
	}
	err := p.conn.Ping()
	if err == nil && (p.run == "" || p.Run() != p.run) {
		err = errRestarted
	}
	return err
}

// errRestarted means that a CAS means nothing.
var errRestarted = errors.New("memcached has started again")

func (p *pipe) close() { _ = p.conn.Close() }

// seconds returns what memcached's clock shows at a time.
func (p *pipe) seconds(at time.Time) uint32 {
	return uint32(min(max(math.Round(at.Sub(p.clock.Zero).Seconds()), 1), math.MaxUint32))
}

// set stores an item that expires at a time, the zero time for never, if its CAS is compare. 0 compares nothing.
func (p *pipe) set(i *item, expires time.Time, compare uint64, then func(protocol.Head, []byte) error) error {
	var ok bool
	if exptime := p.clock.Exptime(expires); i.binary {
		p.batch, ok = protocol.AppendMetaSetEncoded(p.batch, i.key, len(i.value), uint64(i.flags), exptime)
	} else {
		p.batch, ok = protocol.AppendMetaSet(p.batch, i.key, len(i.value), uint64(i.flags), exptime, false)
	}
	if !ok {
		return then(protocol.Head{Code: protocol.MetaNotStored}, nil)
	}
	p.batch = append(p.batch[:len(p.batch)-2], " c"...)
	if compare != 0 {
		p.batch = strconv.AppendUint(append(p.batch, " C"...), compare, 10)
	}
	p.batch = append(append(append(p.batch, "\r\n"...), i.value...), "\r\n"...)
	return p.add(then)
}

// delete deletes an item, whatever it contains.
func (p *pipe) delete(key []byte) error {
	var ok bool
	if p.batch, ok = protocol.AppendDelete(p.batch, key); !ok {
		return nil
	}
	return p.add(func(protocol.Head, []byte) error { return nil })
}

// maxRequests bounds the requests of a batch, whose answers memcached may send before it has read all of them.
const maxRequests = 32 << 10

func (p *pipe) add(then func(protocol.Head, []byte) error) error {
	p.then = append(p.then, then)
	if p.reading || len(p.then) < peerlink.BatchItems && len(p.batch) < maxRequests {
		return nil
	}
	return p.flush()
}

// flush sends the batch and reads its answers. What is called with them may begin another batch.
func (p *pipe) flush() error {
	batch, then := p.batch, p.then
	p.batch, p.then, p.reading = nil, nil, true
	defer func() { p.reading = false }()
	if err := p.wake(); err != nil {
		return err
	}
	if _, err := p.conn.Write(batch); err != nil {
		return err
	}
	for _, then := range then {
		head, err := protocol.ReadHead(p.conn.R)
		if _, rejected := errors.AsType[*protocol.ServerError](err); rejected { // too large or out of memory
			head, err = protocol.Head{Code: protocol.MetaNotStored}, nil
		}
		if p.value = p.value[:0]; err == nil && head.Code == protocol.MetaValue {
			p.value, err = p.read(head.Size)
		}
		if err == nil {
			err = then(head, p.value)
		}
		if err != nil {
			return err
		}
	}
	if p.batch == nil && cap(batch) <= keptSize {
		p.batch, p.then = batch[:0], then[:0]
	}
	if cap(p.value) > keptSize {
		p.value = nil
	}
	return nil
}

// read returns a value, but nothing of one that is too large to move.
func (p *pipe) read(size int) ([]byte, error) {
	if size <= maxValue {
		return protocol.ReadValue(p.conn.R, p.value, size)
	}
	_, err := p.conn.R.Discard(size)
	if err == nil {
		err = protocol.EndValue(p.conn.R)
	}
	return p.value, err
}

// barrier returns once memcached has answered all requests.
func (p *pipe) barrier() error {
	for len(p.then) > 0 {
		if err := p.flush(); err != nil {
			return err
		}
	}
	return nil
}

// fetch requests an item with its value, while it is locked (h): so it has the CAS of its value. then gets nil if there is none that can move.
func (p *pipe) fetch(key []byte, encoded bool, then func(*item) error) error {
	var ok bool
	if p.batch, ok = protocol.AppendMetaGet(p.batch, key, " v t f c h u"); !ok {
		return then(nil)
	}
	return p.add(func(head protocol.Head, value []byte) error {
		if head.Won { // a client would have got the token
			if err := p.delete(key); err != nil {
				return err
			}
		}
		if placeholder := head.Sent && head.Size == 0; head.Code != protocol.MetaValue || head.Stale || head.Won || placeholder || head.Size > maxValue {
			return then(nil)
		}
		i := &item{key: key, binary: encoded, flags: uint32(head.Flags), cas: head.CAS, value: value}
		if head.TTL >= 0 {
			i.expires = p.seconds(time.Now()) + uint32(head.TTL)
		}
		return then(i)
	})
}

// purgeAll purges until a scan shows no item: a scan can miss one.
func (p *pipe) purgeAll(ctx context.Context, which func(key []byte) bool, changed bool, then func(bytes int)) error {
	for range purges {
		if shown, err := p.purge(ctx, which, changed, then); err != nil || shown == 0 {
			return err
		}
	}
	return nil
}

// purge deletes the items that a scan shows and, unless changed, that haven't changed since. then is called with the size of each. It returns
// how many the scan has shown.
func (p *pipe) purge(ctx context.Context, which func(key []byte) bool, changed bool, then func(bytes int)) (shown int64, err error) {
	_, err = p.Scan(ctx, handover.AnyOrder, which, func(found *memfile.Item) error {
		shown++
		request, ok := protocol.AppendDelete(p.batch, found.Key)
		if !ok {
			return ctx.Err()
		}
		size := found.Size
		if p.batch = request; !changed {
			p.batch = append(strconv.AppendUint(append(request[:len(request)-2], " C"...), found.CAS, 10), "\r\n"...)
		}
		return p.add(func(head protocol.Head, _ []byte) error {
			if head.Code == protocol.MetaHit {
				then(size)
			}
			return nil
		})
	})
	if err == nil {
		err = p.check()
	}
	return shown, err
}

// isNumber returns whether incr can change a value.
func isNumber(value []byte) bool {
	digits := bytes.TrimRight(value, " ")
	return len(digits) > 0 && len(digits) <= 20 && len(bytes.Trim(digits, "0123456789")) == 0
}
