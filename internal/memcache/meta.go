package memcache

import (
	"bufio"
	"strings"
)

// The codes of meta answers.
const (
	MetaHit       = "HD"
	MetaValue     = "VA"
	MetaMiss      = "EN"
	MetaNotFound  = "NF"
	MetaNotStored = "NS"
	MetaExists    = "EX"
	MetaNoOp      = "MN"
)

// Meta is the answer to a meta command.
type Meta struct {
	// Code is one of the codes of meta answers.
	Code string
	// Flags are the flags that were returned, in the server's order: a letter
	// and its token, such as "f5" or "t-1".
	Flags []string
	// Value is set with MetaValue only.
	Value []byte
}

// Flag returns the token of a returned flag.
func (m Meta) Flag(letter byte) (string, bool) {
	for _, flag := range m.Flags {
		if flag[0] == letter {
			return flag[1:], true
		}
	}
	return "", false
}

// ReadMeta reads the answer to one mg, ms or mn. limit is the longest value in
// bytes that the caller takes.
func ReadMeta(r *bufio.Reader, limit int) (Meta, error) {
	line, err := readLine(r)
	if err != nil {
		return Meta{}, err
	}
	code, rest, _ := strings.Cut(line, " ")
	switch code {
	case MetaHit, MetaMiss, MetaNotFound, MetaNotStored, MetaExists, MetaNoOp:
		return Meta{Code: code, Flags: strings.Fields(rest)}, nil
	case MetaValue:
		fields := strings.Fields(rest)
		if len(fields) == 0 {
			return Meta{}, refusal(line)
		}
		size, err := parseSize(fields[0])
		if err != nil {
			return Meta{}, refusal(line)
		}
		value, err := readBlock(r, size, limit)
		if err != nil {
			return Meta{}, err
		}
		return Meta{Code: code, Flags: fields[1:], Value: value}, nil
	}
	return Meta{}, refusal(line)
}
