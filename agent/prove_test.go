package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// That and how memcached is proven is asked of real ones, in test/process.
func TestFlagsOfAProofThatCannotBe(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(log, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, args := range map[string][]string{
		"an unknown flag":         {"-nonsense"},
		"arguments without quote": {"-termination-log", log, "-arguments", `["-m",`, `"64"]`},
		"a word beside them":      {"-termination-log", log, "memcached"},
	} {
		err := command(append([]string{"prove"}, args...), io.Discard)
		if err == nil || exitStatus(err) != 2 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAProofThatNeverEnds(t *testing.T) {
	never := make(chan bool)
	_, err := within(time.Millisecond, func() (bool, error) { return <-never, nil })
	if err == nil || !strings.Contains(err.Error(), "neither answers nor ends: waited for 1ms") {
		t.Errorf("error %v", err)
	}
	failed := errors.New("failed")
	if value, err := within(time.Minute, func() (int, error) { return 7, failed }); value != 7 || !errors.Is(err, failed) {
		t.Errorf("%d, %v", value, err)
	}
}
