package checker

// absent is the version of a key that holds nothing; the versions of values count
// from 1.
const absent = 0

// Kind of a mistake.
type Kind string

// The kinds. Lost is none: the item of a cache may go.
const (
	fine  Kind = ""
	Lost  Kind = "lost"
	Wrong Kind = "wrong"
	Stale Kind = "stale"
	Back  Kind = "back"
)

// outcome of a write or a deletion.
type outcome int

const (
	// done: the server said so.
	done outcome = iota
	// undone: the request never reached the server.
	undone
	// unknown: the request may have reached it.
	unknown
)

// state is what a key holds as far as its worker can know.
type state struct {
	// newest version that was ever tried.
	newest int
	// now is the version it holds.
	now int
	// maybe is the version that it may hold at any time from now on, if open.
	maybe int
	open  bool
}

// write takes what came of an attempt to have the key hold a version. It must not
// be called once the state is open.
func (s *state) write(version int, came outcome) {
	s.newest = max(s.newest, version)
	switch came {
	case done:
		s.now = version
	case unknown:
		s.maybe, s.open = version, true
	case undone:
	}
}

// saw takes the version that the key was seen to hold. One that was written is from
// now on the one it holds.
func (s *state) saw(version int) Kind {
	if version > s.newest {
		return Wrong
	}
	was := s.now
	s.now = version
	switch {
	case version == was:
		return fine
	case s.open && version == s.maybe:
		s.open = false
		return fine
	case version == absent:
		return Lost
	case was == absent:
		return Back
	default:
		return Stale
	}
}
