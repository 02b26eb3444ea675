package protocol

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"slices"
	"strconv"
)

// Codes of meta answers.
const (
	MetaHit       = "HD"
	MetaValue     = "VA"
	MetaMiss      = "EN"
	MetaNotFound  = "NF"
	MetaNotStored = "NS"
	MetaExists    = "EX"
)

// appendKey appends a command and a key, in base64 if necessary. It is not ok if no
// request can express the key, which the binary protocol may have stored.
func appendKey(dst []byte, command string, key []byte) (out []byte, encoded, ok bool) {
	if len(key) == 0 || len(key) > MaxKey {
		return dst, false, false
	}
	// What separates words in some version; other control characters don't.
	if !bytes.ContainsAny(key, " \x00\t\n\v\f\r") {
		return append(append(dst, command...), key...), false, true
	}
	return appendEncodedKey(dst, command, key)
}

func appendEncodedKey(dst []byte, command string, key []byte) (out []byte, encoded, ok bool) {
	if len(key) == 0 {
		return dst, false, false
	}
	// memcached applies the limit of keys to the encoded form.
	if base64.StdEncoding.EncodedLen(len(key)) > MaxKey {
		return dst, false, false
	}
	return base64.StdEncoding.AppendEncode(append(dst, command...), key), true, true
}

// AppendMetaGet appends a request for a key, with flags such as " v t". It reports
// whether a request can express the key.
func AppendMetaGet(dst, key []byte, flags string) ([]byte, bool) {
	dst, encoded, ok := appendKey(dst, "mg ", key)
	if !ok {
		return dst, false
	}
	return appendEnd(append(dst, flags...), encoded), true
}

// AppendInvalidate appends a request that marks an item as stale if its CAS is still the
// same. It reports whether a request can express the key.
func AppendInvalidate(dst, key []byte, cas uint64) ([]byte, bool) {
	dst, encoded, ok := appendKey(dst, "md ", key)
	if !ok {
		return dst, false
	}
	dst = append(dst, " I C"...)
	dst = strconv.AppendUint(dst, cas, 10)
	return appendEnd(dst, encoded), true
}

// AppendDelete appends a request that deletes an item. It reports whether a request can
// express the key.
func AppendDelete(dst, key []byte) ([]byte, bool) {
	dst, encoded, ok := appendKey(dst, "md ", key)
	if !ok {
		return dst, false
	}
	return appendEnd(dst, encoded), true
}

// AppendMetaSet appends the first line of a set, after which the caller sends size bytes
// and CRLF. exptime is memcached's: 0 means never, up to 30 days are seconds from now,
// beyond that it is a Unix time. With add an existing item is kept, and the answer is
// MetaNotStored. It reports whether a request can express the key.
func AppendMetaSet(dst, key []byte, size int, flags uint64, exptime int64, add bool) ([]byte, bool) {
	dst, encoded, ok := appendKey(dst, "ms ", key)
	if !ok {
		return dst, false
	}
	return appendSet(dst, size, flags, exptime, add, encoded), true
}

// AppendMetaSetEncoded is AppendMetaSet with a key in base64, which memcached remembers and
// returns in the same form.
func AppendMetaSetEncoded(dst, key []byte, size int, flags uint64, exptime int64) ([]byte, bool) {
	dst, encoded, ok := appendEncodedKey(dst, "ms ", key)
	if !ok {
		return dst, false
	}
	return appendSet(dst, size, flags, exptime, false, encoded), true
}

func appendSet(dst []byte, size int, flags uint64, exptime int64, add, encoded bool) []byte {
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
	return appendEnd(dst, encoded)
}

func appendEnd(dst []byte, encoded bool) []byte {
	if encoded {
		dst = append(dst, " b"...)
	}
	return append(dst, "\r\n"...)
}

// Head is the first line of a meta answer.
type Head struct {
	// Code is one of the codes of meta answers. The value follows MetaValue; ReadValue
	// reads it.
	Code string
	// Size of the value in bytes, with MetaValue.
	Size int
	// Flags of the client, if requested.
	Flags uint64
	// TTL is the remaining time to live in seconds, if requested; -1 means forever.
	TTL int64
	// CAS is 0 unless requested.
	CAS uint64
	// Stale is an item that was invalidated. Won asks this client to renew it, and no
	// other client.
	Stale, Won bool
	// Sent is whether another client got the request before. Without a value, the item is a placeholder for what that one stores.
	Sent bool
}

// ReadHead reads the first line of the answer to one mg, ms or md. After a *ServerError
// in the answer to ms the next answer follows; after any other error its start is
// unknown.
func ReadHead(r *bufio.Reader) (Head, error) {
	line, err := readLine(r)
	if err != nil {
		return Head{}, err
	}
	head, ok := parseHead(line)
	if !ok {
		return Head{}, answerError(line)
	}
	return head, nil
}

// codes returns the code of a text without an allocation.
var codes = map[string]string{MetaHit: MetaHit, MetaValue: MetaValue, MetaMiss: MetaMiss, MetaNotFound: MetaNotFound,
	MetaNotStored: MetaNotStored, MetaExists: MetaExists}

func parseHead(line []byte) (head Head, ok bool) {
	word, rest := nextWord(line)
	if head.Code, ok = codes[string(word)]; !ok {
		return head, false
	}
	if head.Code == MetaValue {
		word, rest = nextWord(rest)
		size, ok := parseInt(word)
		if !ok || size < 0 || size > MaxValue {
			return head, false
		}
		head.Size = int(size)
	}
	for ok {
		if word, rest = nextWord(rest); len(word) == 0 {
			return head, true
		}
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
		case 'Z':
			head.Sent = true
		}
	}
	return head, false
}

func nextWord(line []byte) (word, rest []byte) {
	word, rest, _ = bytes.Cut(bytes.TrimLeft(line, " "), []byte(" "))
	return word, rest
}

func parseUint(text []byte) (uint64, bool) {
	n, err := strconv.ParseUint(string(text), 10, 64)
	return n, err == nil
}

// ReadValue appends the size bytes of a value to dst and reads the line end after it. If
// the value is truncated, the returned slice contains what was read.
func ReadValue(r *bufio.Reader, dst []byte, size int) ([]byte, error) {
	dst, err := ReadPart(r, dst, size)
	if err != nil {
		return dst, err
	}
	return dst, EndValue(r)
}

// ReadPart is ReadValue for a part of a value. Call EndValue after the last part.
func ReadPart(r *bufio.Reader, dst []byte, size int) ([]byte, error) {
	const most = 64 << 10 // allocated before the bytes arrive
	for size > 0 {
		from := len(dst)
		step := min(size, max(most, cap(dst)-from))
		dst = slices.Grow(dst, step)
		n, err := io.ReadFull(r, dst[from:from+step])
		dst = dst[:from+n]
		if err != nil {
			return dst, Unexpected(err)
		}
		size -= step
	}
	return dst, nil
}

// EndValue reads the line end after a value.
func EndValue(r *bufio.Reader) error {
	end, err := r.Peek(2)
	if err != nil {
		return Unexpected(err)
	}
	if end[0] != '\r' || end[1] != '\n' {
		return fmt.Errorf("%w: a value is longer than announced", ErrMalformed)
	}
	_, err = r.Discard(2)
	return err
}
