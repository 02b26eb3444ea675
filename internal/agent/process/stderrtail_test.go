package process

import (
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// One command of any client lets memcached write a few lines for each request of all clients.
func TestFloodOfLinesIsDroppedAndCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var text strings.Builder
		s := &stderrTail{log: slog.New(slog.NewTextHandler(&text, nil)), dropped: &atomic.Int64{}}
		for i := range 1000 {
			fmt.Fprintf(s, "<28 get key-%d\n", i)
		}
		if n := strings.Count(text.String(), "get key-"); n != maxLines || s.dropped.Load() != 1000-maxLines || s.lastLine() != "" {
			t.Errorf("%d lines are logged and %d dropped; the last one is %q", n, s.dropped.Load(), s.lastLine())
		}
		<-time.After(time.Second)
		fmt.Fprintln(s, "later")
		if got := text.String(); !strings.Contains(got, "dropped=900") || !strings.Contains(got, "later") {
			t.Errorf("a second later:\n%s", got)
		}
		<-time.After(time.Second)
		if fmt.Fprintln(s, "again"); strings.Count(text.String(), "dropped=") != 1 {
			t.Error("the same lines are reported twice")
		}
	})
}

// 1.6.18 to 1.6.45 print these lines.
func TestStderrTailFindsWhyMemcachedRejectedItsItems(t *testing.T) {
	for name, c := range map[string]struct{ text, rejection, last string }{
		"nothing":                            {"", "", ""},
		"an unknown line of a newer version": {"[restart] unknown/unhandled key: oldest_cas\n", "", "[restart] unknown/unhandled key: oldest_cas"},
		"a changed setting": {
			"[restart] restart incompatible due to setting for [maxbytes] [old value: 67108864]\n[restart] missing some metadata lines\n[restart] failed to validate metadata, starting with a clean cache\n",
			"restart incompatible due to setting for [maxbytes] [old value: 67108864]", "[restart] failed to validate metadata, starting with a clean cache"},
		"a missing line that an old version requires": {
			"[restart] missing some metadata lines\n[restart] failed to validate metadata, starting with a clean cache\n",
			"failed to validate metadata, starting with a clean cache", "[restart] failed to validate metadata, starting with a clean cache"},
		"extstore": {"[restart] memory restart with extstore not presently supported.\n",
			"memory restart with extstore not presently supported.", "[restart] memory restart with extstore not presently supported."},
		"an incomplete last line": {"one\ntwo", "", "two"},
		"empty lines":             {"one\n\n \n", "", "one"},
		"a request":               {"one\n<30 get key\n> FOUND KEY ke", "", ""},
		"an incomplete request":   {"one\n<30 get k", "", ""},
		"a line after a request":  {"> FOUND KEY a\nb\n", "", ""},
		"a very long line":        {strings.Repeat("x", 10_000) + "\n", "", strings.Repeat("x", maxLineBytes)},
	} {
		t.Run(name, func(t *testing.T) {
			s := &stderrTail{log: slog.New(slog.DiscardHandler), dropped: &atomic.Int64{}}
			for i := range len(c.text) {
				if _, err := s.Write([]byte(c.text[i : i+1])); err != nil {
					t.Fatal(err)
				}
			}
			if s.restartRejection() != c.rejection || s.lastLine() != c.last {
				t.Errorf("rejection %q, last line %q", s.restartRejection(), s.lastLine())
			}
		})
	}
}
