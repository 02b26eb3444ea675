package agent

import (
	"fmt"
	"testing"
	"time"
)

func TestLastStopSurvivesWriteAndRead(t *testing.T) {
	dir := t.TempDir()
	want := lastStop{At: time.Unix(1_800_000_000, 0).UTC(), Items: 5, Version: "1.6.45", Arguments: []string{"-m", "64"}, Announced: "token"}
	if err := writeLastStop(dir, want); err != nil {
		t.Fatal(err)
	}
	if got := readLastStop(dir); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
