package protocol

import (
	"errors"
	"fmt"
	"strings"
)

var (
	// ErrTooLong is an answer that exceeds a limit of this package.
	ErrTooLong = errors.New("the answer is longer than allowed")
	// ErrMalformed is an answer that violates the protocol.
	ErrMalformed = errors.New("the answer violates the memcached protocol")
	// ErrUnknownCommand is memcached's ERROR.
	ErrUnknownCommand = errors.New("memcached doesn't know the command")
)

// ClientError is memcached's CLIENT_ERROR: it rejected the request.
type ClientError struct{ Message string }

func (e *ClientError) Error() string { return "memcached rejected the request: " + e.Message }

// ServerError is memcached's SERVER_ERROR: it could not serve the request. An ERROR
// with a message, such as "Too many open connections", is one too.
type ServerError struct{ Message string }

func (e *ServerError) Error() string { return "memcached could not serve the request: " + e.Message }

// IsAnswer reports whether err is an answer of memcached, which means that it is alive
// and reads requests.
func IsAnswer(err error) bool {
	_, client := errors.AsType[*ClientError](err)
	_, server := errors.AsType[*ServerError](err)
	return client || server || errors.Is(err, ErrUnknownCommand)
}

func answerError(line []byte) error {
	word, message, _ := strings.Cut(string(line), " ")
	switch {
	case word == "ERROR" && message == "":
		return ErrUnknownCommand
	case word == "CLIENT_ERROR":
		return &ClientError{Message: message}
	case word == "SERVER_ERROR", word == "ERROR":
		return &ServerError{Message: message}
	}
	return fmt.Errorf("%w: %.80q", ErrMalformed, line)
}
