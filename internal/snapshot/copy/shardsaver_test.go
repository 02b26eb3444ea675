package copy

import (
	"bufio"
	"io"
	"strings"
	"testing"

	"github.com/memcached-operator/memcached-operator/internal/memcached/fake"
)

// A client may renew an item before it is invalidated again.
func TestOnlyItemsThatAreStillStaleAreInvalidatedAgain(t *testing.T) {
	ours, theirs := fake.Pipe()
	defer ours.Close()
	defer theirs.Close()
	answers := map[string]string{
		"mg stale c u":   "HD c5 W X\r\n",
		"mg renewed c u": "HD c6\r\n",
		"mg gone c u":    "EN\r\n",
		"mg again c u":   "HD c7 X Z\r\n",
		"mg without c u": "HD X\r\n", // of a server without CAS
	}
	requests := make(chan []string, 1)
	go func() {
		var all []string
		defer func() { requests <- all }()
		lines := bufio.NewScanner(theirs)
		for lines.Scan() {
			all = append(all, lines.Text())
			answer, ok := answers[lines.Text()]
			if !ok {
				answer = "HD\r\n"
			}
			_, _ = io.WriteString(theirs, answer)
		}
	}()
	var keys [][]byte
	for _, key := range []string{"stale", "renewed", "gone", "again", "without"} {
		keys = append(keys, []byte(key))
	}
	if err := invalidate(keys, newConn(ours, 4096)); err != nil {
		t.Fatal(err)
	}
	_ = ours.Close()
	if got, want := strings.Join((<-requests)[len(keys):], "; "), "md stale I C5; md again I C7"; got != want {
		t.Errorf("it then sent %q, want %q", got, want)
	}
}
