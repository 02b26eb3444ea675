package peers

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/test/internal/pods"
)

// listOf returns the list of these shards as the operator writes it.
func listOf(version int, shards ...*pods.Shard) string {
	var servers []string
	for i, s := range shards {
		servers = append(servers, fmt.Sprintf("cache-%d.shop.svc|127.0.0.1|%d", i, s.Port))
	}
	return fmt.Sprintf("%d\n%s\n", version, strings.Join(servers, " "))
}

// request returns the answer to a request, up to its END.
func request(t *testing.T, address, text string) string {
	t.Helper()
	conn, err := net.DialTimeout("tcp", address, pods.Patience)
	pods.Must(t, err)
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(pods.Patience))
	_, err = io.WriteString(conn, text+"quit\r\n")
	pods.Must(t, err)
	answer, err := io.ReadAll(conn)
	pods.Must(t, err)
	return string(answer)
}

// Three agents serve clients, also Thanos', lists of two, three and two shards, at the endpoint and in an item of each memcached.
func TestAgentAnswersDiscovery(t *testing.T) {
	t.Parallel()
	var shards []*pods.Shard
	for _, version := range pods.Versions {
		s := pods.NewShard(t)
		s.Memcached, s.DiscoveryPort = pods.MemcachedPath(version), pods.FreePort(t)
		s.Run()
		shards = append(shards, s)
		if answer := request(t, s.DiscoveryAddress(), "config get cluster\r\n"); !strings.HasPrefix(answer, "SERVER_ERROR ") {
			t.Errorf("without a list: %q", answer)
		}
		if answer := pods.Talk(t, s.Address(), "get AmazonElastiCache:cluster\r\n"); answer != "END\r\n" {
			t.Errorf("without a list memcached has the item %q", answer)
		}
	}
	for version, size := range []int{2, 3, 2} {
		list := listOf(1+version, shards[:size]...)
		for i, s := range shards {
			s.Annotate(agentwire.DiscoveryFile, list)
			want := fmt.Sprintf("CONFIG cluster 0 %d\r\n%s\r\nEND\r\n", len(list), list)
			if answer := request(t, s.DiscoveryAddress(), "config get cluster\n"); answer != want {
				t.Errorf("shard %d answers %q, want %q", i, answer, want)
			}
			found, err := exec.Command(filepath.Join(os.Getenv("MEMCACHED_CLIENTS"), "thanos"), s.DiscoveryAddress()).CombinedOutput()
			var servers strings.Builder
			for ordinal, shard := range shards[:size] {
				fmt.Fprintf(&servers, "cache-%d.shop.svc:%d\n", ordinal, shard.Port)
			}
			if err != nil || string(found) != servers.String() {
				t.Errorf("Thanos finds %q at shard %d, %v; want %q", found, i, err, servers.String())
			}
			if answer := request(t, s.DiscoveryAddress(), "version\r\n"); answer != "VERSION "+pods.Versions[i]+"\r\n" {
				t.Errorf("shard %d answers %q", i, answer)
			}
		}
	}
	list := listOf(4, shards...)
	for i, s := range shards {
		s.Annotate(agentwire.DiscoveryFile, list)
		want := fmt.Sprintf("VALUE AmazonElastiCache:cluster 0 %d\r\n%s\r\nEND\r\n", len(list), list)
		if answer := request(t, s.DiscoveryAddress(), "get AmazonElastiCache:cluster\r\n"); answer != want {
			t.Errorf("shard %d answers %q, want %q", i, answer, want)
		}
		var answer string
		if !pods.Eventually(func() bool {
			answer = request(t, s.Address(), "get AmazonElastiCache:cluster\r\n")
			return answer == want
		}) {
			t.Fatalf("memcached of shard %d has the item %q, want %q", i, answer, want)
		}
	}
}
