package copy

import (
	"bufio"
	"errors"
	"strings"
	"testing"
	"time"

	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
	"github.com/memcached-operator/memcached-operator/internal/snapshot/format"
)

func TestAnswerToASetIsCounted(t *testing.T) {
	type sums struct{ restored, kept, rejected int64 }
	for name, c := range map[string]struct {
		answer string
		resent bool
		want   sums
		probe  bool
		err    error
	}{
		"stored":                     {"HD\r\n", false, sums{restored: 1}, false, nil},
		"an item exists":             {"NS\r\n", false, sums{kept: 1}, false, nil},
		"an item exists, sent twice": {"NS\r\n", true, sums{restored: 1}, false, nil},
		"out of memory":              {"SERVER_ERROR out of memory storing object\r\n", false, sums{rejected: 1}, true, nil},
		"not an answer to a set":     {"EN\r\n", false, sums{}, false, protocol.ErrMalformed},
		"an unknown command":         {"ERROR\r\n", false, sums{}, false, protocol.ErrUnknownCommand},
	} {
		t.Run(name, func(t *testing.T) {
			loader, b := &shardLoader{}, &batch{resent: c.resent, expires: []int64{0}}
			b.keys.add([]byte("key"))
			err := loader.readAnswer(b, &conn{r: bufio.NewReader(strings.NewReader(c.answer))})
			got := sums{loader.counts.restored.Load(), loader.counts.kept.Load(), loader.counts.rejected.Load()}
			if !errors.Is(err, c.err) || got != c.want || loader.probeBeforeAdd.Load() != c.probe {
				t.Errorf("%v, %+v, probe %v; want %v, %+v, %v", err, got, loader.probeBeforeAdd.Load(), c.err, c.want, c.probe)
			}
		})
	}
}

func TestItemExpiresAsBeforeOrAtMaxTTL(t *testing.T) {
	const now = 1_795_000_000
	for name, c := range map[string]struct {
		expires, maxTTL int64
		want            int64
		lives           bool
	}{
		"never":                {0, 0, 0, true},
		"never, limited":       {0, 60, now + 60, true},
		"before the limit":     {now + 30, 60, now + 30, true},
		"after the limit":      {now + 90, 60, now + 60, true},
		"later, unlimited":     {now + 90, 0, now + 90, true},
		"in more than 30 days": {now + 9_000_000, 0, now + 9_000_000, true},
		"just now":             {now, 0, 0, false},
		"long ago, limited":    {now - 90, 60, 0, false},
	} {
		loader := &shardLoader{maxTTL: c.maxTTL, options: Options{Now: func() time.Time { return time.Unix(now, 0) }}}
		got, lives := loader.expiry(format.Record{Expires: c.expires})
		if lives != c.lives || lives && (got.IsZero() != (c.want == 0) || c.want != 0 && got.Unix() != c.want) {
			t.Errorf("%s: %s, %t", name, got, lives)
		}
	}
}

// It would lead clients with auto discovery to servers that the snapshot names.
func TestItemOfTheDiscoveryIsNotRestored(t *testing.T) {
	loader := &shardLoader{options: Options{Now: time.Now, Progress: &Progress{}}}
	if head, _, ok := loader.appendHead(nil, format.Record{Key: []byte(agentwire.DiscoveryItem), Size: 1}); ok || loader.counts.rejected.Load() != 1 {
		t.Errorf("the request is %q; %d rejected", head, loader.counts.rejected.Load())
	}
	if _, _, ok := loader.appendHead(nil, format.Record{Key: []byte("key"), Size: 1}); !ok {
		t.Error("another item is not restored either")
	}
}

func TestEmptyCAIsThatOfTheSystem(t *testing.T) {
	for _, empty := range []string{"", "\n", " \n\t"} {
		if rootsOf([]byte(empty)) != nil {
			t.Errorf("%q is a pool without a CA, with which every connection fails", empty)
		}
	}
	if rootsOf([]byte("x")) == nil {
		t.Error("a text without a certificate trusts the system's CAs")
	}
}
