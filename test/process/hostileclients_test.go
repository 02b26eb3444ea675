package process

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/memcached-operator/memcached-operator/test/internal/pods"
)

// runLimited starts a shard of 64Mi in a container with the default limit. most is how much memcached may allocate: the rest
// is for the items and the agent.
func runLimited(t *testing.T, version string) (s *pods.Shard, pid int, most int64) {
	t.Helper()
	s, limit := shardOfOperator(t, version)
	cgroup := filepath.Join(s.Dir, "cgroup")
	pods.MakeDir(t, cgroup)
	pods.Must(t, os.WriteFile(filepath.Join(cgroup, "memory.max"), []byte(limit.AsDec().String()), 0o644))
	contain(s, "mount --bind "+cgroup+" /sys/fs/cgroup")
	status := s.Run()
	return s, status.PID, limit.Value() - status.MaxBytes - 16<<20
}

// store stores the item that the attacks must not remove.
func store(t *testing.T, s *pods.Shard) {
	t.Helper()
	if got := pods.Talk(t, s.Address(), "set a 0 0 1024\r\n"+strings.Repeat("x", 1024)+"\r\n"); !strings.HasPrefix(got, "STORED") {
		t.Fatal(got)
	}
}

func wantUnharmed(t *testing.T, s *pods.Shard, pid int) {
	t.Helper()
	if got := pods.Talk(t, s.Address(), "mg a s\r\n"); got != "HD s1024\r\n" {
		t.Errorf("the item: %q", got)
	}
	if status := s.Status(); status.PID != pid || s.HasExited() {
		t.Errorf("memcached was restarted: %+v", status)
	}
}

// The kernel would kill the container, and the shard would lose its items.
func TestRequestWithoutAnEndDoesNotUseUpTheMemory(t *testing.T) {
	t.Parallel()
	s, pid, most := runLimited(t, pods.Newest)
	store(t, s)
	if !pods.Eventually(func() bool {
		limits, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", pid))
		return err == nil && !strings.Contains(string(limits), "Max data size             unlimited")
	}) {
		t.Fatal("the agent doesn't limit memcached's memory")
	}
	conn, err := net.Dial("tcp", s.Address())
	pods.Must(t, err)
	defer conn.Close()
	_, err = conn.Write([]byte("get "))
	text, peak := bytes.Repeat([]byte("keys"), 64<<10), int64(0)
	for sent := 0; err == nil && sent < 256<<20; sent += len(text) {
		_, err = conn.Write(text)
		peak = max(peak, memoryOf(t, pid, "RssAnon"))
	}
	if err == nil || peak > most {
		t.Errorf("memcached allocates %.1f MiB of %.1f, and doesn't close the connection: %v", mebibytes(peak), mebibytes(most), err)
	}
	wantUnharmed(t, s, pid)
}

func TestAnswersThatAreNotReadDoNotUseUpTheMemory(t *testing.T) {
	pods.WithEach(t, pods.Versions, func(t *testing.T, version string) {
		s, pid, most := runLimited(t, version)
		store(t, s)
		request := []byte("get " + strings.Repeat("a ", 30_000) + "\r\n")
		var conns []net.Conn
		for range 300 {
			conn, err := net.Dial("tcp", s.Address())
			pods.Must(t, err)
			defer conn.Close()
			_, _ = conn.Write(request) // memcached may close it
			conns = append(conns, conn)
		}
		for _, conn := range conns {
			_ = conn.SetReadDeadline(time.Now().Add(pods.Patience))
			_, _ = conn.Read(make([]byte, 1)) // memcached has parsed the request
		}
		used := memoryOf(t, pid, "RssAnon")
		t.Logf("%.1f MiB of %.1f", mebibytes(used), mebibytes(most))
		if used > most {
			t.Errorf("memcached allocates %.1f MiB of %.1f", mebibytes(used), mebibytes(most))
		}
		wantUnharmed(t, s, pid)
	})
}

// Otherwise the log has all keys, each prefix of a key uses memory, and backups fail.
func TestSettingsThatClientsChangeAreRestored(t *testing.T) {
	pods.WithEach(t, pods.Versions, func(t *testing.T, version string) {
		s := pods.NewShard(t)
		s.Memcached = pods.MemcachedPath(version)
		s.Run()
		settings := func() string {
			_, text, _ := strings.Cut(pods.Talk(t, s.Address(), "stats settings\r\n"), "STAT verbosity")
			return text
		}
		before := settings()
		if got := pods.Talk(t, s.Address(), "shutdown\r\n"); !strings.Contains(got, "ERROR") {
			t.Errorf("shutdown: %q", got)
		}
		// The check that restores the first one knows all settings with which memcached started.
		for _, changes := range []string{"verbosity 1\r\n",
			"stats detail on\r\nlru_crawler sleep 100000\r\nlru_crawler tocrawl 7\r\nlru mode flat\r\nlru_crawler disable\r\n"} {
			pods.Talk(t, s.Address(), changes)
			if !pods.Eventually(func() bool { return settings() == before }) {
				t.Errorf("%s\nbefore:%s", settings(), before)
			}
		}
		for _, name := range strings.Fields("verbosity detail_enabled lru_crawler lru_crawler_sleep lru_crawler_tocrawl lru_segmented") {
			if !pods.Eventually(func() bool { return strings.Contains(s.Log.String(), "changed the setting "+name+" of") }) {
				t.Errorf("%s was not restored", name)
			}
		}
		n, late := s.Metrics(t, "").Values["memcached_agent_settings_restored_total"], strings.Count(s.Log.String(), context.DeadlineExceeded.Error())
		if int(n)+late < 6 {
			t.Errorf("%v restored settings are counted, and %d without an answer in time", n, late)
		}
	})
}
