package sim

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/internal/simtest"
)

// faults says how often things go wrong: one in so many; 0 is never.
type faults struct {
	// refusals of the operator's writes, lost answers to them, and reads.
	refusals, answers, reads int
	// agents that do not answer.
	agents int
	// kills of the operator, in steps.
	kills int
	// stale: informers lag, and a process that starts may see what is older still.
	stale bool
	// misses are changes of pods' annotations that a kubelet brings with the next change only. A real one does so
	// after at most 90 seconds, too.
	misses int
	// late are watches of the ReplicaSet controller that bring no changes for some time.
	late int
	// crashes of memcached, losses of nodes and pods, in steps.
	crashes, nodes, evictions int
	// strikes are crashes, losses of pods, kills and edits right after the operator has written.
	strikes int
}

// World is a cluster with one operator.
type World struct {
	*simtest.Cluster
	seed     uint64
	began    time.Time
	operator *operator
	// defaultImage is what the operator is started with, and resizing what it knows of Kubernetes.
	defaultImage string
	resizing     resources.Resizing
	faults       faults
	// forgetful kubelets miss every other change of a pod's annotations.
	forgetful bool
	// chaos: faults happen.
	chaos bool
	// writes of the operator, all its processes together, and at which of them it is
	// killed, or the write rejected, or its answer lost.
	writes                   int
	killAt, rejectAt, loseAt int
	kills                    int
	struck                   int // at which write there last was, or could have been, a strike
	step                     int
	// drifted are the shards whose ReplicaSet the user changed.
	drifted map[string]bool
	story   []line
	watch   *watch
	// gaps are the pods that kept the resources of a spec that was reverted:
	// a known gap of the operator, see docs/maintainers/reliability.md.
	gaps int
	// marked is how many changes of ReplicaSets there were at some time.
	marked int
	// happened counts faults and what users do by the form of their line, and what the statuses report by its name.
	happened map[string]int
	// unanswered requests to agents.
	unanswered atomic.Int64
	// broken is the invariant that does not hold, empty while all do.
	broken string
}

// The versions of memcached in this world.
const oldest, middle, newest, later, missing = simtest.Oldest, simtest.Middle, simtest.Newest, simtest.Later, simtest.Missing

// firstDay is when every world in memory begins.
var firstDay = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// newWorld returns a cluster of three nodes in memory, whose operator has just started.
func newWorld(seed uint64, f faults) *World {
	w := newWorldOf(simtest.NewCluster(firstDay, seed), seed)
	w.faults = f
	return w
}

// newWorldOf starts the operator in a cluster.
func newWorldOf(cluster *simtest.Cluster, seed uint64) *World {
	w := &World{
		Cluster: cluster, seed: seed, began: cluster.Clock.Now(), happened: map[string]int{}, drifted: map[string]bool{},
		defaultImage: simtest.Image(newest), resizing: resources.ResizeAll,
	}
	w.watch = &watch{w: w, outs: map[string]simtest.By{}, ends: map[types.UID]simtest.By{}, announced: map[string]bool{}, replaced: map[string]bool{}, moved: map[moved]bool{}}
	w.Watcher, w.Misses = w.watch, func() bool { return w.forgetful || w.faulty(w.faults.misses) }
	w.Lags = w.lag
	w.start()
	return w
}

// faulty decides whether a fault happens that does once in so many times; 0 is never.
func (w *World) faulty(once int) bool {
	return w.chaos && once > 0 && w.Rand.IntN(once) == 0
}

// line of a story. Most are never read, so its words are formatted late: they don't change.
type line struct {
	step        int
	at          time.Duration
	who, format string
	words       []any
}

func (l line) String() string {
	return fmt.Sprintf("%4d %s %-9s %s", l.step, l.at.Truncate(time.Millisecond), l.who, fmt.Sprintf(l.format, l.words...))
}

// log adds a line to the story.
func (w *World) log(who, format string, words ...any) {
	if who == "fault" || who == "user" {
		w.happened[format]++
	}
	w.story = append(w.story, line{w.step, w.Clock.Now().Sub(w.began), who, format, words})
}

// breaks records a violated invariant.
func (w *World) breaks(format string, words ...any) {
	if w.broken == "" {
		w.broken = fmt.Sprintf(format, words...)
		w.log("BROKEN", "%s", w.broken)
	}
}

// tail returns the last lines of what happened.
func (w *World) tail(lines int) string {
	var text strings.Builder
	for _, l := range w.story[max(0, len(w.story)-lines):] {
		fmt.Fprintln(&text, l)
	}
	return text.String()
}

// Step has one thing happen, which may be an act of the user.
func (w *World) Step(act func(*World)) {
	w.step++
	w.chaos = true
	if w.writes != w.struck {
		if w.struck = w.writes; w.faulty(w.faults.strikes) {
			w.strike(act)
			w.watchWorld()
			return
		}
	}
	switch roll := w.Rand.IntN(100); {
	case roll < 34:
		if due := w.operator.queue.due(w.Clock.Now()); len(due) > 0 {
			if w.faulty(w.faults.kills) {
				w.killAt = w.writes + 1 + w.Rand.IntN(6)
			}
			w.operator.reconcile(due[w.Rand.IntN(len(due))])
			break
		}
		fallthrough
	case roll < 58:
		if w.deliver() {
			break
		}
		fallthrough
	case roll < 88:
		if w.advance() {
			break
		}
		fallthrough
	case roll < 94:
		w.pass()
	case roll < 96:
		act(w)
	default:
		w.disturb()
	}
	w.watchWorld()
}

