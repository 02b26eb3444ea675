package snapshot

import (
	"bufio"
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/memcached-operator/memcached-operator/internal/memcache"
)

func TestWhatAnAnswerToAStoreMeans(t *testing.T) {
	type sums struct{ restored, kept, refused int64 }
	for name, c := range map[string]struct {
		answer  string
		again   bool
		want    sums
		careful bool
		err     error
	}{
		"it was stored":                        {"HD\r\n", false, sums{restored: 1}, false, nil},
		"another is there":                     {"NS\r\n", false, sums{kept: 1}, false, nil},
		"another is there, asked for twice":    {"NS\r\n", true, sums{restored: 1}, false, nil},
		"there is no room":                     {"SERVER_ERROR out of memory storing object\r\n", false, sums{refused: 1}, true, nil},
		"no answer to a store":                 {"EN\r\n", false, sums{}, false, memcache.ErrMalformed},
		"memcached does not know such a store": {"ERROR\r\n", false, sums{}, false, memcache.ErrUnknownCommand},
	} {
		t.Run(name, func(t *testing.T) {
			target, b := &target{}, &batch{again: c.again}
			b.keys.add([]byte("key"))
			err := target.answer(b, nil, bufio.NewReader(strings.NewReader(c.answer)))
			got := sums{target.counts.restored.Load(), target.counts.kept.Load(), target.counts.refused.Load()}
			if !errors.Is(err, c.err) || got != c.want || target.careful.Load() != c.careful {
				t.Errorf("%v, %+v, careful %v; want %v, %+v, %v", err, got, target.careful.Load(), c.err, c.want, c.careful)
			}
		})
	}
}

// A client may renew an item between the look at it and its mark.
func TestOnlyWhatIsStaleStillIsMarkedAgain(t *testing.T) {
	ours, theirs := net.Pipe()
	defer ours.Close()
	defer theirs.Close()
	answers := map[string]string{
		"mg stale c u":   "HD c5 W X\r\n",
		"mg renewed c u": "HD c6\r\n",
		"mg gone c u":    "EN\r\n",
		"mg again c u":   "HD c7 X Z\r\n",
		"mg without c u": "HD X\r\n", // of a server that counts no CAS
	}
	asked := make(chan []string, 1)
	go func() {
		var all []string
		defer func() { asked <- all }()
		lines := bufio.NewScanner(theirs)
		out := make(chan string, 100) // a pipe holds nothing, and all is asked before any answer is read
		defer close(out)
		go func() {
			for text := range out {
				if _, err := theirs.Write([]byte(text)); err != nil {
					return
				}
			}
		}()
		for lines.Scan() {
			all = append(all, lines.Text())
			if answer, ok := answers[lines.Text()]; ok {
				out <- answer
			} else {
				out <- "HD\r\n"
			}
		}
	}()
	var keys [][]byte
	for _, key := range []string{"stale", "renewed", "gone", "again", "without"} {
		keys = append(keys, []byte(key))
	}
	if err := invalidate(keys, ours, bufio.NewReader(ours)); err != nil {
		t.Fatal(err)
	}
	_ = ours.Close()
	if got, want := strings.Join((<-asked)[len(keys):], "; "), "md stale I C5; md again I C7"; got != want {
		t.Errorf("after it looked, it asked for %q, want %q", got, want)
	}
}
