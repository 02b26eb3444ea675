package rollout

import (
	"cmp"
	"fmt"
	"strings"
	"time"
)

// world is a Memcached with its shards as far as a rollout is concerned: what the
// person asked for, what the operator wrote, and what kubelet, agents, ReplicaSets
// and nodes make of it. It does nothing by itself: apply does what the controller
// would do with a decision, and moves are what could happen next.
type world struct {
	target  revision
	shards  []*modelShard
	paused  bool
	invalid string
	// acceptCold and retries together are an attempt.
	acceptCold bool
	retries    int
	now        time.Duration
	minBetween time.Duration
	opensAt    time.Duration
	gate       *modelGate
	// fates are what images, arguments, sizes and nodes turn out to do. One may be
	// a shard's own: "cache-1/1.6.45".
	fates map[string]string
	// proofs by revision and attempt, and what those said that were refused.
	proofs   map[string]Progress
	refusals map[string]string
	told     modelTold
	pods     int
	// breach is the first rule that was broken.
	breach string
}

// modelShard is a ReplicaSet with its pods, the oldest first.
type modelShard struct {
	name     string
	template revision
	surge    bool
	step     *modelStep
	failed   *modelFailure
	pods     []*modelPod
	// refused: the API server took no further pod.
	refused bool
	// outByUs: it stopped serving by a step of ours.
	outByUs bool
}

type modelPod struct {
	number int
	// asked is what it was last asked to be, made what it was made of, and runs what
	// its container runs. Of made only the memory counts: nothing changes it later.
	asked, made, runs revision
	// cpu that it was given, and cpuNow which is in effect.
	cpu, cpuNow    string
	state          State
	why            string
	going, retired bool
	container      int
	step           *modelStep
	// stop is the announcement on the pod, heard what its agent read.
	stop, heard modelToken
	// tells: the agent has told of the memcached that runs now.
	tells bool
	// refuses: the agent does not take the arguments.
	refuses bool
	// items: they are in memory or in the file that the last stop left.
	items, cold bool
	// crashed: it broke by itself and comes up again.
	crashed bool
}

type modelStep struct {
	revision  revision
	from      revision
	at        time.Duration
	class     Class
	container int
}

type modelFailure struct {
	revision revision
	attempt  string
	message  string
}

type modelToken struct {
	container int
	revision  revision
}

type modelTold struct {
	revision revision
	shard    string
	replace  bool
}

// modelGate is the hit-ratio gate, and how long after a shard's change its clients
// find again what they found before; negative is never.
type modelGate struct {
	timeout, recovers time.Duration
	goesOn            bool
}

// newWorld has shards that serve and are settled.
func newWorld(shards int, at revision) *world {
	w := &world{target: at, fates: map[string]string{}, proofs: map[string]Progress{}, refusals: map[string]string{}}
	for i := range shards {
		s := &modelShard{name: fmt.Sprintf("cache-%d", i), template: at}
		w.makePod(s)
		p := s.pods[0]
		p.state, p.tells, p.items = Serving, true, true
		w.shards = append(w.shards, s)
	}
	return w
}

// attempt is another one whenever the person asks for another try.
func (w *world) attempt() string { return fmt.Sprint(w.retries, w.acceptCold) }

func (w *world) fate(s *modelShard, of string) string {
	return cmp.Or(w.fates[s.name+"/"+of], w.fates[of])
}

// breaks notes the first rule that was broken.
func (w *world) breaks(format string, args ...any) {
	if w.breach == "" {
		w.breach = fmt.Sprintf(format, args...)
	}
}

// revision is what a spec asks of a pod, each part in another class of change.
type revision struct {
	image     string // recreate
	arguments string // restart
	memory    string // replace
	cpu       string // live, with a resize
	label     string // live
}

// parseRevision reads "1.6.38 -t8 128Mi cpu=2 label=x", of which all but the image
// may be left out.
func parseRevision(text string) (r revision) {
	for i, word := range strings.Fields(text) {
		switch {
		case i == 0:
			r.image = word
		case strings.HasPrefix(word, "-"):
			r.arguments = word
		case strings.HasPrefix(word, "cpu="):
			r.cpu = word
		case strings.HasPrefix(word, "label="):
			r.label = word
		default:
			r.memory = word
		}
	}
	return r
}

func (r revision) String() string {
	return strings.Join(strings.Fields(strings.Join([]string{r.image, r.arguments, r.memory, r.cpu, r.label}, " ")), " ")
}

func (r revision) series() string { return r.image[:strings.LastIndex(r.image, ".")] }
