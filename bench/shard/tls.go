package shard

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/internal/testcert"
	"github.com/memcached-operator/memcached-operator/test/bench/report"
	"github.com/memcached-operator/memcached-operator/test/bench/usage"
)

// TLS compares clients without TLS, with it, and in mode Permissive, which take turns.
var TLS = report.Benchmark{Name: "tls", Summary: "how TLS changes latencies, requests a second and memory", Flags: func(flags *flag.FlagSet) report.Measure {
	o := &tlsOptions{}
	version(flags, &o.version)
	flags.IntVar(&o.rounds, "rounds", 6, "how often each kind of clients is measured")
	flags.DurationVar(&o.turn, "turn", 3*time.Second, "how long a kind is measured in each round")
	return o.run
}}

type tlsOptions struct {
	version string
	rounds  int
	turn    time.Duration
}

const (
	// tlsClients read one key, and idleClients connect for the memory of a connection.
	tlsClients  = 4
	idleClients = 2000
)

// tlsClient is a kind of clients, with what was measured in each round relative to the first kind: p50, p99 and requests a second.
type tlsClient struct {
	name     string
	mode     v1beta1.TLSMode
	config   *tls.Config
	shard    *server
	measured [3][]float64
}

func (o *tlsOptions) run(ctx context.Context, r *report.Run) (result report.Result, err error) {
	ca := testcert.NewCA("shards")
	secured := &tls.Config{RootCAs: x509.NewCertPool(), ServerName: hostName, MinVersion: tls.VersionTLS12}
	secured.RootCAs.AppendCertsFromPEM(ca.PEM())
	kinds := []*tlsClient{
		{name: "plain"}, {name: "`Required`", mode: v1beta1.TLSRequired, config: secured},
		{name: "`Permissive`, plain clients", mode: v1beta1.TLSPermissive}, {name: "`Permissive`, clients with TLS", mode: v1beta1.TLSPermissive, config: secured},
	}
	table := report.Table{{"", "p50", "p99", "requests a second", "memory of a connection", "with the kernel's"}}
	err = onHost(ctx, o.version, func(h *host) error {
		for _, k := range kinds {
			spec := specOf(64<<20, 4096)
			if k.mode != "" {
				spec.TLS = v1beta1.TLSSpec{Mode: k.mode}
			}
			if k.shard, err = h.shard(ctx, spec, ca); err != nil {
				return err
			}
		}
		for range o.rounds {
			var base [3]float64
			for i, k := range kinds {
				latencies, err := k.readFor(ctx, o.turn)
				if err != nil {
					return err
				}
				now := [3]float64{report.Quantile(latencies, 0.5), report.Quantile(latencies, 0.99), float64(len(latencies)) / o.turn.Seconds()}
				if i == 0 {
					base = now
				}
				r.Say("%-32s p50 %3.0f us, p99 %4.0f us, %6.0f requests/s", k.name, now[0]*1e6, now[1]*1e6, now[2])
				for n := range now {
					k.measured[n] = append(k.measured[n], now[n]/base[n])
				}
			}
		}
		for _, k := range kinds {
			row := []string{k.name}
			for _, figure := range k.measured {
				row = append(row, fmt.Sprintf("%.2f", report.Quantile(figure, 0.5)))
			}
			resident, container, err := k.memory(ctx)
			if err != nil {
				return err
			}
			kibibytes := func(bytes int64) string { return fmt.Sprintf("%.1f KiB", float64(bytes)/1024) }
			table = append(table, append(row, kibibytes(resident), kibibytes(container)))
		}
		return nil
	})
	result.Tables = []report.Table{table}
	return result, err
}

// connect opens a connection and sends one request.
func (k *tlsClient) connect(ctx context.Context) (net.Conn, *bufio.Reader, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", k.shard.address)
	if err != nil {
		return nil, nil, err
	}
	if k.config != nil {
		conn = tls.Client(conn, k.config)
	}
	r := bufio.NewReader(conn)
	if err := get(conn, r); err != nil {
		_ = conn.Close()
		return nil, nil, fmt.Errorf("the first request of a client, %s: %w", k.name, err)
	}
	return conn, r, nil
}

func get(conn net.Conn, r *bufio.Reader) error {
	if _, err := io.WriteString(conn, "mg key v\r\n"); err != nil {
		return err
	}
	_, err := r.ReadString('\n')
	return err
}

// readFor reads one key over some connections, and returns the latencies in seconds.
func (k *tlsClient) readFor(ctx context.Context, d time.Duration) (latencies []float64, err error) {
	var lock sync.Mutex
	var group errgroup.Group
	for range tlsClients {
		group.Go(func() error {
			conn, r, err := k.connect(ctx)
			if err != nil {
				return err
			}
			defer conn.Close()
			var own []float64
			for began := time.Now(); time.Since(began) < d && ctx.Err() == nil; {
				sent := time.Now()
				if err := get(conn, r); err != nil {
					return err
				}
				own = append(own, time.Since(sent).Seconds())
			}
			lock.Lock()
			defer lock.Unlock()
			latencies = append(latencies, own...)
			return ctx.Err()
		})
	}
	return latencies, group.Wait()
}

// memory returns by how much an idle connection enlarges memcached and its agent, and the memory of their container, which has that
// of the kernel too, in bytes without the buffers of sockets.
func (k *tlsClient) memory(ctx context.Context) (resident, container int64, err error) {
	memcached, err := usage.ChildOf(k.shard.command.Process.Pid)
	if err != nil {
		return 0, 0, err
	}
	read := func(sign int64) {
		for _, pid := range []int{memcached, k.shard.command.Process.Pid} {
			m, e := usage.MemoryOf(pid)
			resident, err = resident+sign*m.Now, errors.Join(err, e)
		}
		used, _, e := k.shard.usage()
		container, err = container+sign*used, errors.Join(err, e)
	}
	read(-1)
	for range idleClients {
		conn, _, err := k.connect(ctx)
		if err != nil {
			return 0, 0, err
		}
		defer conn.Close()
	}
	read(1)
	return resident / idleClients, container / idleClients, err
}
