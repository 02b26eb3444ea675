package builds

import (
	"strings"
	"testing"
)

func TestVersionsOfTheSuitesAreChecked(t *testing.T) {
	for name, c := range map[string]struct {
		suite   memcachedSuite
		version string
		want    string
	}{
		"the pinned version":                {memcachedSuite{"trixie", "1.6.38"}, "1.6.38", ""},
		"another version of a stable suite": {memcachedSuite{"trixie", "1.6.38"}, "1.6.39", "memcached 1.6.39 in trixie, and the tests need 1.6.38"},
		"the newest version":                {memcachedSuite{"sid", ""}, "1.6.99", ""},
		"no newer version":                  {memcachedSuite{"sid", ""}, "1.6.18", "use a mirror with a newer sid"},
	} {
		err := c.suite.check(c.version, []string{"1.6.18"})
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}
