package usage

import "time"

// Slice is a short stretch of time, and the processor time that was spent in it.
type Slice struct {
	From, Until time.Time
	// Machine is all that was spent, by anything.
	Machine time.Duration
	// Server is that of the API server and what it stores in, and Others that of each of
	// those whom it serves, or of which something is known.
	Server time.Duration
	Others []time.Duration
}

// full is the share of the machine's processors from which on they count as used
// fully: processor times come in ticks.
const full = 0.95

// isServers says whether the machine's processors were used fully, and more of them by
// the server than by anybody else: by any of the others, or by all of whom nothing is
// known.
func (s Slice) isServers(processors int) bool {
	if could := float64(s.Until.Sub(s.From)) * float64(processors); float64(s.Machine) < full*could {
		return false
	}
	unknown := s.Machine - s.Server
	for _, other := range s.Others {
		unknown -= other
		if other >= s.Server {
			return false
		}
	}
	return unknown < s.Server
}

// Bottleneck is the share of a time, from 0 to 1, in which the server was what held
// the client up.
type Bottleneck struct {
	// Waiting is the share in which the client did nothing but wait for answers, and
	// Full the one in which the machine's processors were used fully and more of them
	// by the server than by anybody else.
	Waiting, Full float64
	// Either is the share in which at least one of both held.
	Either float64
}

// BottleneckOf returns the shares of the time that the slices cover. waiting says
// how much of a stretch of time the client waited.
func BottleneckOf(slices []Slice, processors int, waiting func(from, until time.Time) time.Duration) Bottleneck {
	var all, waited, used, either time.Duration
	for _, s := range slices {
		took, waits := s.Until.Sub(s.From), waiting(s.From, s.Until)
		all += took
		waited += waits
		if s.isServers(processors) {
			used += took
			either += took
		} else {
			either += waits
		}
	}
	if all == 0 {
		return Bottleneck{}
	}
	share := func(d time.Duration) float64 { return float64(d) / float64(all) }
	return Bottleneck{Waiting: share(waited), Full: share(used), Either: share(either)}
}
