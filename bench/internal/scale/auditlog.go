package scale

import (
	"bytes"
	"errors"
	"io"
	"os"
	"time"

	"github.com/memcached-operator/memcached-operator/test/internal/audit"
)

// AuditLog is one to which an API server still writes.
type AuditLog struct {
	file *os.File
	// rest is the incomplete last line.
	rest     []byte
	requests []audit.Request
}

func openAuditLog(path string) (*AuditLog, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	return &AuditLog{file: file}, nil
}

// Close closes the log.
func (l *AuditLog) Close() error { return l.file.Close() }

// Requests returns all requests in the log so far in the order of the answers. The caller must not change them.
func (l *AuditLog) Requests() ([]audit.Request, error) {
	buffer := make([]byte, 1<<20)
	for {
		n, err := l.file.Read(buffer)
		l.rest = append(l.rest, buffer[:n]...)
		if parseErr := l.parse(); parseErr != nil {
			return nil, parseErr
		}
		if errors.Is(err, io.EOF) {
			return l.requests, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// parse parses the complete lines of rest.
func (l *AuditLog) parse() error {
	rest := l.rest
	for {
		end := bytes.IndexByte(rest, '\n')
		if end < 0 {
			l.rest = append(l.rest[:0], rest...)
			return nil
		}
		r, counts, err := audit.Parse(rest[:end])
		if err != nil {
			return err
		}
		if counts {
			l.requests = append(l.requests, r)
		}
		rest = rest[end+1:]
	}
}

// RequestsOf returns the requests of a user that were received from a time to before another one.
func RequestsOf(requests []audit.Request, user string, from, until time.Time) []audit.Request {
	var of []audit.Request
	for _, r := range requests {
		if r.User == user && !r.Received.Before(from) && r.Received.Before(until) {
			of = append(of, r)
		}
	}
	return of
}
