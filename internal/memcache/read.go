package memcache

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Bounds on what a server may send.
const (
	// MaxLine is the longest line in bytes, its end included. memcached's own
	// longest lines name a file or the addresses to listen on.
	MaxLine = 8 << 10
	// MaxStats is the most lines of a stats answer. "stats items" has about 30
	// for each of 63 slab classes.
	MaxStats = 8 << 10
	// MaxKey is the longest key in bytes (KEY_MAX_LENGTH in memcached.h).
	MaxKey = 250
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
		return "", fmt.Errorf("%w: a line ends without CR", ErrMalformed)
	}
	return text, nil
}

// readBlock returns the size bytes of a value and takes the line end after it.
func readBlock(r *bufio.Reader, size, limit int) ([]byte, error) {
	if size > limit {
		return nil, fmt.Errorf("a value of %d bytes: %w", size, ErrTooLong)
	}
	// ReadAll takes memory as the bytes arrive: a server that announces a
	// gigabyte and sends nothing costs nothing.
	block, err := io.ReadAll(io.LimitReader(r, int64(size)+2))
	if err != nil {
		return nil, err
	}
	if len(block) != size+2 {
		return nil, io.ErrUnexpectedEOF
	}
	if block[size] != '\r' || block[size+1] != '\n' {
		return nil, fmt.Errorf("%w: a value does not end where it said", ErrMalformed)
	}
	return block[:size:size], nil
}

// CheckKey returns ErrKey for a key that the text protocol cannot carry.
func CheckKey(key string) error {
	if len(key) == 0 || len(key) > MaxKey {
		return ErrKey
	}
	for i := range len(key) {
		if key[i] <= ' ' || key[i] == 0x7f {
			return ErrKey
		}
	}
	return nil
}
