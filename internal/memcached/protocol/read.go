package protocol

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Limits of what a server may send.
const (
	// MaxLine is the longest line in bytes, including its end. The longest lines of
	// memcached contain a file name or the addresses to listen on.
	MaxLine = 8 << 10
	// MaxStats is the largest number of lines of a stats answer. "stats items" has about
	// 30 for each of 63 slab classes.
	MaxStats = 8 << 10
	// MaxKey is the longest key in bytes (KEY_MAX_LENGTH in memcached.h).
	MaxKey = 250
	// MaxValue is the longest value in bytes, the upper limit of -I.
	MaxValue = 1 << 30
)

// readLine returns the next line without its end.
func readLine(r *bufio.Reader) (string, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > MaxLine {
			return "", fmt.Errorf("a line: %w", ErrTooLong)
		}
		if err == nil {
			break
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if errors.Is(err, io.EOF) && len(line) > 0 {
			err = io.ErrUnexpectedEOF
		}
		return "", err
	}
	text, ok := strings.CutSuffix(string(line), "\r\n")
	if !ok {
		return "", fmt.Errorf("%w: a line without CR", ErrMalformed)
	}
	return text, nil
}
