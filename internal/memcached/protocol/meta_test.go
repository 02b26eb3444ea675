package protocol

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestRequestsEncodeKeys(t *testing.T) {
	b64 := func(key string) string { return base64.StdEncoding.EncodeToString([]byte(key)) }
	cases := map[string]struct {
		key  string
		name string // in the request; "" if none can express the key
		b64  bool
	}{
		"a word":                 {"foo", "foo", false},
		"bytes beyond ASCII":     {"schlüssel\xff", "schlüssel\xff", false},
		"a harmless control":     {"a\x01b\x7f", "a\x01b\x7f", false},
		"a space":                {"a b", b64("a b"), true},
		"a line end":             {"a\r\nflush_all", b64("a\r\nflush_all"), true},
		"a zero":                 {"\x00", b64("\x00"), true},
		"the longest":            {strings.Repeat("k", 250), strings.Repeat("k", 250), false},
		"the longest encoded":    {strings.Repeat(" ", 186), b64(strings.Repeat(" ", 186)), true},
		"one too long to encode": {strings.Repeat(" ", 187), "", false},
		"one too long":           {strings.Repeat("k", 251), "", false},
		"none":                   {"", "", false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			end := "\r\n"
			if c.b64 {
				end = " b\r\n"
			}
			for want, request := range map[string]func([]byte) ([]byte, bool){
				"mg " + c.name + " v t" + end:           func(dst []byte) ([]byte, bool) { return AppendMetaGet(dst, []byte(c.key), " v t") },
				"md " + c.name + end:                    func(dst []byte) ([]byte, bool) { return AppendDelete(dst, []byte(c.key)) },
				"md " + c.name + " I C7" + end:          func(dst []byte) ([]byte, bool) { return AppendInvalidate(dst, []byte(c.key), 7) },
				"ms " + c.name + " 3 T60 F5 ME" + end:   func(dst []byte) ([]byte, bool) { return AppendMetaSet(dst, []byte(c.key), 3, 5, 60, true) },
				"ms " + c.name + " 1073741824" + end:    func(dst []byte) ([]byte, bool) { return AppendMetaSet(dst, []byte(c.key), MaxValue, 0, 0, false) },
				"ms " + c.name + " 0 T1795274628" + end: func(dst []byte) ([]byte, bool) { return AppendMetaSet(dst, []byte(c.key), 0, 0, 1795274628, false) },
			} {
				got, ok := request([]byte("before "))
				if c.name == "" {
					want = ""
				}
				if string(got) != "before "+want || ok != (c.name != "") {
					t.Errorf("%q, %t; want %q", got, ok, want)
				}
			}
		})
	}
}

func TestSetKeepsEncodingOfKey(t *testing.T) {
	got, ok := AppendMetaSetEncoded(nil, []byte("foo"), 3, 5, 60)
	if string(got) != "ms Zm9v 3 T60 F5 b\r\n" || !ok {
		t.Errorf("%q, %t", got, ok)
	}
	for _, key := range []string{"", strings.Repeat("k", 188)} {
		if got, ok := AppendMetaSetEncoded(nil, []byte(key), 3, 0, 0); len(got) > 0 || ok {
			t.Errorf("%q: %q, %t", key, got, ok)
		}
	}
}

func TestReadHead(t *testing.T) {
	cases := map[string]struct {
		answer string
		want   Head
		err    error
	}{
		"a value":                             {"VA 2 f5 t98 c7\r\n", Head{Code: MetaValue, Size: 2, Flags: 5, TTL: 98, CAS: 7}, nil},
		"a value that never expires":          {"VA 0 f0 t-1\r\n", Head{Code: MetaValue, TTL: -1}, nil},
		"the largest flags and CAS":           {"HD f18446744073709551615 c18446744073709551615\r\n", Head{Code: MetaHit, Flags: 1<<64 - 1, CAS: 1<<64 - 1}, nil},
		"stale, and to be renewed":            {"VA 2 f0 t49 c4 X W\r\n", Head{Code: MetaValue, Size: 2, TTL: 49, CAS: 4, Stale: true, Won: true}, nil},
		"stale, and renewed by another":       {"VA 2 Z X\r\n", Head{Code: MetaValue, Size: 2, Stale: true, Sent: true}, nil},
		"flags that were not requested":       {"HD kfoo O1 s2 h0 l5 b\r\n", Head{Code: MetaHit}, nil},
		"a miss":                              {"EN\r\n", Head{Code: MetaMiss}, nil},
		"not stored":                          {"NS\r\n", Head{Code: MetaNotStored}, nil},
		"not found":                           {"NF\r\n", Head{Code: MetaNotFound}, nil},
		"exists":                              {"EX\r\n", Head{Code: MetaExists}, nil},
		"a value without a size":              {"VA\r\n", Head{}, ErrMalformed},
		"a negative size":                     {"VA -1\r\n", Head{}, ErrMalformed},
		"a size larger than memcached allows": {"VA 1073741825\r\n", Head{}, ErrMalformed},
		"flags that are not a number":         {"VA 1 fx\r\n", Head{}, ErrMalformed},
		"negative flags":                      {"VA 1 f-1\r\n", Head{}, ErrMalformed},
		"flags beyond 64 bits":                {"VA 1 f18446744073709551616\r\n", Head{}, ErrMalformed},
		"a code that is longer":               {"VALUE a 0 1\r\n", Head{}, ErrMalformed},
		"an empty line":                       {"\r\n", Head{}, ErrMalformed},
		"a server error":                      {"SERVER_ERROR out of memory storing object\r\n", Head{}, &ServerError{Message: "out of memory storing object"}},
		"an authentication error":             {"CLIENT_ERROR unauthenticated\r\n", Head{}, &ClientError{Message: "unauthenticated"}},
		"a line without an end":               {"HD f5", Head{}, io.ErrUnexpectedEOF},
		"no line":                             {"", Head{}, io.EOF},
		"a line longer than the buffer":       {"HD " + strings.Repeat("x", 5000) + "\r\n", Head{}, ErrTooLong},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := ReadHead(bufio.NewReader(strings.NewReader(c.answer)))
			if c.err != nil {
				if !sameError(err, c.err) {
					t.Errorf("error %v, want %v", err, c.err)
				}
				return
			}
			if err != nil || got != c.want {
				t.Errorf("%+v, %v; want %+v", got, err, c.want)
			}
		})
	}
}

