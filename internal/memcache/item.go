package memcache

import (
	"bufio"
	"fmt"
	"strconv"
	"strings"
)

// Item is one item as the classic get commands give it.
type Item struct {
	Key   string
	Flags uint32
	Value []byte
	// CAS is 0 unless it was asked for.
	CAS uint64
}

// ReadItem reads the answer to a get or gets of one key; nil is a miss. limit
// is the longest value in bytes that the caller takes.
func ReadItem(r *bufio.Reader, limit int) (*Item, error) {
	line, err := readLine(r)
	if err != nil {
		return nil, err
	}
	if line == "END" {
		return nil, nil
	}
	fields := strings.Split(line, " ")
	if fields[0] != "VALUE" || len(fields) < 4 || len(fields) > 5 {
		return nil, refusal(line)
	}
	item := &Item{Key: fields[1]}
	if err := CheckKey(item.Key); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	flags, err := strconv.ParseUint(fields[2], 10, 32)
	if err != nil {
		return nil, refusal(line)
	}
	item.Flags = uint32(flags)
	size, err := parseSize(fields[3])
	if err != nil {
		return nil, refusal(line)
	}
	if len(fields) == 5 {
		if item.CAS, err = strconv.ParseUint(fields[4], 10, 64); err != nil {
			return nil, refusal(line)
		}
	}
	if item.Value, err = readBlock(r, size, limit); err != nil {
		return nil, err
	}
	end, err := readLine(r)
	if err != nil {
		return nil, err
	}
	if end != "END" {
		return nil, refusal(end)
	}
	return item, nil
}

// ReadStored reads the answer to a store.
func ReadStored(r *bufio.Reader) error {
	line, err := readLine(r)
	if err != nil {
		return err
	}
	switch line {
	case "STORED":
		return nil
	case "NOT_STORED":
		return ErrNotStored
	case "EXISTS":
		return ErrExists
	case "NOT_FOUND":
		return ErrNotFound
	}
	return refusal(line)
}

// parseSize reads the length of a value. 31 bits, so that it fits an int on
// every platform; memcached's own limit is 1 GiB.
func parseSize(text string) (int, error) {
	n, err := strconv.ParseUint(text, 10, 31)
	return int(n), err
}
