package sim

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
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
	// crashes of memcached, losses of nodes and pods, in steps.
	crashes, nodes, evictions int
}

// World is a cluster with one namespace and one operator.
type World struct {
	seed     uint64
	rng      *rand.Rand
	clock    *testclock.FakeClock
	began    time.Time
	server   *history
	operator *operator
	// defaultImage is what the operator is started with, and resizing what it knows of Kubernetes.
	defaultImage string
	resizing     resources.Resizing
	models       []model
	nodes        []*node
	procs        map[types.UID]*proc
	// certificate that the Secrets have.
	certificate string
	faults      faults
	// forgetful kubelets miss every other change of a pod's annotations.
	forgetful bool
	// chaos: faults happen.
	chaos bool
	// writes of the operator, all its processes together, and at which of them it is
	// killed, or the write rejected, or its answer lost.
	writes                   int
	killAt, rejectAt, loseAt int
	kills                    int
	step                     int
	made                     int
	// transfers that run, and since when.
	transfers map[types.UID]time.Time
	// pods that each ReplicaSet has created, and the phases of the restores when a shard's first one served.
	pods       map[string]int
	servedWith map[string]string
	// drifted are the shards whose ReplicaSet the user changed.
	drifted map[string]bool
	// binds puts a pod on a node where an update cannot.
	binds func(pod *corev1.Pod, node string) error
	story []string
	watch watch
	// gaps are the pods that kept the resources of a spec that was reverted:
	// a known gap of the operator, see docs/reliability.md.
	gaps int
	// marked is how many changes of ReplicaSets there were at some time.
	marked int
	// happened counts faults and what users do by the form of their line, and what the statuses
	// report by its name.
	happened map[string]int
	// unanswered requests to agents.
	unanswered atomic.Int64
	// broken is the invariant that does not hold, empty while all do.
	broken string
}

// firstDay is when every world in memory begins.
var firstDay = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// newWorld returns a cluster of three nodes in memory, whose operator has just
// started.
func newWorld(seed uint64, f faults) *World {
	w := &World{seed: seed, rng: rand.New(rand.NewPCG(seed, 0)), faults: f}
	server, look := newFakeServer(func() time.Time { return w.clock.Now() }, w.newUID)
	w.begin(firstDay, server, inMemory)
	w.server.look = look
	return w
}

// begin sets up what is around an API server.
func (w *World) begin(at time.Time, server client.Client, namespace string) {
	w.defaultImage, w.resizing = image(newest), resources.ResizeAll
	w.clock, w.began = testclock.NewFakeClock(at), at
	w.procs, w.certificate = map[types.UID]*proc{}, "0123456789abcdef"
	w.transfers, w.happened = map[types.UID]time.Time{}, map[string]int{}
	w.pods, w.servedWith = map[string]int{}, map[string]string{}
	w.watch, w.drifted = newWatch(), map[string]bool{}
	for i, disk := range []string{"ssd", "ssd", "hdd"} {
		w.nodes = append(w.nodes, &node{name: fmt.Sprintf("node%d", i+1), labels: map[string]string{"disk": disk}, memory: 4 << 30})
	}
	w.models = []model{garbageCollector, replicaSets, scheduler, kubelets, nodeLifecycle, restores, backups}
	w.server = newHistory(server, namespace)
	w.start()
}

func (w *World) newUID() types.UID {
	return types.UID(fmt.Sprintf("%08x-0000-4000-8000-%012x", w.rng.Uint32(), w.rng.Uint64()&0xffffffffffff))
}

// suffix returns what makes a generated name unique.
func (w *World) suffix() string {
	w.made++
	return fmt.Sprintf("%04x%d", w.rng.Uint32()&0xffff, w.made)
}

// model is a part of Kubernetes. It returns what it could do next.
type model func(*World) []action

// action is one thing that can happen, and a sentence of it.
type action struct {
	story string
	do    func()
}

// faulty decides whether a fault happens that does once in so many times; 0 is never.
func (w *World) faulty(once int) bool {
	return w.chaos && once > 0 && w.rng.IntN(once) == 0
}

