package metricsauth

import (
	"crypto/sha256"
	"net/http"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

const (
	// passesFor is how long a request of a reader passes without another review, and so how
	// late a revoked permission has an effect.
	passesFor = time.Minute
	// knownFor is how long a reader that passed has a reserved place.
	knownFor = time.Hour
	// maxPassed bounds the readers that are remembered. Only those with permission are.
	maxPassed = 64
)

// reader is a hash of a token, and of what its owner requests with it.
type reader [sha256.Size]byte

func readerOf(token string, r *http.Request) reader {
	return sha256.Sum256([]byte(r.Method + " " + r.URL.Path + " " + token))
}

// passed are the readers that passed a review, with the time of the last one.
type passed struct {
	clock clock.PassiveClock
	lock  sync.Mutex
	at    map[reader]time.Time
}

// has reports whether a reader passed a review within knownFor, and within passesFor.
func (p *passed) has(r reader) (isKnown, recently bool) {
	p.lock.Lock()
	defer p.lock.Unlock()
	at, ok := p.at[r]
	age := p.clock.Since(at)
	return ok && age < knownFor, ok && age < passesFor
}

// add records that a reader passed now, and forgets the one that passed first when there are
// too many.
func (p *passed) add(r reader) {
	p.lock.Lock()
	defer p.lock.Unlock()
	if p.at == nil {
		p.at = map[reader]time.Time{}
	}
	p.at[r] = p.clock.Now()
	if len(p.at) <= maxPassed {
		return
	}
	oldest := r
	for other, at := range p.at {
		if at.Before(p.at[oldest]) {
			oldest = other
		}
	}
	delete(p.at, oldest)
}

func (p *passed) remove(r reader) {
	p.lock.Lock()
	defer p.lock.Unlock()
	delete(p.at, r)
}
