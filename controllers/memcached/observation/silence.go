package observation

import (
	"time"

	"github.com/memcached-operator/memcached-operator/controllers/memcached/shard"
	"github.com/memcached-operator/memcached-operator/internal/serverclock"
)

// Silence is the time in which an agent has let reconciles wait for an answer.
type Silence struct{ Since, QueriedAt time.Time }

// IsOver reports whether it is time to query the agent again.
func (s Silence) IsOver(now time.Time) bool {
	return serverclock.Age(now, s.QueriedAt) >= shard.AgentBackoff(s.QueriedAt.Sub(s.Since))
}

// After returns the silence of an agent that didn't answer now either.
func (s Silence) After(now time.Time) Silence {
	if s.Since.IsZero() {
		s.Since = now
	}
	s.QueriedAt = now
	return s
}
