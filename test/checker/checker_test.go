package checker

import (
	"bufio"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
	"github.com/memcached-operator/memcached-operator/test/internal/checker"
	"github.com/memcached-operator/memcached-operator/test/internal/pods"
)

// copier is a simple copy of all items, with optional mistakes.
type copier struct {
	noFlags, noTTL, noMarks, noPlaceholders bool
	// omit skips one item in so many.
	omit int
}

// run copies the items of one memcached to another. Both must be idle for a right copy.
func (o copier) run(t *testing.T, from, to string) {
	t.Helper()
	var gets, sets []byte
	var keys []string
	var expires []int64 // in Unix time, which stays right however long the copy takes
	pods.Must(t, protocol.At(from).Dump(t.Context(), pods.Patience, func(item protocol.Listed) error {
		keys, expires = append(keys, string(item.Key)), append(expires, item.Expires)
		gets, _ = protocol.AppendMetaGet(gets, item.Key, " v f")
		return nil
	}))
	answers := bufio.NewReader(strings.NewReader(pods.Talk(t, from, string(gets))))
	copied := 0
	for i, key := range keys {
		head, err := protocol.ReadHead(answers)
		pods.Must(t, err)
		if head.Code == protocol.MetaMiss {
			continue
		}
		value, err := protocol.ReadValue(answers, nil, head.Size)
		pods.Must(t, err)
		isPlaceholder := head.Sent && head.Size == 0
		if head.Stale && !o.noMarks || isPlaceholder && !o.noPlaceholders || o.omit > 0 && i%o.omit == 0 {
			continue
		}
		if o.noFlags {
			head.Flags = 0
		}
		if o.noTTL {
			expires[i] = 0
		}
		sets, _ = protocol.AppendMetaSet(sets, []byte(key), len(value), head.Flags, expires[i], false)
		sets = append(append(sets, value...), "\r\n"...)
		copied++
	}
	if answer := pods.Talk(t, to, string(sets)); strings.Count(answer, "HD\r\n") != copied {
		t.Fatalf("memcached did not store all of %d items: %.300q", copied, answer)
	}
}

// The checker that the tests of the handover use finds each mistake that a copy can have, and none in a right one.
func TestCheckerFindsMistakesOfACopy(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		copier
		// early copies once before the last writes, and not after them.
		early bool
		finds []checker.Kind
		// may are findings that occur too.
		may   []checker.Kind
		loses bool
	}{
		"right copy":                    {},
		"copy before the last writes":   {early: true, finds: []checker.Kind{checker.Back, checker.Stale}, may: []checker.Kind{checker.Wrong, checker.Expiry}, loses: true},
		"without flags":                 {copier: copier{noFlags: true}, finds: []checker.Kind{checker.Wrong}},
		"without times to live":         {copier: copier{noTTL: true}, finds: []checker.Kind{checker.Expiry}},
		"with invalidated items":        {copier: copier{noMarks: true}, finds: []checker.Kind{checker.Stale}},
		"with placeholders of a reader": {copier: copier{noPlaceholders: true}, finds: []checker.Kind{checker.Stale}},
		"without some items":            {copier: copier{omit: 10}, loses: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for i, version := range pods.Tested {
				args := []string{"-m", "128", "-I", "8m"}
				source, target := pods.StartCache(t, version, args...), pods.StartCache(t, pods.Versions[(i+1)%len(pods.Versions)], args...)
				var current atomic.Pointer[string]
				current.Store(new(source.Address()))
				check := checker.Start(checker.Options{
					Seed: uint64(i), Workers: 4, Keys: 100, Pause: 200 * time.Microsecond, LargeBytes: 3 << 20,
				}, func() string { return *current.Load() })
				awaitOperations(t, check, 500, 500, 100)
				if c.early {
					check.Between(func() { c.run(t, source.Address(), target.Address()) })
					awaitMore(t, check)
				}
				check.Between(func() {
					if !c.early {
						c.run(t, source.Address(), target.Address())
					}
					source.Kill()
					current.Store(new(target.Address()))
				})
				awaitMore(t, check)
				// Both servers number their changes from 1.
				wantFindings(t, check.Stop(), c.finds, append(c.may, checker.Token), c.loses)
			}
		})
	}
}

func wantFindings(t *testing.T, r checker.Report, finds, may []checker.Kind, loses bool) {
	t.Helper()
	var found []checker.Kind
	for _, f := range r.Findings {
		if !slices.Contains(may, f.Kind) {
			found = append(found, f.Kind)
		}
	}
	slices.Sort(found)
	if found = slices.Compact(found); !slices.Equal(found, finds) || loses != (r.Lost > 0) || r.Err != nil {
		t.Errorf("found %v, want %v, want lost items: %t; %.3000s", found, finds, loses, r)
	}
}

// awaitOperations waits until the checker has seen enough of a server. Processors differ in how long that takes.
func awaitOperations(t *testing.T, check *checker.Checker, reads, writes, deletes int) {
	t.Helper()
	var r checker.Report
	if !pods.Eventually(func() bool {
		r = check.SoFar()
		return r.Reads >= reads && r.Writes >= writes && r.Deletes >= deletes
	}) {
		t.Fatalf("too few operations: %.200s", r)
	}
}

// awaitMore waits until the checker has used most of its keys again.
func awaitMore(t *testing.T, check *checker.Checker) {
	t.Helper()
	seen := check.SoFar()
	awaitOperations(t, check, seen.Reads+500, seen.Writes+300, seen.Deletes+50)
}

// A flush_all deletes items that were not used for a second, and the checker expects that.
func TestCheckerKnowsFlushAll(t *testing.T) {
	pods.WithEach(t, pods.Tested, func(t *testing.T, version string) {
		cache := pods.StartCache(t, version, "-m", "64")
		check := checker.Start(checker.Options{Workers: 4, Keys: 500, Pause: time.Millisecond}, cache.Address)
		awaitOperations(t, check, 500, 500, 100)
		if err := check.FlushAll(4 * time.Second); err != nil {
			t.Error(err)
		}
		awaitMore(t, check)
		wantFindings(t, check.Stop(), nil, nil, false)
	})
}
