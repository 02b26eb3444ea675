package command

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/internal/memcached/fake"
)

// createServed creates cache, whose clients use a ring, and returns memcached of its shards.
func (w *world) createServed() (m *v1beta1.Memcached, shards [2]*fake.Server) {
	w.t.Helper()
	m = w.create("cache")
	m.Status.Servers = []string{"cache-0.default.svc.cluster.local:11211", "cache-1.default.svc.cluster.local:11211"}
	w.report(m)
	m.Spec.Access.Hashing = &v1beta1.Hashing{Algorithm: v1beta1.HashModulo}
	if err := w.api.Update(w.t.Context(), m); err != nil {
		w.t.Fatal(err)
	}
	for i, pod := range []string{"cache-0-a:11211", "cache-1-b:11211"} {
		shards[i] = fake.New().Serve(w.pods.network, pod)
		w.t.Cleanup(shards[i].Stop)
	}
	return m, shards
}

// By CRC-32, the first shard owns d, and the second one owns a.
func TestKeysAreOnTheShardThatOwnsThem(t *testing.T) {
	w := newWorld(t)
	_, shards := w.createServed()
	w.in = "\x00binary\n"
	w.want(w.run("set", "cache", "a", "hello", "--ttl", "90s"), 0, "cache-1 stores 5 bytes\n", "")
	w.want(w.run("set", "cache", "d"), 0, "cache-0 stores 8 bytes\n", "")
	w.want(w.run("get", "cache", "d"), 0, "\x00binary\n", "")
	w.want(w.run("set", "cache", "d", "\xff"), 0, "cache-0 stores 1 bytes\n", "")
	w.want(w.run("get", "cache", "d", "-o", "json"), 0, `"base64": "/w=="`, "")
	w.want(w.run("get", "cache", "a", "-o", "json"), 0, `{
  "shard": "cache-1",
  "key": "a",
  "value": "hello",
  "flags": 0,
  "ttl": 90,
  "cas": 1099511627777
}`, "")
	w.want(w.run("get", "cache", "a", "--shard", "0"), exitNotFound, "", "Error: cache-0 doesn't have the key\n")
	w.want(w.run("delete", "cache", "a", "--dry-run"), 0, "cache-1 would delete the key\n", "")
	if len(shards[1].Items()) != 1 {
		t.Error("a dry run has deleted it")
	}
	w.want(w.run("delete", "cache", "a"), 0, "cache-1 has deleted the key\n", "")
	for _, arguments := range []string{"get", "delete", "delete --dry-run"} {
		w.want(w.run(append(strings.Fields(arguments), "cache", "a")...), exitNotFound, "", "Error: cache-1 doesn't have the key\n")
	}
}

func TestKeysThatNoShardIsKnownFor(t *testing.T) {
	w := newWorld(t)
	m, _ := w.createServed()
	w.want(w.run("get", "cache", strings.Repeat("k", 251)), exitUsage, "", "the key has 251 bytes")
	w.want(w.run("get", "cache", ""), exitUsage, "", "the key has 0 bytes")
	w.want(w.run("delete", "cache", "my key"), exitUsage, "", `the key has ' ' as byte 3`)
	w.want(w.run("set", "cache", "a", "v", "--ttl", "2562047h"), exitUsage, "", "--ttl is 2562047h0m0s: memcached's time ends on 19 January 2038")
	w.want(w.run("get", "cache", "a", "--shard", "7"), exitUsage, "", "name one from 0 to 1")
	m.Spec.Access.Hashing = nil
	if err := w.api.Update(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	w.want(w.run("get", "cache", "a"), exitUsage, "", "spec.access.hashing doesn't say how its clients choose one: set it, or name the shard with --shard")
	w.want(w.run("set", "cache", "a", "v", "--shard", "cache-0"), 0, "cache-0 stores 1 bytes\n", "")
	w.want(w.run("shell", "cache"), exitUsage, "", "name one with --shard")
	m.Status.Servers, m.Status.Shards = m.Status.Servers[:1], m.Status.Shards[:1]
	w.report(m)
	w.want(w.run("get", "cache", "a"), 0, "v", "")
	w.in = "version\nmn"
	w.want(w.run("shell", "cache"), 0, "VERSION 1.6.45\r\n", "")
}

func TestExptimeOfATTL(t *testing.T) {
	for ttl, want := range map[time.Duration]int64{
		0: 0, time.Millisecond: 1, 90 * time.Second: 90, longest: 2592000, longest + time.Second: now.Unix() + 2592001, math.MaxInt64: now.Unix() + 9223372037,
	} {
		if got := exptime(ttl, now); got != want {
			t.Errorf("%s: %d, want %d", ttl, got, want)
		}
	}
}
