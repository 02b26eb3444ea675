package e2e

import (
	"context"
	"fmt"
	"net"
	"testing"

	"github.com/memcached-operator/memcached-operator/test/internal/suite"
)

// With the option ndots 1, and so with musl and with dskit's resolver, a client looks up the name as it is.
func TestNamesResolveWithoutSearchDomains(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.Apply("cache", suite.Small(2))
	m := s.Available("cache")
	for ordinal, server := range m.Status.Servers {
		host, port, err := net.SplitHostPort(server)
		s.Must(err)
		s.Eventually("the address of "+server, func(ctx context.Context) error {
			found, err := net.DefaultResolver.LookupHost(ctx, host+".")
			if err != nil || len(found) != 1 || net.JoinHostPort(found[0], port) != s.Address("cache", ordinal) {
				return fmt.Errorf("it has %v, %w; want %s", found, err, s.Address("cache", ordinal))
			}
			return nil
		})
	}
}
