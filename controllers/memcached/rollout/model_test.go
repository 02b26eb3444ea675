package rollout

import (
	"cmp"
	"fmt"
	"strings"
	"time"
)

// world models a Memcached and its shards as far as a rollout is concerned: the user's spec, the
// operator's writes, and the state of kubelets, agents, ReplicaSets and nodes. It does nothing
// by itself: apply writes what the controller writes for a decision, and transitions are the
// events that may follow.
type world struct {
	target  revision
	shards  []*modelShard
	paused  bool
	invalid string
	// allowItemLoss and retries identify an attempt.
	allowItemLoss    bool
	retries          int
	allowCrossSeries bool
	now              time.Duration
	minPeriod        time.Duration
	windowOpensAt    time.Duration
	hitRatioGate     *modelHitRatioGate
	restoreRunning   string
	// handsOver is whether a pod hands over its items to the second one, when that is requested or it terminates.
	handsOver bool
	// byHandover is whether updates hand over items instead of restarting memcached.
	byHandover bool
	// faults of images, arguments, sizes and nodes. One of a single shard has the key
	// "cache-1/1.6.45".
	faults map[string]string
	// preflights by revision and attempt, and the messages of those that failed.
	preflights        map[string]Progress
	preflightFailures map[string]string
	announced         modelAnnouncement
	pods              int
	// violation of the first invariant that didn't hold.
	violation string
}

// modelShard is a ReplicaSet and its pods, oldest first.
type modelShard struct {
	name     string
	template revision
	surge    bool
	update   *modelUpdate
	failed   *modelFailure
	pods     []*modelPod
	// podRejected is whether the API server rejected the second pod.
	podRejected bool
	// disrupted is whether a step of the operator made the shard unavailable.
	disrupted bool
}

type modelPod struct {
	number int
	// revision that was applied last, the one from which the pod was created, of which only the
	// memory matters since it can't change later, and the one that its container runs.
	revision, created, running revision
	// cpu of its spec, and cpuNow which is in effect.
	cpu, cpuNow           string
	state                 State
	reason                string
	terminating, draining bool
	// receives is the number of the pod whose items it is requested to receive; 0 for none.
	receives int
	// moves is whether the user wants the pod replaced on another node.
	moves     bool
	container int
	update    *modelUpdate
	// stop is the announcement on the pod, acknowledged the one that its agent read.
	stop, acknowledged modelToken
	// startReported is whether the agent reported the start of the running memcached.
	startReported bool
	// argumentsRejected is whether memcached doesn't start with the new arguments.
	argumentsRejected bool
	// items is whether the items are in memory or in the saved file.
	items, cold bool
	// crashed is whether memcached exited by itself; it restarts.
	crashed bool
}

type modelUpdate struct {
	revision  revision
	from      revision
	at        time.Duration
	method    Method
	container int
	// keepsItems is whether a pod that starts without items fails the update.
	keepsItems bool
	// moves is the number of the pod that is replaced on another node; 0 for none.
	moves int
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

type modelAnnouncement struct {
	revision revision
	shard    string
	replace  bool
}

// modelHitRatioGate is the gate and the time in which the hit ratio recovers after an update;
// negative is never.
type modelHitRatioGate struct {
	timeout, recovers time.Duration
	continues         bool
}

// newWorld returns a world whose shards serve and are up to date.
func newWorld(shards int, at revision) *world {
	w := &world{target: at, faults: map[string]string{}, preflights: map[string]Progress{}, preflightFailures: map[string]string{}}
	for i := range shards {
		s := &modelShard{name: fmt.Sprintf("cache-%d", i), template: at}
		w.createPod(s)
		p := s.pods[0]
		p.state, p.startReported, p.items = Serving, true, true
		w.shards = append(w.shards, s)
	}
	return w
}

// attempt changes whenever the user requests a retry.
func (w *world) attempt() string { return fmt.Sprint(w.retries, w.allowItemLoss) }

func (w *world) faultOf(s *modelShard, of string) string {
	return cmp.Or(w.faults[s.name+"/"+of], w.faults[of])
}

// violates records the first violation of an invariant.
func (w *world) violates(format string, args ...any) {
	if w.violation == "" {
		w.violation = fmt.Sprintf(format, args...)
	}
}

// revision is a pod configuration. Each part needs another method to change it.
type revision struct {
	image     string // recreate
	arguments string // restart
	memory    string // replace
	cpu       string // live, with a resize
	label     string // live
}

// parseRevision parses "1.6.38 -t8 128Mi cpu=2 label=x", in which all but the image is optional.
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
