package agent

import (
	"testing"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/agent/sizing"
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
