package e2e

import (
	"context"
	"fmt"
	"time"

	"github.com/memcached-operator/memcached-operator/test/internal/checker"
)

// share of the items written during a change in place that a shard keeps.
const share = 0.99

// checked has clients write, delete and read on the shards of a Memcached until the returned function is called. It fails
// the test for every answer that cannot be right, and if the shards kept a smaller share of what was written.
func (s *space) checked(name string, shards int, kept float64) (stop func() checker.Report) {
	s.Helper()
	var servers []func() string
	for ordinal := range shards {
		address := s.Address(name, ordinal)
		servers = append(servers, func() string { return address })
	}
	c := checker.Start(checker.Options{Seed: 1, Workers: 2, Keys: 500, Pause: 4 * time.Millisecond}, servers...)
	s.Cleanup(func() { c.Stop() })
	enough := func(context.Context) error {
		if r := c.SoFar(); r.Reads < 500 || r.Writes < 200 || r.Deletes < 50 {
			return fmt.Errorf("too few operations: %s", r)
		}
		return nil
	}
	s.Eventually("clients use the shards", enough)
	return func() checker.Report {
		s.Helper()
		r := c.Stop()
		s.Logf("checker: %s", r)
		if len(r.Findings) > 0 || r.Err != nil {
			s.Error("the checker found mistakes")
		}
		if float64(r.Lost) > (1-kept)*float64(r.Writes) {
			s.Errorf("%d items were lost of %d that were written", r.Lost, r.Writes)
		}
		return r
	}
}
