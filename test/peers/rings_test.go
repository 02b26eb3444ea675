package peers

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bradfitz/gomemcache/memcache"

	cachev1beta1 "github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/internal/memcached/ring"
	"github.com/memcached-operator/memcached-operator/test/internal/pods"
)

// A client prints the name of the server that it uses for each key.
type client func(t *testing.T, servers, keys []string) []string

var (
	ketama     = clientOf("python3", "-c", askPylibmc)
	jump       = clientOf("dskit")
	rendezvous = clientOf("python3", "-c", askPymemcache)
)

func TestRingsMatchClientLibraries(t *testing.T) {
	t.Parallel()
	keys := append(plainKeys(8_000), characterKeys(2_000)...)
	for _, tt := range []struct {
		ring   cachev1beta1.HashAlgorithm
		client client
	}{
		{cachev1beta1.HashModulo, modulo},
		{cachev1beta1.HashJump, jump},
		{cachev1beta1.HashRendezvous, rendezvous},
		{cachev1beta1.HashKetama, ketama},
	} {
		t.Run(string(tt.ring), func(t *testing.T) {
			t.Parallel()
			sizes := []int{1, 2, 3, 5, 16}
			if tt.ring == cachev1beta1.HashKetama {
				// Where a float that libmemcached computes with rounds to four points less a server.
				sizes = append(sizes, 25)
			}
			for _, n := range sizes {
				for name, servers := range spellings(n) {
					if tt.ring == cachev1beta1.HashModulo && name != "ports" {
						continue // gomemcache looks names up, and the ring has no use for them
					}
					agree(t, fmt.Sprintf("%d servers, %s", n, name), tt.ring, tt.client, servers, keys)
				}
			}
		})
	}
}

// agree compares the server of each key by our ring and by a client.
func agree(t *testing.T, what string, name cachev1beta1.HashAlgorithm, ask client, servers, keys []string) {
	t.Helper()
	ours, err := ring.New(string(name), servers)
	pods.Must(t, err)
	theirs := ask(t, servers, keys)
	if len(theirs) != len(keys) {
		t.Fatalf("%s: the client reported %d keys out of %d", what, len(theirs), len(keys))
	}
	wrong := 0
	for i, key := range keys {
		got := servers[ours.Shard([]byte(key))]
		if got != theirs[i] {
			if wrong++; wrong <= 3 {
				t.Errorf("%s: key %q belongs to %s, and the client picks %s", what, key, got, theirs[i])
			}
		}
	}
	if wrong > 3 {
		t.Errorf("%s: %d of %d keys are elsewhere", what, wrong, len(keys))
	}
}

// spellings are the ways in which clients are configured with n servers.
func spellings(n int) map[string][]string {
	s := map[string][]string{}
	for i := range n {
		s["services"] = append(s["services"], fmt.Sprintf("cache-%d.shop.svc:11211", i))
		s["full names"] = append(s["full names"], fmt.Sprintf("cache-%d.shop.svc.cluster.local:11211", i))
		// Neither in the order of the names nor in that of their numbers.
		s["other names"] = append(s["other names"], fmt.Sprintf("memcached%d-of-the-shop:%d", (i*7+3)%n, 11211+i%2))
		s["ports"] = append(s["ports"], fmt.Sprintf("127.0.0.1:%d", 11300-7*i))
	}
	return s
}

// plainKeys are n keys of the characters and lengths that memcached takes.
func plainKeys(n int) []string {
	random := rand.New(rand.NewPCG(1, 2))
	keys := make([]string, n)
	for i := range keys {
		key := fmt.Appendf(nil, "%d:", i)
		longest := 40
		if i%10 == 0 {
			longest = 250
		}
		for range random.IntN(longest - len(key) + 1) {
			key = append(key, byte('!'+random.IntN('~'-'!'+1)))
		}
		keys[i] = string(key)
	}
	return keys
}

// characterKeys are n keys of text in UTF-8.
func characterKeys(n int) []string {
	random := rand.New(rand.NewPCG(3, 4))
	keys := make([]string, n)
	for i := range keys {
		key := fmt.Appendf(nil, "%d:", i)
		for range 1 + random.IntN(20) {
			key = append(key, string([]rune("aé鍵€😀ключ")[random.IntN(9)])...)
		}
		keys[i] = string(key)
	}
	return keys
}

// modulo uses gomemcache.
func modulo(t *testing.T, servers, keys []string) []string {
	t.Helper()
	var list memcache.ServerList
	pods.Must(t, list.SetServers(servers...))
	picked := make([]string, len(keys))
	for i, key := range keys {
		address, err := list.PickServer(key)
		pods.Must(t, err)
		picked[i] = address.String()
	}
	return picked
}

// clientOf runs a program of MEMCACHED_CLIENTS with the servers as its last arguments,
// a key a line for its input and a server a line for its output.
func clientOf(program string, args ...string) client {
	return func(t *testing.T, servers, keys []string) []string {
		t.Helper()
		cmd := exec.Command(filepath.Join(os.Getenv("MEMCACHED_CLIENTS"), program), append(args[:len(args):len(args)], servers...)...)
		cmd.Stdin = strings.NewReader(strings.Join(keys, "\n") + "\n")
		var said, complaint bytes.Buffer
		cmd.Stdout, cmd.Stderr = &said, &complaint
		if err := cmd.Run(); err != nil {
			t.Fatalf("%s: %v\n%s", program, err, &complaint)
		}
		return strings.Fields(said.String())
	}
}

// askPymemcache has the client pick a server and not connect to it.
const askPymemcache = `
import sys
from pymemcache.client.hash import HashClient
client = HashClient(sys.argv[1:], allow_unicode_keys=True)
sys.stdin.reconfigure(encoding="utf-8")
for line in sys.stdin:
    picked = client._get_client(line.rstrip("\n"))
    print("%s:%s" % picked.server)
`

// askPylibmc has libmemcached itself hash each key.
const askPylibmc = `
import sys
import pylibmc
servers = sys.argv[1:]
client = pylibmc.Client(servers, behaviors={"ketama_weighted": True})
sys.stdin.reconfigure(encoding="utf-8")
for line in sys.stdin:
    print(servers[client.hash(line.rstrip("\n"))])
`
