package e2e

import (
	"testing"

	"github.com/memcached-operator/memcached-operator/test/internal/checker"
	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
	"github.com/memcached-operator/memcached-operator/test/internal/suite"
)

// share of the items written during a change in place that a shard keeps.
const share = 0.99

// checked has clients write, delete and read on the shards of a Memcached until the
// returned function is called, which reports every answer that cannot be right, and
// more lost items than a change in place may cost.
func (s *space) checked(name string, shards int) (stop func() checker.Report) {
	s.Helper()
	for ordinal := range shards {
		s.Address(name, ordinal) // answers
	}
	addresses, err := k.Addresses(s.Ctx, s.Key(name), shards)
	s.Must(err)
	c := checker.Start(1, addresses...)
	s.Cleanup(func() { c.Stop() })
	return func() checker.Report {
		s.Helper()
		r := c.Stop()
		s.Logf("checker: %s", r)
		if len(r.Findings) > 0 || r.Err != nil {
			s.Error("the checker found mistakes")
		}
		if float64(r.Lost) > (1-share)*float64(r.Writes) {
			s.Errorf("%d items were lost of %d that were written", r.Lost, r.Writes)
		}
		return r
	}
}

func TestUpgradeAndDowngradeReturnNoWrongStaleOrDeletedValue(t *testing.T) {
	t.Parallel()
	const shards = 3
	s := newSpace(t)
	middle, newest := versions[len(versions)/2], versions[len(versions)-1]
	s.Apply("cache", suite.Small(shards, suite.Version(middle)))
	s.Available("cache")
	before := s.Lives("cache")
	check := s.checked("cache", shards)
	s.Apply("cache", suite.Small(shards, suite.Version(newest)))
	s.Updated("cache")
	s.Apply("cache", suite.Small(shards, suite.Version(versions[0])))
	s.Updated("cache")
	r := check()
	restarts := map[string]int32{}
	for ordinal := range shards {
		restarts[cluster.ShardName("cache", ordinal)] = 2
	}
	s.Restarted("cache", before, restarts)
	if r.Reads < 1000 || r.Writes < 500 || r.Deletes < 100 || r.Unanswered+r.Failed == 0 {
		t.Error("the checker saw too little of it")
	}
}
