package checker

// absent is the version of an empty key. Versions of values start at 1.
const absent = 0

// Kind of a finding.
type Kind string

// Lost is no finding, as a cache may lose items.
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
	// done: the server confirmed it.
	done outcome = iota
	// undone: the request did not reach the server.
	undone
	// unknown: the request may have reached the server.
	unknown
)

// state is what a key contains as far as its worker knows.
type state struct {
	// newest is the newest version of any attempt.
	newest int
	// now is the version that the key contains.
	now int
	// maybe is the version that it may contain from now on, if open.
	maybe int
	open  bool
}

// write records an attempt to write a version. It must not be called once the state is open.
func (s *state) write(version int, result outcome) {
	s.newest = max(s.newest, version)
	switch result {
	case done:
		s.now = version
	case unknown:
		s.maybe, s.open = version, true
	case undone:
	}
}

// saw records the version that a read returned, which is the expected one from now on.
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
