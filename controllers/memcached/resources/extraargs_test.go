package resources

import (
	"strings"
	"testing"
)

func TestExtraArgsThatMemcachedCannotGet(t *testing.T) {
	for _, c := range []struct {
		words, wrong, why string // wrong is the word that the message names; empty without one
	}{
		{"", "", ""},
		{"-vv -f 1.1 -n96 -o hash_algorithm=murmur3,no_lru_crawler --slab-growth-factor=1.2 -C -F", "", ""},
		{"-v -vvv --verbose --listen-backlog 2048 -R 40 -b2048 -D:", "", ""},
		{"-m 64", "-m", "spec.memory"},
		{"-v -m64", "-m64", "spec.memory"},
		{"--memory-limit=64", "--memory-limit=64", "spec.memory"},
		{"--memory-l=64", "--memory-l=64", "in full"},
		{"-vm64", "-vm64", "apart from other options"},
		{"-p 1", "-p", "ports"},
		{"--port=11212", "--port=11212", "ports"},
		{"-p9150", "-p9150", "ports"},
		{"-e /tmp/x", "-e", "restartable cache"},
		{"-A", "-A", "operator sets"},
		{"-B binary", "-B", "protocol"},
		{"-S", "-S", "authentication"},
		{"--enable-sasl", "--enable-sasl", "authentication"},
		{"-Z", "-Z", "TLS"},
		{"--enable-ssl", "--enable-ssl", "TLS"},
		{"-Y /tmp/x", "-Y", "authentication"},
		{"--auth-file=/tmp/x", "--auth-file=/tmp/x", "authentication"},
		{"-Q", "-Q", "unknown"},
		{"--make-it-fast", "--make-it-fast", "unknown"},
		{"-o ext_path=/x:1G", "ext_path=/x:1G", "external storage"},
		{"-oext_path=/x:1G", "-oext_path=/x:1G", "external storage"},
		{"-o proxy_config=x", "proxy_config=x", "the proxy"},
		{"--extended=hash_algorithm=murmur3,ssl_min_version=3", "--extended=hash_algorithm=murmur3,ssl_min_version=3", "as spec.tls says"},
	} {
		got := ExtraArgsProblem(strings.Fields(c.words))
		if (got == "") != (c.wrong == "") || !strings.HasPrefix(got, "spec.config.extraArgs contains "+c.wrong) && got != "" || !strings.Contains(got, c.why) {
			t.Errorf("%q: %q, want %s because of %s", c.words, got, c.wrong, c.why)
		}
	}
}
