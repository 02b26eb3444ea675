package ring

import (
	"bytes"
	"testing"
)

// pymemcache hashes the lowest eight bits of each character.
func TestHashedFormIsThatOfPymemcache(t *testing.T) {
	for name, c := range map[string]struct{ key, want string }{
		"ASCII":                       {"user:1", "user:1"},
		"characters of one byte":      {"user:é", "user:\xe9"},
		"characters of several bytes": {"日本", "\xe5\x2c"},
		"mixed":                       {"a日b", "a\xe5b"},
		"invalid UTF-8":               {"user:\xff\xe9", "user:\xff\xe9"},
	} {
		t.Run(name, func(t *testing.T) {
			var buffer [maxKey]byte
			if got := hashedForm([]byte(c.key), buffer[:0]); !bytes.Equal(got, []byte(c.want)) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
