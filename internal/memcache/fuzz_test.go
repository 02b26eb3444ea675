package memcache

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"testing"
)

const fuzzLimit = 4 << 10

// knownError reports whether err is one that callers are told of.
func knownError(err error) bool {
	for _, known := range []error{ErrTooLong, ErrMalformed, ErrNotStored, ErrExists, ErrNotFound, io.EOF, io.ErrUnexpectedEOF} {
		if errors.Is(err, known) {
			return true
		}
	}
	return IsAnswer(err)
}

// fuzzAnswers seeds with every recorded answer and checks that errors are known ones.
func fuzzAnswers(f *testing.F, read func(*testing.T, *bufio.Reader) error) {
	for _, answer := range answers(f) {
		f.Add(answer)
	}
	f.Fuzz(func(t *testing.T, answer []byte) {
		if err := read(t, reader(answer)); err != nil && !knownError(err) {
			t.Errorf("an unknown kind of error: %v", err)
		}
	})
}

func FuzzVersion(f *testing.F) {
	fuzzAnswers(f, func(t *testing.T, r *bufio.Reader) error {
		version, err := ReadVersion(r)
		if len(version) > MaxLine {
			t.Errorf("a version of %d bytes", len(version))
		}
		return err
	})
}

// Stats that were read, written and read again are the same, and so are what is parsed of them.
func FuzzStats(f *testing.F) {
	fuzzAnswers(f, func(t *testing.T, r *bufio.Reader) error {
		stats, err := ReadStats(r)
		if err != nil {
			return err
		}
		ParseGeneral(stats)
		var text bytes.Buffer
		for _, name := range slices.Sorted(maps.Keys(stats)) {
			fmt.Fprintf(&text, "STAT %s %s\r\n", name, stats[name])
		}
		text.WriteString("END\r\n")
		again, err := ReadStats(bufio.NewReader(&text))
		if err != nil || !maps.Equal(stats, again) {
			t.Errorf("%v read again is %v, %v", stats, again, err)
		}
		_, err = ParseSettings(stats)
		return err
	})
}

func FuzzItem(f *testing.F) {
	fuzzAnswers(f, func(t *testing.T, r *bufio.Reader) error {
		item, err := ReadItem(r, fuzzLimit)
		if err != nil || item == nil {
			return err
		}
		if len(item.Value) > fuzzLimit {
			t.Errorf("a value of %d bytes", len(item.Value))
		}
		text := fmt.Appendf(nil, "VALUE %s %d %d %d\r\n%s\r\nEND\r\n", item.Key, item.Flags, len(item.Value), item.CAS, item.Value)
		again, err := ReadItem(reader(text), fuzzLimit)
		if err != nil || again.Key != item.Key || again.Flags != item.Flags || again.CAS != item.CAS || !bytes.Equal(again.Value, item.Value) {
			t.Errorf("%+v read again is %+v, %v", item, again, err)
		}
		return nil
	})
}

func FuzzStored(f *testing.F) {
	fuzzAnswers(f, func(_ *testing.T, r *bufio.Reader) error { return ReadStored(r) })
}

func FuzzMeta(f *testing.F) {
	fuzzAnswers(f, func(t *testing.T, r *bufio.Reader) error {
		meta, err := ReadMeta(r, fuzzLimit)
		if err != nil {
			return err
		}
		if len(meta.Value) > fuzzLimit || meta.Value != nil && meta.Code != MetaValue {
			t.Errorf("%s with a value of %d bytes", meta.Code, len(meta.Value))
		}
		for _, flag := range meta.Flags {
			if token, ok := meta.Flag(flag[0]); !ok || len(token) > MaxLine {
				t.Errorf("flag %q is not found", flag)
			}
		}
		return nil
	})
}
