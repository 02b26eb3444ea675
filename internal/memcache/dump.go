package memcache

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// DumpRequest asks for the names of all keys, as the hash table has them: the
// dump of the LRUs misses items that move from one to another. memcached takes no
// further request on the connection before the answer's end.
const DumpRequest = "lru_crawler metadump hash\r\n"

var (
	// ErrBusy is a dump that cannot begin or go on now: another one runs, or a
	// part of the hash table was locked.
	ErrBusy = errors.New("memcached is busy with another dump or crawl")
	// ErrDumpForbidden is a server that dumps no keys: it was started with -X or
	// without its LRU crawler.
	ErrDumpForbidden = errors.New("memcached does not tell its keys")
)

// Listed is what a dump tells of an item. A dump has expired items no more, but
// what it tells may have changed since.
type Listed struct {
	// Key belongs to the reader until its next call.
	Key []byte
	// Expires is a Unix time in seconds; 0 is never.
	Expires int64
	// Accessed is the Unix time in seconds of about the last access: within a
	// minute memcached does not note another one.
	Accessed int64
	// Size in bytes of key, value and memcached's own of the item; 0 is unknown.
	Size int64
}

// DumpReader reads the answer to DumpRequest, line by line.
type DumpReader struct {
	r   *bufio.Reader
	key [MaxKey]byte
	any bool
	end bool
}

// NewDumpReader reads a dump from r, whose buffer holds the longest line.
func NewDumpReader(r *bufio.Reader) *DumpReader { return &DumpReader{r: r} }

// Next returns the next item, and io.EOF after the dump's proper end. Besides those
// of all answers, errors are ErrBusy and ErrDumpForbidden.
func (d *DumpReader) Next() (Listed, error) {
	for !d.end {
		line, err := readShortLine(d.r)
		if err != nil {
			// An end without END is none.
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return Listed{}, err
		}
		if rest, ok := bytes.CutPrefix(line, []byte("key=")); ok {
			d.any = true
			return d.parse(rest)
		}
		// 1.6.45 begins with OK, others with the first key.
		if !d.any && string(line) == "OK" {
			d.any = true
			continue
		}
		if string(line) != "END" && !bytes.HasPrefix(line, []byte("NOTSTARTED")) {
			return Listed{}, dumpRefusal(string(line))
		}
		d.end = true
	}
	return Listed{}, io.EOF
}

// dumpRefusal returns the error that a line means which is no item.
func dumpRefusal(line string) error {
	switch line {
	case "ERROR locked try again later", "BUSY currently processing crawler request":
		return ErrBusy
	case "ERROR metadump not allowed":
		return fmt.Errorf("%w: it was started with -X", ErrDumpForbidden)
	case "CLIENT_ERROR lru crawler disabled":
		return fmt.Errorf("%w: its LRU crawler is disabled", ErrDumpForbidden)
	}
	return refusal(line)
}

// parse reads a line from its key's name on.
func (d *DumpReader) parse(line []byte) (Listed, error) {
	name, rest, _ := bytes.Cut(line, []byte(" "))
	n, ok := unescape(d.key[:], name)
	if !ok || n == 0 {
		return Listed{}, fmt.Errorf("%w: key=%.80q", ErrMalformed, line)
	}
	listed := Listed{Key: d.key[:n]}
	for len(rest) > 0 {
		var field []byte
		field, rest, _ = bytes.Cut(rest, []byte(" "))
		name, value, _ := bytes.Cut(field, []byte("="))
		var into *int64
		switch string(name) {
		case "exp":
			into = &listed.Expires
		case "la":
			into = &listed.Accessed
		case "size":
			into = &listed.Size
		default:
			continue
		}
		number, ok := parseInt(value)
		if !ok || number < -1 {
			return Listed{}, fmt.Errorf("%w: key=%.80q", ErrMalformed, line)
		}
		*into = max(number, 0) // exp=-1 is never
	}
	return listed, nil
}

// unescape undoes the URL encoding of a key into dst, and returns its length.
func unescape(dst, name []byte) (n int, ok bool) {
	for i := 0; i < len(name); i++ {
		if n == len(dst) {
			return 0, false
		}
		c := name[i]
		if c == '%' {
			if len(name) < i+3 {
				return 0, false
			}
			high, low := unhex(name[i+1]), unhex(name[i+2])
			if high < 0 || low < 0 {
				return 0, false
			}
			c = byte(high<<4 | low)
			i += 2
		}
		dst[n] = c
		n++
	}
	return n, true
}

func unhex(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c && c <= 'f':
		return int(c-'a') + 10
	case 'A' <= c && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

// readShortLine returns the next line without its end, which is LF or CRLF. The line
// is in the reader's buffer, until it is read from again; one that is longer than
// the buffer is ErrTooLong.
func readShortLine(r *bufio.Reader) ([]byte, error) {
	line, err := r.ReadSlice('\n')
	switch {
	case err == nil:
		line = line[:len(line)-1]
		if n := len(line); n > 0 && line[n-1] == '\r' {
			line = line[:n-1]
		}
		return line, nil
	case errors.Is(err, bufio.ErrBufferFull):
		return nil, fmt.Errorf("a line: %w", ErrTooLong)
	case errors.Is(err, io.EOF) && len(line) > 0:
		return nil, io.ErrUnexpectedEOF
	}
	return nil, err
}

// parseInt reads a decimal number of at most 64 bits.
func parseInt(text []byte) (int64, bool) {
	// Up to 18 digits cannot overflow, and make no string.
	digits := text
	negative := len(text) > 0 && text[0] == '-'
	if negative {
		digits = text[1:]
	}
	if len(digits) == 0 {
		return 0, false
	}
	if len(digits) > 18 {
		n, err := strconv.ParseInt(string(text), 10, 64)
		return n, err == nil
	}
	var n int64
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	if negative {
		n = -n
	}
	return n, true
}
