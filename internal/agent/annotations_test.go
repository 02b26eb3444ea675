package agent

import (
	"testing"
	"time"
)

func TestReadinessDelayEndsOnce(t *testing.T) {
	begin := time.Date(2026, 11, 21, 15, 0, 0, 0, time.UTC)
	const at1504, at1510 = "2026-11-21T15:04:00Z", "2026-11-21T16:10:00+01:00"
	type update struct {
		after   time.Duration
		text    string
		delayed bool
	}
	for name, updates := range map[string][]update{
		"until the annotation is removed":    {{0, at1504, true}, {time.Second, at1504, true}, {2 * time.Second, "", false}},
		"until its time":                     {{0, at1504, true}, {4*time.Minute - 1, at1504, true}, {4 * time.Minute, at1504, false}},
		"not after a cleared time":           {{0, at1504, true}, {time.Second, "", false}, {2 * time.Second, at1504, false}},
		"not if it appears late":             {{0, "", false}, {time.Second, at1504, false}},
		"not after the clock is set back":    {{5 * time.Minute, at1504, false}, {0, at1504, false}},
		"until an extended time":             {{0, at1504, true}, {time.Second, at1510, true}, {5 * time.Minute, at1510, true}, {10 * time.Minute, at1510, false}},
		"until a shortened time":             {{0, at1510, true}, {4 * time.Minute, at1504, false}, {4 * time.Minute, at1510, false}},
		"not for a past time":                {{5 * time.Minute, at1504, false}},
		"not for an invalid time":            {{0, "tomorrow", false}, {0, at1504, false}},
		"not after the time becomes invalid": {{0, at1504, true}, {0, "2026-11-21 15:04", false}},
		"again in the next container":        {{time.Minute, at1504, true}, {4 * time.Minute, at1504, false}},
	} {
		t.Run(name, func(t *testing.T) {
			var d readinessDelay
			for i, u := range updates {
				previous := d.until
				changed := d.update(u.text, begin.Add(u.after))
				if delayed := !d.until.IsZero(); delayed != u.delayed {
					t.Fatalf("update %d to %q after %s: delayed is %t", i, u.text, u.after, delayed)
				}
				if changed != !previous.Equal(d.until) {
					t.Errorf("update %d: from %s to %s, and reported as changed: %t", i, previous, d.until, changed)
				}
			}
		})
	}
}
