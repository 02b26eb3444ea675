package usage

import "time"

// Slice is the processor time that was used in a short time.
type Slice struct {
	From, Until time.Time
	// Machine is the time of all programs.
	Machine time.Duration
	// Server is the time of the API server and its storage, Others that of each other known program.
	Server time.Duration
	Others []time.Duration
}

// full is the share of the machine's processors from which they count as fully used: processor times have a resolution
// of 10 ms.
const full = 0.95

// isServers reports whether the processors were fully used, and more of them by the server than by any other program or
// by all unknown programs together.
func (s Slice) isServers(processors int) bool {
	if available := float64(s.Until.Sub(s.From)) * float64(processors); float64(s.Machine) < full*available {
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

// Bottleneck is the share of a time, from 0 to 1, in which the server delayed the client.
type Bottleneck struct {
	// Waiting is the share in which the client only waited for answers, Full the one in which the processors were fully
	// used and most by the server, Either the one in which at least one was true.
	Waiting, Full, Either float64
}

// BottleneckOf returns the shares of the time of the slices. waiting returns how much of a time the client waited.
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
