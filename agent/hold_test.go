package main

import (
	"testing"
	"time"
)

func TestAHoldEndsOnceAndDoesNotComeBack(t *testing.T) {
	begin := time.Date(2026, 11, 21, 15, 0, 0, 0, time.UTC)
	const at1504, at1510 = "2026-11-21T15:04:00Z", "2026-11-21T16:10:00+01:00"
	type look struct {
		after time.Duration
		text  string
		held  bool
	}
	for name, looks := range map[string][]look{
		"until it is taken away":                {{0, at1504, true}, {time.Second, at1504, true}, {2 * time.Second, "", false}},
		"until its time":                        {{0, at1504, true}, {4*time.Minute - 1, at1504, true}, {4 * time.Minute, at1504, false}},
		"not once it was over":                  {{0, at1504, true}, {time.Second, "", false}, {2 * time.Second, at1504, false}},
		"not when it was not there at first":    {{0, "", false}, {time.Second, at1504, false}},
		"not longer for a clock that is set":    {{5 * time.Minute, at1504, false}, {0, at1504, false}},
		"until a later time that is given":      {{0, at1504, true}, {time.Second, at1510, true}, {5 * time.Minute, at1510, true}, {10 * time.Minute, at1510, false}},
		"not longer than an earlier one":        {{0, at1510, true}, {4 * time.Minute, at1504, false}, {4 * time.Minute, at1510, false}},
		"not for a time that is past":           {{5 * time.Minute, at1504, false}},
		"not for what is no time":               {{0, "tomorrow", false}, {0, at1504, false}},
		"not for what becomes no time":          {{0, at1504, true}, {0, "2026-11-21 15:04", false}},
		"again in another container, till then": {{time.Minute, at1504, true}, {4 * time.Minute, at1504, false}},
	} {
		t.Run(name, func(t *testing.T) {
			var h hold
			for i, l := range looks {
				was := h.until
				changed := h.look(l.text, begin.Add(l.after))
				if held := !h.until.IsZero(); held != l.held {
					t.Fatalf("look %d at %q after %s: held is %t", i, l.text, l.after, held)
				}
				if changed != !was.Equal(h.until) {
					t.Errorf("look %d: from %s to %s, and told as changed: %t", i, was, h.until, changed)
				}
			}
		})
	}
}
