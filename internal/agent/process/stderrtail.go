package process

import (
	"log/slog"
	"strings"
	"sync"
)

// stderrTail logs what memcached writes to stderr, a line each, and keeps what may explain a failure: the
// last line, and the messages about the restartable cache.
type stderrTail struct {
	log *slog.Logger

	mu      sync.Mutex
	partial []byte
	last    string
	restart []string
}

const (
	maxLineBytes    = 512
	maxRestartLines = 16
)

func (s *stderrTail) Write(p []byte) (int, error) {
	s.mu.Lock()
	for _, b := range p {
		switch {
		case b == '\n':
			s.endLine()
		case len(s.partial) < maxLineBytes:
			s.partial = append(s.partial, b)
		}
	}
	s.mu.Unlock()
	return len(p), nil
}

func (s *stderrTail) endLine() {
	line := strings.TrimSpace(string(s.partial))
	s.partial = s.partial[:0]
	if line == "" {
		return
	}
	s.last = line
	s.log.Info(line, "source", "memcached")
	if strings.HasPrefix(line, "[restart]") && len(s.restart) < maxRestartLines {
		s.restart = append(s.restart, line)
	}
}

// lastLine returns the last line, which may be incomplete.
func (s *stderrTail) lastLine() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if partial := strings.TrimSpace(string(s.partial)); partial != "" {
		return partial
	}
	return s.last
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
