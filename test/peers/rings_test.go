package peers

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/bradfitz/gomemcache/memcache"

	cachev1beta1 "github.com/memcached-operator/memcached-operator/api/v1beta1"
	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
	"github.com/memcached-operator/memcached-operator/internal/memcached/ring"
	"github.com/memcached-operator/memcached-operator/internal/testcert"
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

// access is how a client connects: a nil config is a plain connection.
type access struct {
	name   string
	config *tls.Config
	logsIn bool
}

// lookup requests keys, whose values are the keys themselves, at a server, and returns how many it doesn't find.
func (a access) lookup(server string, keys []string) (missing int, err error) {
	conn, err := net.Dial("tcp", server)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(pods.Patience))
	if a.config != nil {
		conn = tls.Client(conn, a.config)
	}
	if a.logsIn {
		if err := protocol.Login(conn, "app", "secret"); err != nil {
			return 0, err
		}
	}
	go func() { _, _ = io.WriteString(conn, "mg "+strings.Join(keys, " v\r\nmg ")+" v\r\n") }()
	r := bufio.NewReader(conn)
	for _, key := range keys {
		head, err := protocol.ReadHead(r)
		switch {
		case err != nil:
			return 0, err
		case head.Code != protocol.MetaValue:
			missing++
			continue
		}
		value, err := protocol.ReadValue(r, nil, head.Size)
		if err != nil {
			return 0, err
		}
		if string(value) != key {
			return 0, fmt.Errorf("the value of %q is %q", key, value)
		}
	}
	return missing, nil
}

// The clients are configured once, and no step changes the address of a shard.
func TestClientsFindEveryKeyWhileTLSAndLoginsAreSwitchedOnAndOff(t *testing.T) {
	t.Parallel()
	const size = 3
	ca := testcert.NewCA("shards")
	var shards []*pods.TLSShard
	var servers []string
	for range size {
		s := pods.NewTLSShard(t)
		s.Issue(ca, testcert.Options{})
		users := &pods.UserShard{Shard: s.Shard}
		users.MountUsers()
		users.Put(map[string]string{"app": "secret"})
		s.Annotate(agentwire.ProtectionFile, `{"auth":"Disabled","tls":"Disabled"}`)
		s.Run()
		shards, servers = append(shards, s), append(servers, net.JoinHostPort(pods.TLSHost, strconv.Itoa(s.Port)))
	}
	// The keys of each ring, by shard.
	rings := map[cachev1beta1.HashAlgorithm][size][]string{}
	all := plainKeys(6000)
	for name, library := range map[cachev1beta1.HashAlgorithm]client{cachev1beta1.HashKetama: ketama, cachev1beta1.HashRendezvous: rendezvous} {
		keys := all[:3000]
		all = all[3000:]
		agree(t, "the shards", name, library, servers, keys)
		ours, err := ring.New(string(name), servers)
		pods.Must(t, err)
		var of [size][]string
		var stores [size]strings.Builder
		for _, key := range keys {
			i := ours.Shard([]byte(key))
			of[i] = append(of[i], key)
			_, _ = fmt.Fprintf(&stores[i], "ms %s %d q\r\n%s\r\n", key, len(key), key)
		}
		for i := range stores {
			if answer := pods.Talk(t, shards[i].Address(), stores[i].String()); answer != "" || len(of[i]) == 0 {
				t.Fatalf("storing %d keys: %q", len(of[i]), answer)
			}
		}
		rings[name] = of
	}
	find := func(when string, a access) {
		t.Helper()
		for name, of := range rings {
			for i, server := range servers {
				if missing, err := a.lookup(server, of[i]); err != nil || missing > 0 {
					t.Errorf("%s, a client with %s and %s: %d of %d keys are missing at shard %d, %v", when, a.name, name, missing, len(of[i]), i, err)
				}
			}
		}
	}
	secured := pods.ClientConfig(t, ca, nil)
	plain, withTLS, withLogin := access{"plain connections", nil, false}, access{"TLS", secured, false}, access{"TLS and a login", secured, true}
	find("without TLS", plain)
	for _, step := range []struct {
		name  string
		words []string
		// Clients that are configured as during find their keys after each shard, and those as after at the end.
		during access
		after  []access
	}{
		{"Permissive", pods.WordsPermissive, plain, []access{plain, withTLS, withLogin}},
		{"Required", pods.WordsRequired, withTLS, []access{withTLS, withLogin}},
		{"a login", append(pods.WordsLogin, pods.WordsRequired...), withLogin, []access{withLogin}},
		{"Permissive again", pods.WordsPermissive, withLogin, []access{plain, withTLS, withLogin}},
		{"plain again", nil, plain, []access{plain}},
	} {
		for i, s := range shards {
			s.Apply(step.words...)
			find(fmt.Sprintf("%s, after shard %d", step.name, i), step.during)
		}
		for _, a := range step.after {
			find(step.name, a)
		}
	}
}
