package protocol

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

// knownError reports whether err is documented.
func knownError(err error) bool {
	for _, known := range []error{ErrTooLong, ErrMalformed, io.EOF, io.ErrUnexpectedEOF} {
		if errors.Is(err, known) {
			return true
		}
	}
	return IsAnswer(err)
}

// fuzzAnswers seeds with all recorded answers and checks that errors are documented.
func fuzzAnswers(f *testing.F, read func(*testing.T, *bufio.Reader) error) {
	for _, answer := range answers(f) {
		f.Add(answer)
	}
	f.Fuzz(func(t *testing.T, answer []byte) {
		if err := read(t, reader(answer)); err != nil && !knownError(err) {
			t.Errorf("unexpected error: %v", err)
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

// Stats that were read and written again are the same.
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
