package agent

import (
	"slices"
	"strings"
	"testing"
)

func TestSearchBinaryPrefersPathOverCommonDirectories(t *testing.T) {
	for name, c := range map[string]struct {
		path, executables string
		want              string
	}{
		"in $PATH":                     {"/a:/b", "/b/memcached", "/b/memcached"},
		"the first in $PATH":           {"/usr/bin:/b", "/b/memcached /usr/bin/memcached", "/usr/bin/memcached"},
		"in the official image":        {"", "/usr/local/bin/memcached", "/usr/local/bin/memcached"},
		"in Bitnami's image":           {"/usr/bin", "/opt/bitnami/memcached/bin/memcached", "/opt/bitnami/memcached/bin/memcached"},
		"not in the working directory": {".::relative", "memcached ./memcached relative/memcached", ""},
		"nowhere":                      {"/a", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			executables := strings.Fields(c.executables)
			got, err := searchBinary(c.path, func(path string) bool {
				return slices.Contains(executables, path)
			})
			if got != c.want || (err == nil) != (c.want != "") {
				t.Errorf("got %q, %v", got, err)
			}
			if err != nil && !strings.HasPrefix(err.Error(), "no memcached in this image: looked in ") {
				t.Error(err)
			}
		})
	}
}
