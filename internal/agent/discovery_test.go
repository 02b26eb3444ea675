package agent

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/memcached-operator/memcached-operator/internal/agent/wire"
)

const twoShards = "12\ncache-0.shop.svc|10.0.0.1|11211 cache-1.shop.svc|10.0.0.2|11211\n"

// discoveryOf returns what answers with a list.
func discoveryOf(t *testing.T, list string) discovery {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, wire.DiscoveryFile), []byte(list), 0o600); err != nil {
		t.Fatal(err)
	}
	states := &atomic.Pointer[state]{}
	states.Store(&state{status: wire.Status{Version: "1.6.45"}})
	return newDiscovery(config{podInfoDir: dir}, states, nil)
}

func TestDiscoveryAnswersAsElastiCacheDoes(t *testing.T) {
	t.Parallel()
	d := discoveryOf(t, twoShards)
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
		if got := d.answer(request); got != want {
			t.Errorf("the answer to %q is %q, want %q", request, got, want)
		}
	}
	unknown := discoveryOf(t, "")
	if got := unknown.answer("config get cluster"); !strings.HasPrefix(got, "SERVER_ERROR ") {
		t.Errorf("without a list the answer is %q", got)
	}
	unknown.path += "-of-an-older-pod"
	if got := unknown.answer("config get cluster"); !strings.HasPrefix(got, "SERVER_ERROR ") {
		t.Errorf("without the file the answer is %q", got)
	}
}

func TestDiscoveryKeepsAConnection(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := discoveryOf(t, twoShards)
		for _, c := range []struct{ requests, want string }{
			{"version\nversion\r\nquit\r\nversion\r\n", "VERSION 1.6.45\r\nVERSION 1.6.45\r\n"}, // Thanos sends no carriage return
			{"version\r\n" + strings.Repeat("x", maxDiscoveryRequest+1), "VERSION 1.6.45\r\n"},
			{"version\r\nvers", "VERSION 1.6.45\r\n"}, // it ends after discoveryIdle
		} {
			client, server := net.Pipe()
			go func() {
				d.answerAll(server)
				_ = server.Close()
			}()
			go func() { _, _ = io.WriteString(client, c.requests) }()
			got, err := io.ReadAll(client)
			if string(got) != c.want || err != nil {
				t.Errorf("the answers to %.30q are %q, %v", c.requests, got, err)
			}
			_ = client.Close()
		}
	})
}
