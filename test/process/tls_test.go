package process

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/testcert"
	"github.com/memcached-operator/memcached-operator/test/internal/pods"
)

func TestTLSIsSwitchedOnAndOffWithItsItems(t *testing.T) {
	pods.WithEach(t, pods.Tested, func(t *testing.T, version string) {
		ca, withoutRoot := testcert.NewCA("shards"), testcert.NewCA("root").Intermediate("clients")
		s := pods.NewTLSShard(t)
		s.Memcached = pods.MemcachedPath(version)
		crt, key := ca.Issue(testcert.Options{Names: []string{pods.TLSHost}})
		s.Put(crt, key, slices.Concat(ca.PEM(), withoutRoot.PEM()))
		served := testcert.Fingerprint(crt)
		s.Annotate(agentwire.ProtectionFile, `{"tls":"Disabled"}`)
		s.Run()
		client := fillWithAll(t, 1, s.AsCache())[0]
		pods.Fill(t, s.Address(), 20_000)
		items, size := client.Answers(s.AsCache()), s.AsCache().Items()
		secured, withCertificate := pods.ClientConfig(t, ca, nil), pods.ClientConfig(t, ca, ca)
		for _, step := range []struct {
			name     string
			words    []string
			loopback bool
			accepts  []*tls.Config
			rejects  []*tls.Config
		}{
			{"Permissive", pods.WordsPermissive, true, []*tls.Config{nil, secured}, nil},
			{"Required", pods.WordsRequired, true, []*tls.Config{secured, withCertificate}, []*tls.Config{nil}},
			{"client certificates", pods.WordsClients, true, []*tls.Config{withCertificate}, []*tls.Config{nil, secured, pods.ClientConfig(t, ca, testcert.NewCA("others")), pods.ClientConfig(t, ca, withoutRoot)}},
			{"TLS 1.3", append([]string{"-o", "ssl_min_version=3"}, pods.WordsRequired...), true, []*tls.Config{secured}, []*tls.Config{nil, {RootCAs: secured.RootCAs, ServerName: pods.TLSHost, MaxVersion: tls.VersionTLS12}}},
			{"Permissive again", pods.WordsPermissive, true, []*tls.Config{nil, secured}, nil},
			{"plain", nil, false, []*tls.Config{nil}, []*tls.Config{secured}},
		} {
			status := s.Apply(step.words...)
			pods.WantWarm(t, status, size)
			t.Logf("%s: unavailable for %.3f s", step.name, status.Start.UnavailableSeconds)
			own := &pods.Cache{T: t, Port: s.Port}
			if step.loopback {
				own.Port = s.LoopbackPort
			}
			now := client.Answers(own)
			pods.WantEqual(t, step.name, now, items)
			if items = now; own.Items() != size { // with what is left of their time to live
				t.Errorf("%s: %d items, want %d", step.name, own.Items(), size)
			}
			for _, config := range step.accepts {
				fingerprint := served
				if config == nil {
					fingerprint = ""
				}
				s.WantServed(config, fingerprint)
			}
			for _, config := range step.rejects {
				s.WantRejected(config)
			}
			wantProbes(s.Shard)
		}
	})
}

func TestRotatedCertificateIsServedWithoutARestart(t *testing.T) {
	pods.WithEach(t, pods.Tested, func(t *testing.T, version string) {
		ca := testcert.NewCA("shards")
		s := pods.NewTLSShard(t)
		s.Memcached = pods.MemcachedPath(version)
		s.Annotate(agentwire.ArgumentsFile, s.Arguments(pods.WordsRequired...))
		s.Issue(ca, testcert.Options{})
		first := s.Run()
		config := pods.ClientConfig(t, ca, nil)
		long, err := tls.Dial("tcp", s.Address(), config)
		pods.Must(t, err)
		defer long.Close()
		ctx, stop := context.WithCancel(t.Context())
		var dials, failed atomic.Int64
		var dialers sync.WaitGroup
		for range 2 {
			dialers.Go(func() {
				for ctx.Err() == nil {
					if _, err := pods.RequestVersion(ctx, s.Address(), config); err != nil && ctx.Err() == nil {
						failed.Add(1)
						t.Logf("a client failed: %v", err)
					}
					dials.Add(1)
				}
			})
		}
		const swaps = 1000
		var last string
		for range swaps {
			last = s.Issue(ca, testcert.Options{})
		}
		status := s.WaitUntilServed(last)
		stop()
		dialers.Wait()
		s.WantServed(config, last)
		t.Logf("%d swaps, %d connections", swaps, dials.Load())
		if failed.Load() > 0 || dials.Load() == 0 || status.PID != first.PID || status.Secrets.Certificate.RestartRequired != "" {
			t.Errorf("%d of %d connections failed; %+v", failed.Load(), dials.Load(), status)
		}
		_, err = io.WriteString(long, "version\r\n")
		pods.Must(t, err)
		if line, err := bufio.NewReader(long).ReadString('\n'); err != nil {
			t.Errorf("the open connection: %q, %v", line, err)
		}
	})
}

