package memcache

import (
	"bufio"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// Requests that are sent many at a time, and their answers, which come in the same
// order. None of it takes memory of its own for each item.

const (
	// maxEncodedKey is the longest base64 of a key that memcached takes: it holds it
	// to the limit of the key itself.
	maxEncodedKey = MaxKey
	// MaxValue is memcached's own upper limit of -I, in bytes.
	MaxValue = maxValue
)

// appendKey appends a key as a meta command names it, and reports whether that is
// base64. A key that no request can name, which the binary protocol may have
// stored, is not ok.
func appendKey(dst, key []byte) (out []byte, encoded, ok bool) {
	if len(key) == 0 || len(key) > MaxKey {
		return dst, false, false
	}
	for _, c := range key {
		// What separates words in any version; other control characters do not.
		if c == ' ' || c == 0 || '\t' <= c && c <= '\r' {
			encoded = true
			break
		}
	}
	if !encoded {
		return append(dst, key...), false, true
	}
	if base64.StdEncoding.EncodedLen(len(key)) > maxEncodedKey {
		return dst, false, false
	}
	return base64.StdEncoding.AppendEncode(dst, key), true, true
}

// AppendMetaGet appends a request for a key; flags are such as " v t". It reports
// whether a request can name the key.
func AppendMetaGet(dst, key []byte, flags string) ([]byte, bool) {
	before := len(dst)
	dst = append(dst, "mg "...)
	dst, encoded, ok := appendKey(dst, key)
	if !ok {
		return dst[:before], false
	}
	return appendEnd(append(dst, flags...), encoded), true
}

// AppendInvalidate appends a request that has an item be stale for the next client
// that asks, if it has still that CAS. The answer is HD, or another code.
func AppendInvalidate(dst, key []byte, cas uint64) ([]byte, bool) {
	before := len(dst)
	dst = append(dst, "md "...)
	dst, encoded, ok := appendKey(dst, key)
	if !ok {
		return dst[:before], false
	}
	dst = append(dst, " I C"...)
	dst = strconv.AppendUint(dst, cas, 10)
	return appendEnd(dst, encoded), true
}

// AppendMetaSet appends the first line of a store, after which the caller sends
// size bytes and CRLF. exptime is memcached's, as of Conn.Set. With add an item that
// is there stays as it is, and the answer is MetaNotStored. It reports whether a
// request can name the key.
func AppendMetaSet(dst, key []byte, size int, flags uint64, exptime int64, add bool) ([]byte, bool) {
	before := len(dst)
	dst = append(dst, "ms "...)
	dst, encoded, ok := appendKey(dst, key)
	if !ok {
		return dst[:before], false
	}
	dst = append(dst, ' ')
	dst = strconv.AppendInt(dst, int64(size), 10)
	if exptime != 0 {
		dst = append(dst, " T"...)
		dst = strconv.AppendInt(dst, exptime, 10)
	}
	if flags != 0 {
		dst = append(dst, " F"...)
		dst = strconv.AppendUint(dst, flags, 10)
	}
	if add {
		dst = append(dst, " ME"...)
	}
	return appendEnd(dst, encoded), true
}

func appendEnd(dst []byte, encoded bool) []byte {
	if encoded {
		dst = append(dst, " b"...)
	}
	return append(dst, "\r\n"...)
}

// Head is the first line of a meta answer.
type Head struct {
	// Code is one of the codes of meta answers. After MetaValue the value follows,
	// which ReadValue reads.
	Code string
	// Size of the value in bytes, with MetaValue.
	Size int
	// Flags of the client, if they were asked for.
	Flags uint64
	// TTL is what an item has left to live in seconds, if it was asked for; -1 is
	// for ever.
	TTL int64
	// CAS is 0 unless it was asked for.
	CAS uint64
	// Stale is an item that was invalidated, Won that its asker is to renew it: no
	// other client will be told so.
	Stale, Won bool
}

// ReadHead reads the first line of the answer to one mg, ms, md or mn. After a
// *ServerError about a store the next answer follows in its place; after any
// other error it is not known where the next one begins.
func ReadHead(r *bufio.Reader) (Head, error) {
	line, err := readShortLine(r)
	if err != nil {
		return Head{}, err
	}
	head, ok := parseHead(line)
	if !ok {
		return Head{}, refusal(string(line))
	}
	return head, nil
}

func parseHead(line []byte) (head Head, ok bool) {
	if len(line) < 2 || len(line) > 2 && line[2] != ' ' {
		return head, false
	}
	rest := line[2:]
	switch string(line[:2]) {
	case MetaHit:
		head.Code = MetaHit
	case MetaMiss:
		head.Code = MetaMiss
	case MetaNotFound:
		head.Code = MetaNotFound
	case MetaNotStored:
		head.Code = MetaNotStored
	case MetaExists:
		head.Code = MetaExists
	case MetaNoOp:
		head.Code = MetaNoOp
	case MetaValue:
		head.Code = MetaValue
		word, after := nextWord(rest)
		size, ok := parseInt(word)
		if !ok || size < 0 || size > MaxValue {
			return head, false
		}
		head.Size, rest = int(size), after
	default:
		return head, false
	}
	for {
		var word []byte
		if word, rest = nextWord(rest); len(word) == 0 {
			return head, true
		}
		ok := true
		switch word[0] {
		case 'f':
			head.Flags, ok = parseUint(word[1:])
		case 't':
			head.TTL, ok = parseInt(word[1:])
		case 'c':
			head.CAS, ok = parseUint(word[1:])
		case 'X':
			head.Stale = true
		case 'W':
			head.Won = true
		}
		if !ok {
			return head, false
		}
	}
}

// nextWord returns the first word of a line and what follows it.
func nextWord(line []byte) (word, rest []byte) {
	for len(line) > 0 && line[0] == ' ' {
		line = line[1:]
	}
	for i, c := range line {
		if c == ' ' {
			return line[:i], line[i:]
		}
	}
	return line, nil
}

func parseUint(text []byte) (uint64, bool) {
	if len(text) > 18 {
		n, err := strconv.ParseUint(string(text), 10, 64)
		return n, err == nil
	}
	n, ok := parseInt(text)
	return uint64(n), ok && n >= 0
}

// ReadValue appends the size bytes of a value to dst and takes the line end after it.
// It takes memory as the bytes arrive; what was read of a value that ends too soon is
// in the slice that it returns.
func ReadValue(r *bufio.Reader, dst []byte, size int) ([]byte, error) {
	dst, err := readMore(r, dst, size)
	if err != nil {
		return dst, err
	}
	return dst, EndValue(r)
}

// ReadPart is ReadValue of the next size bytes of a longer value, after the last of
// which comes EndValue.
func ReadPart(r *bufio.Reader, dst []byte, size int) ([]byte, error) { return readMore(r, dst, size) }

func readMore(r *bufio.Reader, dst []byte, size int) ([]byte, error) {
	const most = 64 << 10 // that is taken for what has not arrived
	for size > 0 {
		from := len(dst)
		step := min(size, max(most, cap(dst)-from))
		if cap(dst)-from < step {
			grown := make([]byte, from, max(2*cap(dst), from+step))
			copy(grown, dst)
			dst = grown
		}
		n, err := io.ReadFull(r, dst[from:from+step])
		dst = dst[:from+n]
		if err != nil {
			return dst, unexpected(err)
		}
		size -= step
	}
	return dst, nil
}

// EndValue takes the line end after a value.
func EndValue(r *bufio.Reader) error {
	end, err := r.Peek(2)
	if err != nil {
		return unexpected(err)
	}
	if end[0] != '\r' || end[1] != '\n' {
		return fmt.Errorf("%w: a value does not end where it said", ErrMalformed)
	}
	_, err = r.Discard(2)
	return err
}

// unexpected is the error of an end amid an answer.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
