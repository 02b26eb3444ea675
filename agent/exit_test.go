package main

import (
	"errors"
	"fmt"
	"testing"
)

func TestExitStatus(t *testing.T) {
	for want, err := range map[int]error{
		1: errors.New("x"), 137: &exitError{status: 137}, 2: fmt.Errorf("x: %w", &exitError{status: 2}),
	} {
		if got := exitStatus(err); got != want {
			t.Errorf("%v: %d, want %d", err, got, want)
		}
	}
	if got := exitStatus(&exitError{}); got == 0 {
		t.Error("an error ends with status 0")
	}
}
