package cluster

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"k8s.io/streaming/pkg/httpstream"
)

// forwarded is a connection to a port of a pod. All its deadlines are one, which closes it when it passes.
type forwarded struct {
	connection    httpstream.Connection
	failure, data httpstream.Stream
	address       address

	lock    sync.Mutex
	timer   *time.Timer
	set     int // how often the deadline was set
	expired bool
}

type address string

func (a address) Network() string { return "tcp" }
func (a address) String() string  { return string(a) }

// unreachable is a port of a pod that nothing listens at.
type unreachable struct{ message string }

func (e unreachable) Error() string { return e.message }

// Unwrap returns what a connection without a port-forward would fail with.
func (unreachable) Unwrap() error { return syscall.ECONNREFUSED }

func (f *forwarded) Read(p []byte) (int, error) {
	n, err := f.data.Read(p)
	if n > 0 || err == nil {
		return n, nil
	}
	if f.isExpired() {
		return 0, os.ErrDeadlineExceeded
	}
	// The kubelet says why the port can't be reached, before it closes both streams.
	if message, _ := io.ReadAll(io.LimitReader(f.failure, maxAnswer)); len(message) > 0 {
		return 0, unreachable{string(message)}
	}
	if f.isExpired() {
		return 0, os.ErrDeadlineExceeded
	}
	return 0, err
}

func (f *forwarded) Write(p []byte) (int, error) {
	n, err := f.data.Write(p)
	if err != nil && f.isExpired() {
		err = os.ErrDeadlineExceeded
	}
	return n, err
}

func (f *forwarded) Close() error {
	_ = f.SetDeadline(time.Time{})
	return f.connection.Close()
}

func (f *forwarded) isExpired() bool {
	f.lock.Lock()
	defer f.lock.Unlock()
	return f.expired
}

// SetDeadline lets the connection close at a time, or not if it is zero.
func (f *forwarded) SetDeadline(t time.Time) error {
	f.lock.Lock()
	defer f.lock.Unlock()
	if f.timer != nil {
		f.timer.Stop()
	}
	f.timer = nil
	f.set++
	if set := f.set; !t.IsZero() {
		f.timer = time.AfterFunc(time.Until(t), func() { f.expire(set) })
	}
	return nil
}

// expire closes the connection, unless the deadline has changed.
func (f *forwarded) expire(set int) {
	f.lock.Lock()
	current := f.set == set
	f.expired = f.expired || current
	f.lock.Unlock()
	if current {
		_ = f.connection.Close()
	}
}

func (f *forwarded) SetReadDeadline(t time.Time) error  { return f.SetDeadline(t) }
func (f *forwarded) SetWriteDeadline(t time.Time) error { return f.SetDeadline(t) }
func (f *forwarded) LocalAddr() net.Addr                { return address("plugin") }
func (f *forwarded) RemoteAddr() net.Addr               { return f.address }