// log adds a line to the story.
func (w *World) log(who, format string, words ...any) {
	if who == "fault" || who == "user" {
		w.happened[format]++
	}
	w.story = append(w.story, fmt.Sprintf("%4d %s %-9s %s", w.step, w.clock.Now().Sub(w.began).Truncate(time.Millisecond), who, fmt.Sprintf(format, words...)))
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
	return strings.Join(w.story[max(0, len(w.story)-lines):], "\n")
}

// Step has one thing happen.
func (w *World) Step(users user) {
	w.step++
	w.chaos = true
	switch roll := w.rng.IntN(100); {
	case roll < 34:
		if due := w.operator.queue.due(w.clock.Now()); len(due) > 0 {
			if w.faulty(w.faults.kills) {
				w.killAt = w.writes + 1 + w.rng.IntN(6)
			}
			w.operator.reconcile(due[w.rng.IntN(len(due))])
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
	case roll < 97:
		users.act(w)
	default:
		w.disturb()
	}
	w.watchWorld()
}

// deliver sends some changes to one informer, and reports whether there were any.
func (w *World) deliver() bool {
	var behind []kind
	for _, k := range kinds {
		if w.operator.cache.behind(k) > 0 {
			behind = append(behind, k)
		}
	}
	if len(behind) == 0 {
		return false
	}
	k := behind[w.rng.IntN(len(behind))]
	n := w.operator.cache.behind(k)
	if w.faults.stale {
		n = 1 + w.rng.IntN(n)
	}
	w.log("watch", "%d changes of %s", n, k)
	w.operator.deliver(k, n)
	return true
}

// advance has Kubernetes do one thing, and reports whether there was any to do.
func (w *World) advance() bool {
	var could []action
	for _, m := range w.models {
		could = append(could, m(w)...)
	}
	if len(could) == 0 {
		return false
	}
	a := could[w.rng.IntN(len(could))]
	w.log("cluster", "%s", a.story)
	a.do()
	return true
}

// pass has time pass: a moment, some seconds, or until the operator looks again.
func (w *World) pass() {
	d := time.Duration(50+w.rng.IntN(1500)) * time.Millisecond
	switch w.rng.IntN(6) {
	case 0:
		d = time.Duration(2+w.rng.IntN(40)) * time.Second
	case 1:
		if at, ok := w.operator.queue.next(); ok && at.After(w.clock.Now()) {
			d = min(at.Sub(w.clock.Now()), time.Hour)
		}
	}
	w.clock.Step(d)
}

// disturb has one fault happen that is not of a single request.
func (w *World) disturb() {
	switch w.rng.IntN(4) {
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
			w.troubleNode()
		}
	}
}

const (
	// restWithin is how many rounds the operator may take to come to rest, and
	// restFor how many it then has to stay there.
	restWithin = 400
	restFor    = 30
)

// Rest ends all faults and continues until a steady state: nothing is left to do, and nothing
// was written for restFor seconds.
func (w *World) Rest() {
	if w.chaos {
		w.chaos, w.killAt = false, 0
		w.heal()
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
		if quiet++; busy || w.writes != before {
			quiet = 0
		}
	}
	w.watchSteadyState()
}

// Round is a second in which everybody does what there is to do. It reports whether
// Kubernetes did anything.
func (w *World) Round() (busy bool) {
	w.step++
	for range 3 {
		for _, k := range kinds {
			w.operator.deliver(k, w.operator.cache.behind(k))
		}
		for _, name := range w.operator.queue.due(w.clock.Now()) {
			w.operator.reconcile(name)
			w.watchWorld()
		}
		for _, m := range w.models {
			for range 20 { // what it does next may be another thing each time
				could := m(w)
				if len(could) == 0 {
					break
				}
				w.log("cluster", "%s", could[0].story)
				could[0].do()
				busy = true
				w.watchWorld()
			}
		}
		w.clock.Step(300 * time.Millisecond)
	}
	w.clock.Step(100 * time.Millisecond)
	for _, pod := range all[*corev1.Pod](w.server) {
		busy = busy || pod.DeletionTimestamp != nil // it drains
	}
	return busy
}
