package memcache

import (
	"bufio"
	"errors"
	"strings"
	"testing"
)

// A value that is followed by something else is of a stream that is out of step.
func TestAValueEndsWithBothItsBytes(t *testing.T) {
	for text, want := range map[string]error{"\r\n": nil, "\rx": ErrMalformed, "x\n": ErrMalformed, "\n\r": ErrMalformed} {
		if err := EndValue(bufio.NewReader(strings.NewReader(text))); !errors.Is(err, want) {
			t.Errorf("EndValue of %q: %v, want %v", text, err, want)
		}
		if _, err := readBlock(bufio.NewReader(strings.NewReader("hi"+text)), 2, 2); !errors.Is(err, want) {
			t.Errorf("readBlock before %q: %v, want %v", text, err, want)
		}
	}
}
