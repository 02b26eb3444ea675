package agent

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/agent/metrics"
	"github.com/memcached-operator/memcached-operator/internal/agent/process"
	"github.com/memcached-operator/memcached-operator/internal/agent/sizing"
	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
)

func TestWindowsOfTheSizeAreKeptWithTheItems(t *testing.T) {
	source, target := &size{}, &size{}
	for minute := range 3 {
		source.windows.Add(sizing.Reading{At: time.Unix(1e9, 0).Add(time.Duration(minute) * time.Minute), Next: time.Minute, Memory: 64 << 20})
	}
	target.keeper().load(source.keeper().export())
	if r := target.windows.Report(); r.Observed != 2*time.Minute {
		t.Errorf("%+v", r)
	}
	target.keeper().load(nil)
	if r := target.windows.Report(); r.Reason != sizing.NoData {
		t.Errorf("after a start without the items: %+v", r)
	}
}

// A source exports them while memcached does not respond and no pod serves.
func TestExportDoesNotWaitForMemcached(t *testing.T) {
	s := &size{now: time.Now}
	asked := 0
	c := process.NewClient(protocol.Server{DialContext: func(context.Context, string, string) (net.Conn, error) {
		asked++
		if s.mu.TryLock() {
			s.mu.Unlock()
		} else {
			t.Error("the windows are locked while memcached is queried")
		}
		return nil, errors.New("no connection")
	}})
	if r := s.add(t.Context(), c, memoryFile{}, nil, &metrics.Reading{}); r != nil || asked == 0 {
		t.Errorf("%+v after %d connections", r, asked)
	}
}
