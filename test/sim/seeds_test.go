package sim

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var (
	oneSeed = flag.Uint64("seed", 0, "the one seed to run, with its whole story")
	seeds   = flag.Uint64("seeds", 30, "how many seeds to run")
	from    = flag.Uint64("from", 0, "the first of them, by default 1,000 times the number of commits, so that each commit tries others")
	steps   = flag.Int("steps", 500, "steps of each")
	during  = flag.Duration("for", 0, "go on with further seeds for so long")
	stories = flag.Int("story", 60, "how many lines to print of a seed that fails")
	first   = flag.Bool("first", false, "end with the first seed that fails")
)

// everything goes wrong now and then.
var everything = faults{refusals: 25, answers: 25, reads: 60, agents: 12, misses: 5, late: 2, kills: 20, stale: true, crashes: 2, nodes: 2, evictions: 2, strikes: 4}

// covering is how many of the first seeds are enough for everything in mustHappen.
const covering = 130

// mustHappen are the faults, what users do, and what the operator does about it.
var mustHappen = []string{
	"rejects %s %s %s: %v", "the answer is lost", "a read of %s %s times out", "an agent does not answer",
	"the operator is killed", "the operator restarts", "memcached in pod %s crashes", "%s does not answer", "%s is back", "the kubelet misses a change of pod %s", "the kubelet evicts pod %s",
	"the ReplicaSet controller sees no changes of %s for %s",

	"creates %s: %s", "has %s: %s", "is rejected: %v", "deletes %s", "deletes pod %s", "retries %s",
	"changes %s %s", "deletes %s %s", "deletes %s %s and keeps its objects", "creates a foreign %s %s",

	"update by Live", "update by Restart", "update by Recreate", "update by Replace", "rollback",
	"blocked by Paused", "blocked by ShardInTransition", "blocked by ShardUnavailable",
	"blocked by ImageNotVerified", "blocked by EmptyStartNotAnnounced", "blocked by UpdateFailed",
	"scaling Preparing", "scaling Copying", "scaling Publishing", "scaling Waiting", "scaling Closing", "scaling Finishing", "blocked by Scaling",
	"purge Pending", "purge Failed",
	"Progressing=UpToDate", "Progressing=ScalingIn", "Progressing=Retrying",
	"Degraded=NameConflict", "Degraded=NodeLost", "Degraded=ImageCannotBePulled", "Degraded=VersionUnsupported",
}

// TestMain collects garbage less often: a world is small, and makes much of it.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}

// live runs a world with a random user and all faults, until everything converges or an invariant is violated.
func live(seed uint64) *World {
	w := newWorld(seed, everything)
	p := newRandomUser(w)
	s := spec{"size": int64(2 + w.Rand.IntN(2))}
	if seed%16 == 1 { // no node can pull the image of a new Memcached
		s["version"] = missing
	}
	maps.Copy(s, p.always)
	w.Unproven = seed%8 == 4
	w.Make("cache", s)
	for range *steps {
		if w.Step(p.act); w.broken != "" {
			return w
		}
	}
	w.Rest()
	return w
}

func TestInvariantsHoldForRandomSeeds(t *testing.T) {
	if *oneSeed != 0 {
		w := live(*oneSeed)
		fmt.Println(w.tail(len(w.story)))
		if w.broken != "" {
			t.Fatal(w.broken)
		}
		return
	}
	if *from == 0 {
		commits, err := exec.Command("git", "rev-list", "--count", "HEAD").Output()
		if err != nil {
			t.Fatalf("counting the commits (or name the first seed with -from): %v", err)
		}
		n, err := strconv.ParseUint(strings.TrimSpace(string(commits)), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		*from = 1000 * n
	}
	t.Logf("the same seeds again: go -C test test ./sim -run TestInvariantsHold -from %d -seeds %d", *from, *seeds)
	run(t, *from, *seeds, *during)
}

// TestFirstSeedsDoEverything requires that what may happen does, which is no matter of chance in the same seeds.
func TestFirstSeedsDoEverything(t *testing.T) {
	happened := run(t, 1, covering, 0)
	for _, what := range mustHappen {
		if happened[what] == 0 {
			t.Errorf("%d seeds, and this never happened: %s", covering, what)
		}
	}
}

// run runs so many seeds, and others for so long, and counts what happened in them.
func run(t *testing.T, from, seeds uint64, during time.Duration) map[string]int {
	t.Helper()
	var (
		next, done, failed atomic.Uint64
		wait               sync.WaitGroup
		began              = time.Now()
		lock               sync.Mutex
		happened           = map[string]int{}
		progress           = time.NewTicker(time.Minute)
	)
	defer progress.Stop()
	goesOn := func(n uint64) bool {
		return !(*first && failed.Load() > 0) && (n < seeds || during > 0 && time.Since(began) < during) //nolint:forbidigo // how long it may take is an argument
	}
	for range runtime.GOMAXPROCS(0) {
		wait.Go(func() {
			for n := next.Add(1) - 1; goesOn(n); n = next.Add(1) - 1 {
				seed := from + n
				w := live(seed)
				done.Add(1)
				lock.Lock()
				for what, times := range w.happened {
					happened[what] += times
				}
				happened["an agent does not answer"] += int(w.unanswered.Load())
				lock.Unlock()
				if w.broken != "" {
					failed.Add(1)
					t.Fail()
					fmt.Printf("seed %d, step %d: %s\n%s\nthe whole story: go -C test test ./sim -run TestInvariantsHold -seed %d\n\n", seed, w.step, w.broken, w.tail(*stories), seed)
				}
				select {
				case <-progress.C:
					fmt.Printf("%s: %d seeds, %d failed\n", time.Since(began).Round(time.Second), done.Load(), failed.Load())
				default:
				}
			}
		})
	}
	wait.Wait()
	t.Logf("%d seeds of %d steps in %s, %d failed", done.Load(), *steps, time.Since(began).Round(time.Second), failed.Load())
	return happened
}

func TestSeedIsReproducible(t *testing.T) {
	for seed := range uint64(2) { // each of them is thousands of decisions
		a, b := live(1000+seed), live(1000+seed)
		if diff := cmp.Diff(a.tail(len(a.story)), b.tail(len(b.story))); diff != "" {
			t.Errorf("seed %d: the stories differ:\n%s", 1000+seed, diff)
		}
	}
}
