package protocol

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Limits of what a server may send.
const (
	// MaxLine is the longest line in bytes, including its end: the size of a reader's
	// buffer. The longest lines of memcached contain a file name or the addresses to
	// listen on.
	MaxLine = 8 << 10
	// MaxStats is the largest number of lines of a stats answer. "stats items" has about
	// 30 for each of 63 slab classes.
	MaxStats = 8 << 10
	// MaxKey is the longest key in bytes (KEY_MAX_LENGTH in memcached.h).
	MaxKey = 250
	// MaxValue is the longest value in bytes, the upper limit of -I.
	MaxValue = 1 << 30
)

// readLine returns the next line without its end, which is LF or CRLF. The line is valid
// until the next read. A line that is longer than the reader's buffer is ErrTooLong.
func readLine(r *bufio.Reader) ([]byte, error) {
	line, err := r.ReadSlice('\n')
	switch {
	case err == nil:
		return bytes.TrimSuffix(line[:len(line)-1], []byte("\r")), nil
	case errors.Is(err, bufio.ErrBufferFull):
		return nil, fmt.Errorf("a line: %w", ErrTooLong)
	case len(line) > 0:
		return nil, Unexpected(err)
	}
	return nil, err
}

// Unexpected returns the error for an end within an answer.
func Unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// ReadVersion reads the answer to "version" and returns the version, such as "1.6.45".
func ReadVersion(r *bufio.Reader) (string, error) {
	line, err := readLine(r)
	if err != nil {
		return "", err
	}
	version, ok := bytes.CutPrefix(line, []byte("VERSION "))
	if !ok {
		return "", answerError(line)
	}
	return string(version), nil
}

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

// ErrFull is the answer of a server that has as many connections as it may have.
var ErrFull = &ServerError{Message: "Too many open connections"}

// IsFull reports whether err is ErrFull.
func IsFull(err error) bool {
	server, ok := errors.AsType[*ServerError](err)
	return ok && *server == *ErrFull
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
