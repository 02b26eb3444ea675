package main

import (
	"strings"
	"testing"
)

func TestFindMemcached(t *testing.T) {
	for name, c := range map[string]struct {
		path, there string
		want        string
	}{
		"in $PATH":                        {"/a:/b", "/b/memcached", "/b/memcached"},
		"the first in $PATH":              {"/usr/bin:/b", "/b/memcached /usr/bin/memcached", "/usr/bin/memcached"},
		"of the official image":           {"", "/usr/local/bin/memcached", "/usr/local/bin/memcached"},
		"of Bitnami's image":              {"/usr/bin", "/opt/bitnami/memcached/bin/memcached", "/opt/bitnami/memcached/bin/memcached"},
		"not in the working directory":    {".::relative", "memcached ./memcached relative/memcached", ""},
		"nowhere, and then it says where": {"/a", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			there := strings.Fields(c.there)
			got, err := findMemcached(c.path, func(path string) bool {
				for _, p := range there {
					if p == path {
						return true
					}
				}
				return false
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
