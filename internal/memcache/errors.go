package memcache

import (
	"errors"
	"fmt"
	"strings"
)

var (
	// ErrTooLong is an answer beyond one of this package's bounds.
	ErrTooLong = errors.New("the answer is longer than allowed")
	// ErrMalformed is an answer that is not the protocol's.
	ErrMalformed = errors.New("the answer is not memcached's protocol")
	// ErrUnknownCommand is memcached's ERROR: it does not know the command.
	ErrUnknownCommand = errors.New("memcached does not know the command")
	// ErrNotStored is NOT_STORED: the condition of the store did not hold.
	ErrNotStored = errors.New("not stored")
	// ErrExists is EXISTS: the item has another CAS than the one given.
	ErrExists = errors.New("the item was changed since")
	// ErrNotFound is NOT_FOUND: there is no such item.
	ErrNotFound = errors.New("no such item")
	// ErrKey is a key that the protocol cannot carry.
	ErrKey = errors.New("a key is 1 to 250 bytes without spaces and control characters")
)

// ClientError is memcached's CLIENT_ERROR: it refused what was asked.
type ClientError struct{ Message string }

func (e *ClientError) Error() string { return "memcached refused the request: " + e.Message }

// ServerError is memcached's SERVER_ERROR: it could not do what was asked. An
// ERROR that carries a message, such as "Too many open connections", is one too.
type ServerError struct{ Message string }

func (e *ServerError) Error() string { return "memcached could not answer: " + e.Message }

// IsAnswer reports whether memcached itself gave err as its answer, which means
// that it is alive and reads requests.
func IsAnswer(err error) bool {
	var client *ClientError
	var server *ServerError
	return errors.As(err, &client) || errors.As(err, &server) || errors.Is(err, ErrUnknownCommand)
}

// refusal returns the error that a line of an answer means, or ErrMalformed,
// since it is asked only about lines that fit nothing else.
func refusal(line string) error {
	word, message, _ := strings.Cut(line, " ")
	switch {
	case line == "ERROR":
		return ErrUnknownCommand
	case word == "CLIENT_ERROR":
		return &ClientError{Message: message}
	case word == "SERVER_ERROR", word == "ERROR":
		return &ServerError{Message: message}
	}
	return fmt.Errorf("%w: %.80q", ErrMalformed, line)
}