// deliver sends some changes to one informer, and reports whether there were any.
func (w *World) deliver() bool {
	var behind []simtest.Kind
	for _, k := range simtest.Kinds {
		if w.operator.cache.behind(k) > 0 {
			behind = append(behind, k)
		}
	}
	if len(behind) == 0 {
		return false
	}
	k := behind[w.Rand.IntN(len(behind))]
	n := w.operator.cache.behind(k)
	if w.faults.stale {
		n = 1 + w.Rand.IntN(n)
	}
	w.log("watch", "%d changes of %s", n, k)
	w.operator.deliver(k, n)
	return true
}

// advance has Kubernetes do one thing, and reports whether there was any to do.
func (w *World) advance() bool {
	var could []simtest.Action
	for _, m := range w.Models() {
		could = append(could, m()...)
	}
	if len(could) == 0 {
		return false
	}
	a := could[w.Rand.IntN(len(could))]
	w.log("cluster", "%s", a.Story)
	a.Do()
	return true
}

// pass has time pass: a moment, a few seconds, or until the operator looks again.
func (w *World) pass() {
	d := time.Duration(50+w.Rand.IntN(1500)) * time.Millisecond
	switch w.Rand.IntN(6) {
	case 0:
		d = time.Duration(2+w.Rand.IntN(40)) * time.Second
	case 1:
		if at, ok := w.operator.queue.next(); ok && at.After(w.Clock.Now()) {
			d = min(at.Sub(w.Clock.Now()), time.Hour)
		}
	}
	if d > seconds {
		w.StopContainers()
	}
	w.Clock.Step(d)
}

// seconds is more than a kubelet takes to do what it does at once.
const seconds = 2 * time.Second

// disturb has one fault happen that is not of a single request.
func (w *World) disturb() {
	switch w.Rand.IntN(4) {
	case 0:
		if w.faults.kills > 0 {
			w.log("fault", "the operator restarts")
			w.start()
		}
	case 1:
		if w.faulty(w.faults.crashes) {
			w.crash()
		}
	case 2:
		if w.faulty(w.faults.evictions) {
			w.evict()
		}
	default:
		if w.faulty(w.faults.nodes) {
			w.turn(w.Nodes[w.Rand.IntN(len(w.Nodes))])
		}
	}
}

// strike has something happen that the operator does not know of when it reconciles next.
func (w *World) strike(act func(*World)) {
	switch w.Rand.IntN(8) {
	case 0, 1:
		w.crash()
	case 2:
		w.drain()
	case 3:
		w.evict()
	case 4:
		w.log("fault", "the operator restarts")
		w.start()
	case 5:
		w.crash()
		fallthrough
	default:
		act(w)
	}
}

const (
	// restWithin is how many rounds the operator may take to come to rest, and restFor how many it then has to stay there:
	// less than apiserver.RejectionRecheck and plan.ConflictRecheck, after which it repeats what was rejected.
	restWithin = 400
	restFor    = 25
)

// Rest ends all faults and continues until a steady state: nothing is left to do, and nothing was written for restFor seconds.
func (w *World) Rest() {
	if w.chaos {
		w.chaos, w.killAt = false, 0
		w.Heal()
		w.log("world", "no more faults")
	}
	quiet := 0
	for round := 0; quiet < restFor; round++ {
		if round == restWithin {
			w.breaks("after %d seconds without a fault the operator still writes", restWithin)
		}
		if w.broken != "" {
			return
		}
		before := w.writes
		busy := w.Round()
		if quiet++; busy || w.writes != before || w.clientsSwitch() {
			quiet = 0
		}
	}
	w.watchSteadyState()
}

// clientsSwitch reports whether the operator waits for a time after which clients have another list of shards.
func (w *World) clientsSwitch() bool {
	return slices.ContainsFunc(simtest.All[*v1beta1.Memcached](w.Server), func(m *v1beta1.Memcached) bool {
		s := m.Status.Scaling
		return s != nil && s.Step == v1beta1.ScalingWaiting && w.Clock.Now().Before(s.PublishTime.Add(v1beta1.Seconds(m.Spec.Scaling.SwitchSeconds, 0)))
	})
}

// Round is a second in which everybody does what there is to do. It reports whether Kubernetes did anything.
func (w *World) Round() (busy bool) {
	w.step++
	for range 3 {
		for _, k := range simtest.Kinds {
			w.operator.deliver(k, w.operator.cache.behind(k))
		}
		for _, name := range w.operator.queue.due(w.Clock.Now()) {
			w.operator.reconcile(name)
			w.watchWorld()
		}
		for _, m := range w.Models() {
			for range 20 { // what it does next may be another thing each time
				could := m()
				if len(could) == 0 {
					break
				}
				w.log("cluster", "%s", could[0].Story)
				could[0].Do()
				busy = true
				w.watchWorld()
			}
		}
		w.Clock.Step(300 * time.Millisecond)
	}
	w.Clock.Step(100 * time.Millisecond)
	for _, pod := range simtest.All[*corev1.Pod](w.Server) {
		p := w.Procs[pod.UID]
		busy = busy || pod.DeletionTimestamp != nil || p != nil && p.AwaitsStop() // it drains, or time has to pass
	}
	return busy
}
