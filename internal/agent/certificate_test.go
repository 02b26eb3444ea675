package agent

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/testcert"
)

const testHost = "cache-0.team.svc"

// testVolume stands for a volume that the kubelet fills.
type testVolume struct {
	t          *testing.T
	dir        string
	generation int
}

// put replaces the content and deletes the previous one, as the kubelet does.
func (v *testVolume) put(content map[string][]byte) {
	v.t.Helper()
	v.generation++
	name := "..generation-" + strconv.Itoa(v.generation)
	must := func(err error) {
		if err != nil {
			v.t.Fatal(err)
		}
	}
	must(os.Mkdir(filepath.Join(v.dir, name), 0o755))
	for file, text := range content {
		must(os.WriteFile(filepath.Join(v.dir, name, file), text, 0o600))
	}
	must(os.Symlink(name, filepath.Join(v.dir, "..data_tmp")))
	must(os.Rename(filepath.Join(v.dir, "..data_tmp"), filepath.Join(v.dir, "..data")))
	must(os.RemoveAll(filepath.Join(v.dir, "..generation-"+strconv.Itoa(v.generation-1))))
}

func TestCertificateAndKeyAreOfTheSameGeneration(t *testing.T) {
	ca := testcert.NewCA("shards")
	content := func() map[string][]byte {
		crt, key := ca.Issue(testcert.Options{Names: []string{testHost}})
		return map[string][]byte{"tls.crt": crt, "tls.key": key, "ca.crt": ca.PEM()}
	}
	first, second := content(), content()
	volume := &testVolume{t: t, dir: t.TempDir()}
	volume.put(first)
	// The reader opens tls.key after it has read tls.crt, and the kubelet replaces both then.
	key := filepath.Join(volume.dir, "..data", "tls.key")
	if err := errors.Join(os.Remove(key), syscall.Mkfifo(key, 0o600)); err != nil {
		t.Fatal(err)
	}
	var swap sync.WaitGroup
	swap.Go(func() {
		pipe, err := os.OpenFile(key, os.O_WRONLY, 0) // waits for the reader
		if err != nil {
			t.Error(err)
			return
		}
		volume.put(second)
		_, _ = pipe.Write(first["tls.key"])
		_ = pipe.Close()
	})
	c, err := readCertificate(volume.dir, testHost, time.Now())
	swap.Wait()
	if err != nil || c.problem != nil {
		t.Fatalf("%v, %+v", err, c)
	}
	want, err := parseCertificate(second["tls.crt"], second["tls.key"], second["ca.crt"], testHost, time.Now())
	if err != nil || c.fingerprint() != want.fingerprint() || string(c.combined) != string(want.combined) {
		t.Errorf("read another certificate than the second: %v", err)
	}
}

func TestCommandLineHasTheListenersOfTheMode(t *testing.T) {
	files := tlsFiles{"/data"}
	const loaded = "-o ssl_chain_cert=/data/tls.pem,ssl_key=/data/tls.pem"
	for words, want := range map[string]struct{ line, own string }{
		"-p 11211 -m 64":    {"-p 11211 -m 64", "127.0.0.1:11211"},
		"-p 11211 -m 64 -Z": {"-p 11211 -m 64 -Z " + loaded + " -l *:11211 -l notls:127.0.0.1:11215", "127.0.0.1:11215"},
		"-p 11211 -Z -l *:11211 -l notls:*:11211": {
			"-p 11211 -Z " + loaded + " -l 127.0.0.2:11215 -l notls:127.0.0.1:11215", "127.0.0.1:11215"},
		"-Z -o ssl_verify_mode=2,ssl_session_cache": {
			"-Z -o ssl_verify_mode=2,ssl_session_cache " + loaded + ",ssl_ca_cert=/data/ca.pem -l *:11211 -l notls:127.0.0.1:11215", "127.0.0.1:11215"},
	} {
		line, own := files.commandLine(strings.Fields(words), 11215)
		if !slices.Equal(line, strings.Fields(want.line)) || own != want.own {
			t.Errorf("%s: %q and %s, want %q and %s", words, line, own, want.line, want.own)
		}
	}
}

func TestNewPodServesACertificateWithAProblemRatherThanNone(t *testing.T) {
	ca := testcert.NewCA("shards")
	crt, key := ca.Issue(testcert.Options{Names: []string{"example.com"}})
	volume := &testVolume{t: t, dir: t.TempDir()}
	volume.put(map[string][]byte{"tls.crt": crt, "tls.key": key})
	files := newServerTLS(config{dataDir: t.TempDir(), tlsVolume: volume.dir, service: testHost + ":11212"})
	got, err := files.forStart([]string{"-Z"}, time.Now())
	if err != nil || got.problem == nil || files.status().Error == "" {
		t.Errorf("%+v, %v; status %+v", got, err, files.status())
	}
	if _, err := files.forStart([]string{"-Z", "-o", "ssl_verify_mode=1"}, time.Now()); err == nil || !strings.Contains(err.Error(), "has no ca.crt") {
		t.Errorf("client certificates without a CA: %v", err)
	}

	good, goodKey := ca.Issue(testcert.Options{Names: []string{testHost}})
	volume.put(map[string][]byte{"tls.crt": good, "tls.key": goodKey, "ca.crt": ca.PEM()})
	valid, err := files.forStart([]string{"-Z"}, time.Now())
	if err != nil || valid.problem != nil {
		t.Fatalf("%+v, %v", valid, err)
	}
	// The last good one comes before one with a problem.
	volume.put(map[string][]byte{"tls.crt": crt, "tls.key": key})
	if got, err := files.forStart([]string{"-Z"}, time.Now()); err != nil || got.fingerprint() != valid.fingerprint() {
		t.Errorf("%+v, %v", got, err)
	}
}
