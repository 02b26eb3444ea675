package process

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// stderrTail logs what memcached writes to stderr, a line each, and keeps what may explain a failure: the
// last line, unless memcached logs requests, and the messages about the restartable cache.
type stderrTail struct {
	log *slog.Logger
	// dropped counts the lines that are not logged.
	dropped *atomic.Int64

	mu      sync.Mutex
	partial []byte
	last    string
	// requests is whether memcached has logged one. What it writes from then on may be a part of a key.
	requests bool
	restart  []string
	// second is the one in which so many lines were logged or dropped.
	second         time.Time
	logged, unsaid int
}

const (
	maxLineBytes    = 512
	maxRestartLines = 16
	// maxLines is how many lines are logged in a second. Any client can let memcached log each request with its key.
	maxLines = 100
)

func (s *stderrTail) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for rest := p; len(rest) > 0; {
		line, more, complete := bytes.Cut(rest, []byte("\n"))
		s.partial = append(s.partial, line[:min(len(line), maxLineBytes-len(s.partial))]...)
		if rest = more; complete {
			s.endLine()
		}
	}
	return len(p), nil
}

func (s *stderrTail) endLine() {
	line := strings.TrimSpace(string(s.partial))
	s.partial = s.partial[:0]
	if line == "" {
		return
	}
	s.last, s.requests = line, s.requests || isRequest(line)
	s.logLine(line)
	if strings.HasPrefix(line, "[restart]") && len(s.restart) < maxRestartLines {
		s.restart = append(s.restart, line)
	}
}

// logLine drops what is too much for a second, and says so in the next one that has a line.
func (s *stderrTail) logLine(line string) {
	if now := time.Now(); now.Sub(s.second) >= time.Second {
		if s.unsaid > 0 {
			s.log.Warn("memcached wrote more lines than are logged; does a client send the command verbosity?", "dropped", s.unsaid)
		}
		s.second, s.logged, s.unsaid = now, 0, 0
	}
	if s.logged++; s.logged > maxLines {
		s.unsaid++
		s.dropped.Add(1)
		return
	}
	s.log.Info(line, "source", "memcached")
}

// isRequest reports whether a line is about a request or its answer.
func isRequest(line string) bool { return line[0] == '<' || line[0] == '>' }

// lastLine returns the last line, which may be incomplete; empty if it may have a key.
func (s *stderrTail) lastLine() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := s.last
	if partial := strings.TrimSpace(string(s.partial)); partial != "" {
		last = partial
	}
	if s.requests || last != "" && isRequest(last) {
		return ""
	}
	return last
}

// restartRejection returns memcached's reason for not loading the saved items;
// empty if it printed none.
func (s *stderrTail) restartRejection() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var reason string
	for _, line := range s.restart {
		line = strings.TrimSpace(strings.TrimPrefix(line, "[restart]"))
		switch {
		case strings.HasPrefix(line, "restart incompatible"), strings.HasPrefix(line, "memory restart with extstore"):
			return line
		case strings.Contains(line, "clean cache"), strings.HasPrefix(line, "missing some metadata"):
			reason = line
		}
	}
	return reason
}
