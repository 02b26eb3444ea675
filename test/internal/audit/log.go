package audit

import (
	"bytes"
	"errors"
	"io"
	"os"
)

// Log is an audit log to which an API server still writes.
type Log struct {
	file *os.File
	// rest is the incomplete last line.
	rest     []byte
	requests []Request
}

// Open opens a log.
func Open(path string) (*Log, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	return &Log{file: file}, nil
}

// Close closes the log.
func (l *Log) Close() error { return l.file.Close() }

// Requests returns all requests in the log so far in the order of the answers. The caller must not change them.
func (l *Log) Requests() ([]Request, error) {
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
func (l *Log) parse() error {
	rest := l.rest
	for {
		end := bytes.IndexByte(rest, '\n')
		if end < 0 {
			l.rest = append(l.rest[:0], rest...)
			return nil
		}
		r, counts, err := Parse(rest[:end])
		if err != nil {
			return err
		}
		if counts {
			l.requests = append(l.requests, r)
		}
		rest = rest[end+1:]
	}
}
