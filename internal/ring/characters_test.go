package ring

import (
	"bytes"
	"testing"
)

// pymemcache hashes text by characters and takes the lowest eight bits of each.
func TestAKeyIsHashedByItsCharacters(t *testing.T) {
	for name, c := range map[string]struct{ key, want string }{
		"ASCII":                   {"user:1", "user:1"},
		"of one byte each":        {"user:é", "user:\xe9"},
		"of more than one":        {"日本", "\xe5\x2c"},
		"mixed":                   {"a日b", "a\xe5b"},
		"bytes that are no UTF-8": {"user:\xff\xe9", "user:\xff\xe9"},
	} {
		t.Run(name, func(t *testing.T) {
			var room [longestKey]byte
			if got := asHashed([]byte(c.key), room[:0]); !bytes.Equal(got, []byte(c.want)) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
