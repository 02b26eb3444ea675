package process

import (
	"context"
	"fmt"
	"io"
	"io/fs"
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

// askAgent runs a command in the shard's container, and again while the agent or memcached is late.
func askAgent(s *pods.Shard, words ...string) (out string, err error) {
	pods.Eventually(func() bool {
		command := exec.Command(pods.AgentPath, append([]string{words[0], "-data", s.Data}, words[1:]...)...)
		command.SysProcAttr = s.Attributes
		text, failed := command.CombinedOutput()
		out, err = string(text), failed
		return err == nil || !strings.Contains(out, os.ErrDeadlineExceeded.Error()) && !strings.Contains(out, context.DeadlineExceeded.Error())
	})
	return out, err
}

// Users see the keys that are read most, which the agent reports nowhere else.
func TestHotKeysAreThoseThatClientsReadMost(t *testing.T) {
	pods.WithEach(t, pods.Tested, func(t *testing.T, version string) {
		s := pods.NewShard(t)
		s.Memcached = pods.MemcachedPath(version)
		s.Run()
		pods.Fill(t, s.Address(), 1000)
		pods.Talk(t, s.Address(), "set secret 0 0 1 noreply\r\nx\r\n")
		stop, stopped := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(stopped)
			conn, err := net.Dial("tcp", s.Address())
			if err != nil {
				return
			}
			defer conn.Close()
			go func() { _, _ = io.Copy(io.Discard, conn) }()
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				case <-time.After(100 * time.Microsecond):
				}
				if _, err := fmt.Fprintf(conn, "get secret\r\nget item%d\r\nget missing%%20key\r\nmg secret v\r\n", i%1000); err != nil {
					return
				}
			}
		}()
		var out string
		var lines []string
		for deadline := time.Now().Add(pods.Patience); len(lines) < 4 && time.Now().Before(deadline); {
			var err error
			if out, err = askAgent(s, "hotkeys", "-for", "500ms"); err != nil {
				t.Fatal(out, err)
			}
			lines = strings.Split(out, "\n")
		}
		close(stop)
		<-stopped
		if len(lines) < 4 || !strings.HasSuffix(lines[2], "  100%  secret") || !strings.HasSuffix(lines[3], "    0%  missing%20key") {
			t.Errorf("the keys are\n%s", out)
		}
		for what, text := range map[string]string{"log": s.Log.String(), "metrics": s.Metrics(t, "?slabs").Text} {
			if strings.Contains(text, "secret") {
				t.Errorf("the %s contains a key:\n%s", what, text)
			}
		}
		if answer := pods.Talk(t, s.Address(), "stats\r\n"); strings.Contains(answer, "STAT log_watchers 1") {
			t.Error("memcached still logs its reads")
		}
	})
}

// The list of clients is there when they leave no connection for another one.
func TestConnectionsAreListedAtTheLimit(t *testing.T) {
	pods.WithEach(t, pods.Tested, func(t *testing.T, version string) {
		s := pods.NewShard(t)
		s.Memcached = pods.MemcachedPath(version)
		s.Run()
		if out, err := askAgent(s, "connections"); err != nil { // the agent has its connection
			t.Fatal(out, err)
		}
		open := 0
		for range 1100 {
			dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 7)}}
			conn, err := dialer.Dial("tcp", s.Address())
			pods.Must(t, err)
			defer conn.Close()
			if _, err := fmt.Fprint(conn, "mn\r\n"); err != nil {
				break
			}
			answer := make([]byte, 4)
			_ = conn.SetReadDeadline(time.Now().Add(pods.Patience))
			if _, err := io.ReadFull(conn, answer); err != nil || string(answer) != "MN\r\n" {
				break
			}
			open++
		}
		out, err := askAgent(s, "connections")
		if err != nil || open < 100 || open >= 1100 {
			t.Fatal(open, out, err)
		}
		fields := strings.Fields(strings.Split(out, "\n")[2])
		if len(fields) != 4 || fields[0] != fmt.Sprint(open) || fields[1] != "0" || fields[3] != "127.0.0.7" {
			t.Errorf("%d connections are open:\n%s", open, out)
		}
		if out, err := askAgent(s, "hotkeys", "-for", "1s"); err == nil || !strings.Contains(out, "onnection") {
			t.Errorf("%q, %v", out, err)
		}
	})
}

// Only the user of the container can connect, and a killed agent's socket is no obstacle.
func TestInsightsAreForTheContainerOnly(t *testing.T) {
	t.Parallel()
	s := pods.NewShard(t)
	s.Run()
	path := filepath.Join(s.Data, "insights.sock")
	info, err := os.Stat(path)
	if err != nil || info.Mode() != fs.ModeSocket|0o600 {
		t.Errorf("%v, %v", info, err)
	}
	s.StopContainer()
	s.Annotate(agentwire.StopFile, "")
	if !pods.Exists(path) {
		pods.WriteFile(t, path, "")
	}
	s.Run()
	if out, err := askAgent(s, "connections"); err != nil {
		t.Error(out, err)
	}
	if out, err := askAgent(s, "connections", "-for", "1s"); err == nil {
		t.Errorf("a flag of another command: %s", out)
	}
}
