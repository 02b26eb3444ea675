package e2e

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/test/internal/suite"
)

// discover reads the version of the list and the shards in it as clients with auto discovery do.
func discover(ctx context.Context, endpoint string) (version int64, servers []string, err error) {
	conn, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, "tcp", endpoint)
	if err != nil {
		return 0, nil, err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
	if _, err := io.WriteString(conn, "config get cluster\r\n"); err != nil {
		return 0, nil, err
	}
	lines := bufio.NewScanner(conn)
	for _, want := range []string{"CONFIG cluster 0 ", "", ""} {
		if !lines.Scan() || !strings.HasPrefix(lines.Text(), want) {
			return 0, nil, fmt.Errorf("the answer is %q, %w", lines.Text(), lines.Err())
		}
		if want == "" && version == 0 {
			if version, err = strconv.ParseInt(lines.Text(), 10, 64); err != nil {
				return 0, nil, err
			}
		} else if want == "" {
			servers = strings.Fields(lines.Text())
		}
	}
	return version, servers, nil
}

// Two, three and two shards. The pods of all shards serve the endpoint, so each list is requested many times.
func TestClientsDiscoverTheShards(t *testing.T) {
	s := newSpace(t)
	discovered := func(spec *v1beta1.MemcachedSpec) { spec.Access.Discovery.Mode = v1beta1.DiscoveryElastiCache }
	s.Serve("cache", suite.Small(2, discovered))
	lives := s.Lives("cache")
	var last int64
	for _, size := range []int{2, 3, 2} {
		s.Apply("cache", suite.Small(int32(size), discovered))
		m := s.Await("cache", fmt.Sprintf("a list of %d shards", size), func(m *v1beta1.Memcached) error {
			if d := m.Status.Discovery; d == nil || int(d.Size) != size {
				return fmt.Errorf("the status is %+v", d)
			}
			return nil
		})
		s.Eventually("the list", func(ctx context.Context) error {
			for range 10 {
				version, servers, err := discover(ctx, m.Status.Discovery.Endpoint)
				if err != nil || version != m.Status.Discovery.Version || len(servers) != size {
					return fmt.Errorf("version %d has %v, %w; want %+v", version, servers, err, m.Status.Discovery)
				}
				for ordinal, server := range servers {
					host, rest, _ := strings.Cut(server, "|")
					if ip, port, _ := strings.Cut(rest, "|"); host+":"+port != m.Status.Servers[ordinal] || net.JoinHostPort(ip, port) != s.Address("cache", ordinal) {
						return fmt.Errorf("shard %d is %s", ordinal, server)
					}
				}
			}
			return nil
		})
		if m.Status.Discovery.Version <= last {
			t.Errorf("version %d follows %d", m.Status.Discovery.Version, last)
		}
		last = m.Status.Discovery.Version
	}
	// Clients have not read the list yet.
	s.Holds(s.Written("cache", 2, 100))
	s.Untouched("cache", lives)
}
