package discovery

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/memcached/fake"
)

const twoShards = "12\ncache-0.shop.svc|10.0.0.1|11211 cache-1.shop.svc|10.0.0.2|11211\n"

// endpoint returns what answers with a list.
func endpoint(t *testing.T, list string) Endpoint {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, wire.DiscoveryFile), []byte(list), 0o600); err != nil {
		t.Fatal(err)
	}
	return Endpoint{Dir: dir, Version: func() string { return "1.6.45" }}
}

func TestDiscoveryAnswersAsElastiCacheDoes(t *testing.T) {
	t.Parallel()
	e := endpoint(t, twoShards)
	list := fmt.Sprintf("%d\r\n%s\r\nEND\r\n", len(twoShards), twoShards)
	for request, want := range map[string]string{
		"config get cluster":                  "CONFIG cluster 0 " + list,
		"get AmazonElastiCache:cluster":       "VALUE AmazonElastiCache:cluster 0 " + list,
		"gets AmazonElastiCache:cluster":      "VALUE AmazonElastiCache:cluster 0 " + list,
		"version":                             "VERSION 1.6.45\r\n",
		"stats":                               "STAT version 1.6.45\r\nEND\r\n",
		"get greeting":                        "ERROR\r\n",
		"flush_all":                           "ERROR\r\n",
		"":                                    "ERROR\r\n",
		"config get cluster and some more":    "ERROR\r\n",
		"set AmazonElastiCache:cluster 0 0 1": "ERROR\r\n",
	} {
		if got := e.answer(request); got != want {
			t.Errorf("the answer to %q is %q, want %q", request, got, want)
		}
	}
	unknown := endpoint(t, "")
	if got := unknown.answer("config get cluster"); !strings.HasPrefix(got, "SERVER_ERROR ") {
		t.Errorf("without a list the answer is %q", got)
	}
	unknown.Dir += "-of-an-older-pod"
	if got := unknown.answer("config get cluster"); !strings.HasPrefix(got, "SERVER_ERROR ") {
		t.Errorf("without the file the answer is %q", got)
	}
}

func TestDiscoveryKeepsAConnection(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := endpoint(t, twoShards)
		for _, c := range []struct{ requests, want string }{
			{"version\nversion\r\nquit\r\nversion\r\n", "VERSION 1.6.45\r\nVERSION 1.6.45\r\n"}, // Thanos sends no carriage return
			{"version\r\n" + strings.Repeat("x", maxRequest+1), "VERSION 1.6.45\r\n"},
			{"version\r\nvers", "VERSION 1.6.45\r\n"}, // it ends after idleTimeout
		} {
			client, server := fake.Pipe()
			go e.answerAll(server)
			go func() { _, _ = io.WriteString(client, c.requests) }()
			got, err := io.ReadAll(client)
			if string(got) != c.want || err != nil {
				t.Errorf("the answers to %.30q are %q, %v", c.requests, got, err)
			}
			_ = client.Close()
		}
	})
}
