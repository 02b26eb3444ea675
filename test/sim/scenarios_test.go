package sim

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/memcached-operator/memcached-operator/internal/exhaustive"
	"github.com/memcached-operator/memcached-operator/internal/simtest"
)

func TestScenariosConverge(t *testing.T) {
	for name, s := range scenarios {
		t.Run(name, func(t *testing.T) {
			w := s.play(newWorld(1, faults{}), nil)
			if w.broken != "" {
				t.Fatalf("%s\n%s", w.broken, w.tail(80))
			}
			if filled := strings.Contains(w.End(), "cache: bootstrap Complete"); filled != s.filled {
				t.Errorf("its bootstrap is complete: %t\n%s", filled, w.End())
			}
			if s.settles && !(strings.Contains(w.End(), "Degraded=False") && strings.Contains(w.End(), "Progressing=False UpToDate")) {
				t.Errorf("it isn't up to date or requires manual intervention:\n%s\n%s", w.End(), w.tail(60))
			}
			if s.degraded != "" && !strings.Contains(w.End(), "Degraded=True "+s.degraded) {
				t.Errorf("it isn't Degraded by %s:\n%s", s.degraded, w.End())
			}
			if w.gaps > 0 {
				t.Error("a pod has other resources than the spec")
			}
			if starts := w.Starts(); s.keeps && strings.Contains(starts, " 0 items") {
				t.Errorf("a shard is empty:\n%s", starts)
			}
			if silent := w.writes == 0; silent != s.silent {
				t.Errorf("the operator wrote %d times", w.writes)
			}
			if want := simtest.VersionIn(w.defaultImage); s.settles && want != newest && !s.silent && !strings.Contains(w.End(), "cache-1: ready true, current true, version "+want) {
				t.Errorf("the shards do not follow the operator's default version %s:\n%s", want, w.End())
			}
		})
	}
}

// TestScenariosConvergeWhicheverWriteFails has some writes of each scenario fail, one at a time: the operator is killed after
// it, it is rejected, or its answer is lost. The scenario must end as without: in the same state, and with no start of a
// container or of memcached more.
func TestScenariosConvergeWhicheverWriteFails(t *testing.T) {
	every := exhaustive.OneIn(11)
	for name, s := range scenarios {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			calm := s.play(newWorld(1, faults{}), nil)
			want := calm.End() + "\n" + calm.Starts()
			for at := 1 + len(name)%every; at <= calm.writes; at += every { // not the same writes in all scenarios
				for fault, put := range map[string]func(*World){
					"the operator is killed after it": func(w *World) { w.killAt = at },
					"it is rejected":                  func(w *World) { w.rejectAt = at },
					"its answer is lost":              func(w *World) { w.loseAt = at },
				} {
					w := s.play(newWorld(1, faults{}), put)
					story := fmt.Sprintf("write %d of %d: %s", at, calm.writes, fault)
					if w.broken != "" {
						t.Fatalf("%s: %s\n%s", story, w.broken, w.tail(80))
					}
					if diff := cmp.Diff(want, w.End()+"\n"+w.Starts()); diff != "" {
						t.Fatalf("%s: it ends otherwise (-want +got):\n%s\n%s", story, diff, w.tail(60))
					}
				}
			}
		})
	}
}

// requestsFail, and no pod or node: losing a shard during its change stops the update, by design.
var requestsFail = faults{refusals: 25, answers: 25, reads: 60, agents: 12, kills: 20, stale: true}

// to has the whole spec be another one.
func to(s spec) func(*World) { return edits(func(spec) spec { return s }) }

// fresh returns the final state of a new Memcached of a spec.
func fresh(t *testing.T, s spec) string {
	t.Helper()
	w := newWorld(1, faults{})
	makes(s)(w)
	if w.Rest(); w.broken != "" {
		t.Fatalf("a new one: %s\n%s", w.broken, w.tail(60))
	}
	return w.End()
}

// TestResultDependsOnlyOnTheFinalSpec goes from one spec over another to a third, waiting for the second one or not, and with
// requests that fail on the way and an operator that is killed or none. It ends as a new Memcached of the third spec does.
func TestResultDependsOnlyOnTheFinalSpec(t *testing.T) {
	for i, c := range good {
		t.Run(fmt.Sprintf("to %v", c), func(t *testing.T) {
			t.Parallel()
			want := fresh(t, c)
			for j, b := range append(append([]spec{}, good...), bad...) {
				for seed := (i + j) % exhaustive.OneIn(3); seed < 3; seed += exhaustive.OneIn(3) {
					a := good[(i+j+seed)%len(good)]
					w := newWorld(uint64(seed), requestsFail) //nolint:gosec // small
					makes(a)(w)
					w.Rest()
					to(b)(w)
					for range seed * 60 { // undisturbed, then longer and longer not
						idle(w)
					}
					to(c)(w)
					w.Rest()
					if w.broken != "" {
						t.Fatalf("from %v over %v, seed %d: %s\n%s", a, b, seed, w.broken, w.tail(80))
					}
					if w.gaps > 0 {
						continue // what it then has is not what a new one has
					}
					if diff := cmp.Diff(want, w.End()); diff != "" {
						t.Fatalf("from %v over %v, seed %d: it ends otherwise (-new +got):\n%s\n%s", a, b, seed, diff, w.tail(60))
					}
				}
			}
		})
	}
}