func TestRestartServesWhatAReloadCannot(t *testing.T) {
	t.Parallel()
	first, second := testcert.NewCA("first"), testcert.NewCA("second")
	for name, c := range map[string]struct {
		words         []string
		before, after testcert.Options
		casBefore     []*testcert.CA
		want          string
		// rejected is only rejected after the restart.
		rejected *testcert.CA
	}{
		"RSA after ECDSA": {pods.WordsRequired, testcert.Options{}, testcert.Options{RSA: true}, []*testcert.CA{first}, "whose key is of type RSA", nil},
		"ECDSA after RSA": {pods.WordsRequired, testcert.Options{RSA: true}, testcert.Options{}, []*testcert.CA{first}, "whose key is of type ECDSA", nil},
		"removed CA":      {pods.WordsClients, testcert.Options{}, testcert.Options{}, []*testcert.CA{first, second}, "memcached still accepts clients of CA CN=second", second},
	} {
		for _, version := range pods.Tested {
			t.Run(name+" with "+version, func(t *testing.T) {
				t.Parallel()
				s := pods.NewTLSShard(t)
				s.Memcached = pods.MemcachedPath(version)
				s.Annotate(agentwire.ArgumentsFile, s.Arguments(c.words...))
				c.before.Names, c.after.Names = []string{pods.TLSHost}, []string{pods.TLSHost}
				crt, key := first.Issue(c.before)
				var cas []byte
				for _, ca := range c.casBefore {
					cas = append(cas, ca.PEM()...)
				}
				s.Put(crt, key, cas)
				before := s.Run()
				pid := before.PID
				pods.Fill(t, s.Loopback(), 100)
				offered := s.Issue(first, c.after)
				status := s.WaitForCertificate("the required restart", func(c agentwire.Certificate) bool { return c.RestartRequired != "" })
				pods.WantContains(t, "the reason", status.Secrets.Certificate.RestartRequired, c.want)
				if status.PID != pid || status.Secrets.Certificate.Offered == before.Secrets.Certificate.Offered || status.Secrets.Certificate.Error != "" {
					t.Errorf("status %+v, certificate %+v", status, status.Secrets.Certificate)
				}
				if c.rejected != nil {
					s.WantServed(pods.ClientConfig(t, first, c.rejected), offered)
				}
				s.Annotate(agentwire.RestartFile, "certificate")
				status = s.WaitFor("the restart", func(status agentwire.Status) bool { return status.Restart == "certificate" && status.PID != pid })
				pods.WantWarm(t, status, 100)
				if status.Secrets.Certificate.RestartRequired != "" || status.Secrets.Certificate.SHA256 != offered {
					t.Errorf("certificate %+v, want %s", status.Secrets.Certificate, offered)
				}
				s.WantServed(pods.ClientConfig(t, first, first), offered)
				if c.rejected != nil {
					s.WantRejected(pods.ClientConfig(t, first, c.rejected))
				}
			})
		}
	}
}

func TestPermissiveModeCountsPlainConnections(t *testing.T) {
	t.Parallel()
	ca := testcert.NewCA("shards")
	s := pods.NewTLSShard(t)
	s.Annotate(agentwire.ArgumentsFile, s.Arguments(pods.WordsPermissive...))
	s.Issue(ca, testcert.Options{})
	s.Run()
	began := time.Now().Truncate(time.Second)
	var open []net.Conn
	for range 3 {
		conn, err := net.Dial("tcp", s.Address())
		pods.Must(t, err)
		defer conn.Close()
		open = append(open, conn)
	}
	secured, err := tls.Dial("tcp", s.Address(), pods.ClientConfig(t, ca, nil))
	pods.Must(t, err)
	defer secured.Close()
	for _, conn := range append(open, secured) {
		// A value that needs more than one read, in both directions.
		value := strings.Repeat("v", 500_000)
		_ = conn.SetDeadline(time.Now().Add(pods.Patience))
		_, err := fmt.Fprintf(conn, "set k 0 0 %d\r\n%s\r\nget k\r\n", len(value), value)
		pods.Must(t, err)
		want := fmt.Sprintf("STORED\r\nVALUE k 0 %d\r\n%s\r\nEND\r\n", len(value), value)
		got := make([]byte, len(want))
		if _, err := io.ReadFull(conn, got); err != nil || string(got) != want {
			t.Fatalf("%d bytes, %v", len(got), err)
		}
	}
	plain := func(n int64) {
		t.Helper()
		s.WaitForCertificate(fmt.Sprintf("%d plain connections", n), func(c agentwire.Certificate) bool { return c.PlainConnections == n })
	}
	plain(3)
	if c := s.Status().Secrets.Certificate; c.LastPlainConnection.Before(began) {
		t.Errorf("the last plain connection was at %s, the test began at %s", c.LastPlainConnection, began)
	}
	if got := pods.FetchMetrics(t, "http://"+s.MetricsAddress()+"/metrics").Values["memcached_agent_forwarded_connections"]; got != 4 {
		t.Errorf("the agent forwards %v connections", got)
	}
	for _, conn := range open {
		_ = conn.Close()
	}
	plain(0)
	if code, body, err := s.Get("/status"); err != nil || code != 200 {
		t.Errorf("%d %s %v", code, body, err)
	}
}

// A client that resumes sessions fails with client certificates unless memcached has a session cache.
func TestClientWithACertificateResumesItsSession(t *testing.T) {
	pods.WithEach(t, pods.Tested, func(t *testing.T, version string) {
		ca := testcert.NewCA("shards")
		s := pods.NewTLSShard(t)
		s.Memcached = pods.MemcachedPath(version)
		s.Annotate(agentwire.ArgumentsFile, s.Arguments(pods.WordsClients...))
		s.Issue(ca, testcert.Options{})
		s.Run()
		config := pods.ClientConfig(t, ca, ca)
		config.ClientSessionCache = tls.NewLRUClientSessionCache(8)
		for range 3 {
			_, err := pods.RequestVersion(t.Context(), s.Address(), config)
			pods.Must(t, err)
		}
	})
}
