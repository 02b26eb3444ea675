package protocol

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
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
		return nil, unexpected(err)
	}
	return nil, err
}

// unexpected returns the error for an end within an answer.
func unexpected(err error) error {
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