func TestReadValue(t *testing.T) {
	large := strings.Repeat("x", 3<<20+5)
	cases := map[string]struct {
		text string
		size int
		err  error
	}{
		"empty":                 {"\r\nrest", 0, nil},
		"short":                 {"hi\r\nrest", 2, nil},
		"large":                 {large + "\r\nrest", len(large), nil},
		"longer than announced": {"hi!\r\nrest", 2, ErrMalformed},
		"truncated":             {"h", 2, io.ErrUnexpectedEOF},
		"nothing":               {"", 2, io.ErrUnexpectedEOF},
		"truncated line end":    {"hi\r", 2, io.ErrUnexpectedEOF},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := bufio.NewReader(strings.NewReader(c.text))
			got, err := ReadValue(r, []byte("before"), c.size)
			if c.err != nil {
				if !errors.Is(err, c.err) || !bytes.HasPrefix(got, []byte("before")) {
					t.Errorf("%.20q, %v; want %v", got, err, c.err)
				}
				return
			}
			rest, _ := io.ReadAll(r)
			if err != nil || string(got) != "before"+c.text[:c.size] || string(rest) != "rest" {
				t.Errorf("%d bytes, %v, and %.20q after it", len(got), err, rest)
			}
		})
	}
}

// A gigabyte that is announced but never sent must cost almost nothing.
func TestValueAllocatesMemoryAsItArrives(t *testing.T) {
	got, err := ReadValue(bufio.NewReader(strings.NewReader("hi")), nil, MaxValue)
	if !errors.Is(err, io.ErrUnexpectedEOF) || cap(got) > 2<<20 {
		t.Errorf("%d bytes of memory, %v", cap(got), err)
	}
}

func TestAnswersNeedNoAllocationPerItem(t *testing.T) {
	text := strings.Repeat("VA 2 f5 t98\r\nhi\r\nHD\r\nEN\r\n", 1000)
	r := bufio.NewReader(nil)
	key := []byte("some key")
	request := make([]byte, 0, 1000)
	value := make([]byte, 0, 10)
	allocations := testing.AllocsPerRun(10, func() {
		r.Reset(strings.NewReader(text))
		for {
			head, err := ReadHead(r)
			if err != nil {
				return
			}
			if head.Code == MetaValue {
				value, _ = ReadValue(r, value[:0], head.Size)
			}
			request, _ = AppendMetaGet(request[:0], key, " v f t u")
			request, _ = AppendMetaSet(request[:0], key, 2, head.Flags, head.TTL, true)
		}
	})
	if allocations > 10 {
		t.Errorf("%.0f allocations for 3000 answers", allocations)
	}
}

// The words of the line, split by another function, agree with the head.
func FuzzHead(f *testing.F) {
	fuzzAnswers(f, func(t *testing.T, r *bufio.Reader) error {
		text, _ := io.ReadAll(r)
		r = bufio.NewReader(bytes.NewReader(text))
		head, err := ReadHead(r)
		if err != nil {
			return err
		}
		line, _, _ := strings.Cut(string(text), "\n")
		words := strings.Split(strings.TrimSuffix(line, "\r"), " ")
		words = slices.DeleteFunc(words, func(word string) bool { return word == "" })
		if words[0] != head.Code || head.Size < 0 || head.Size > MaxValue {
			t.Fatalf("%+v of %q", head, line)
		}
		want := Head{Code: head.Code}
		words = words[1:]
		if head.Code == MetaValue {
			if want.Size, err = strconv.Atoi(words[0]); err != nil {
				t.Errorf("%+v of %q, but %v", head, line, err)
			}
			words = words[1:]
		}
		for _, word := range words {
			switch word[0] {
			case 'f':
				want.Flags, err = strconv.ParseUint(word[1:], 10, 64)
			case 't':
				want.TTL, err = strconv.ParseInt(word[1:], 10, 64)
			case 'c':
				want.CAS, err = strconv.ParseUint(word[1:], 10, 64)
			case 'X':
				want.Stale = true
			case 'W':
				want.Won = true
			case 'Z':
				want.Sent = true
			}
			if err != nil {
				t.Errorf("%+v of %q, but %v", head, line, err)
			}
		}
		if head != want {
			t.Errorf("%+v of %q, want %+v", head, line, want)
		}
		if head.Code != MetaValue {
			return nil
		}
		value, err := ReadValue(r, nil, head.Size)
		if err == nil && len(value) != head.Size {
			t.Errorf("a value of %d bytes, want %d", len(value), head.Size)
		}
		return err
	})
}

// A different line end means that the stream is out of step.
func TestEndValueNeedsCRLF(t *testing.T) {
	for text, want := range map[string]error{"\r\n": nil, "\rx": ErrMalformed, "x\n": ErrMalformed, "\n\r": ErrMalformed} {
		if err := EndValue(bufio.NewReader(strings.NewReader(text))); !errors.Is(err, want) {
			t.Errorf("EndValue of %q: %v, want %v", text, err, want)
		}
	}
}
