package sim

import (
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlevent "sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/enqueue"
	"github.com/memcached-operator/memcached-operator/controllers/memcached"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/simtest"
)

// operatorImage is the same in every version of the operator, since the tokens of its pods set the timing of the scenarios.
const operatorImage = "registry.example.com/operator:simulated"

// operator is the process: the production reconciler with a cache and a queue.
type operator struct {
	w          *World
	reconciler *memcached.Reconciler
	cache      *cache
	queue      queue
	// reconciling is the name of the Memcached of the reconcile that runs, with the UID that it read.
	reconciling string
	uid         types.UID
}

// start starts the operator's process. Its informers list what was the latest, or what an API server that lags has for it.
func (w *World) start() {
	seen := map[simtest.Kind]int{}
	for _, k := range simtest.Kinds {
		n := len(w.Server.Past[k])
		if w.faults.stale && w.chaos {
			n -= w.Rand.IntN(min(n, 12) + 1)
		}
		seen[k] = n
	}
	op := &operator{w: w, cache: newCache(w.Server, seen), queue: queue{}}
	op.reconciler = &memcached.Reconciler{
		Client: newOperatorClient(w), APIReader: liveReader{w}, AgentClient: agents{w}, Recorder: &events.FakeRecorder{}, Clock: w.Clock,
		Options: resources.Options{
			AgentImage: operatorImage, DefaultImage: w.defaultImage,
			OperatorNamespace: "memcached-operator-system", Resizing: w.resizing,
		},
		DefaultImageUpdates: 1,
	}
	for _, name := range slices.Sorted(maps.Keys(op.cache.held[simtest.KindMemcached])) {
		op.queue.add(name, w.Clock.Now())
	}
	w.operator = op
}

// setDefault restarts the operator with another default version of memcached.
func (w *World) setDefault(version string) {
	w.defaultImage = simtest.Image(version)
	w.start()
}

// deliver sends changes to an informer and queues the Memcacheds that they concern.
func (op *operator) deliver(k simtest.Kind, n int) {
	for range min(n, op.cache.behind(k)) {
		was, is := op.cache.next(k)
		for _, o := range []client.Object{was, is} {
			if o == nil || !enqueue.SaysMore.Update(ctrlevent.UpdateEvent{ObjectOld: was, ObjectNew: is}) {
				continue
			}
			if name := memcachedOf(o); name != "" {
				op.queue.add(name, op.w.Clock.Now())
			}
		}
	}
}

// memcachedOf returns the Memcached that is reconciled when an object changes; see memcached.Reconciler.SetupWithManager.
func memcachedOf(o client.Object) string {
	switch o := o.(type) {
	case *v1beta1.Memcached:
		return o.Name
	case *v1beta1.MemcachedRestore:
		return o.Spec.MemcachedRef.Name
	case *v1beta1.MemcachedBackup:
		return o.Spec.MemcachedRef.Name
	}
	return o.GetLabels()[v1beta1.LabelInstance]
}

// reconcile reconciles one Memcached of the queue. An operator that is killed in it is restarted.
func (op *operator) reconcile(name string) {
	w := op.w
	op.queue.take(name)
	op.reconciling, op.uid = name, ""
	if m, ok := op.cache.held[simtest.KindMemcached][name]; ok {
		op.uid = m.GetUID()
	}
	defer func() {
		switch what := recover().(type) {
		case nil:
		case killed:
			w.log("fault", "the operator is killed")
			w.kills++
			w.start()
		default:
			panic(what)
		}
	}()
	w.log("operator", "reconciles %s", name)
	result, err := op.reconciler.Reconcile(context.Background(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: w.Server.Namespace, Name: name}})
	switch {
	case err != nil:
		w.log("operator", "ends with: %v", err)
		op.queue.again(name, w.Clock.Now())
	case result.RequeueAfter > 0:
		op.queue.forget(name)
		op.queue.add(name, w.Clock.Now().Add(result.RequeueAfter))
	default:
		op.queue.forget(name)
	}
}

// queue is the controller's: what it will reconcile, and when at the earliest.
type queue map[string]*waiting

type waiting struct {
	at       time.Time
	waits    bool
	failures int
}

func (q queue) entry(name string) *waiting {
	if q[name] == nil {
		q[name] = &waiting{}
	}
	return q[name]
}

// add has one reconciled at some time, or earlier.
func (q queue) add(name string, at time.Time) {
	e := q.entry(name)
	if !e.waits || at.Before(e.at) {
		e.at, e.waits = at, true
	}
}

func (q queue) take(name string) { q.entry(name).waits = false }

func (q queue) forget(name string) { q.entry(name).failures = 0 }

// again has one reconciled that failed, later each time.
func (q queue) again(name string, now time.Time) {
	e := q.entry(name)
	q.add(name, now.Add(min(5*time.Millisecond<<min(e.failures, 20), 1000*time.Second)))
	e.failures++
}

// due returns what the controller reconciles now, in the order of the names.
func (q queue) due(now time.Time) []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(q)) {
		if q[name].waits && !q[name].at.After(now) {
			names = append(names, name)
		}
	}
	return names
}

// next returns when the next one is due.
func (q queue) next() (at time.Time, ok bool) {
	for _, e := range q {
		if e.waits && (!ok || e.at.Before(at)) {
			at, ok = e.at, true
		}
	}
	return at, ok
}

// agents answers for the shards' agents. Several goroutines call it at once,
// so what fails is a matter of the step and the address.
type agents struct{ w *World }

func (a agents) Status(_ context.Context, podIP string) (agentwire.Status, error) {
	w := a.w
	if w.chaos && w.faults.agents > 0 {
		sum := fnv.New64a()
		fmt.Fprint(sum, w.seed, w.step, podIP)
		if sum.Sum64()%uint64(w.faults.agents) == 0 {
			w.unanswered.Add(1)
			return agentwire.Status{}, fmt.Errorf("no answer from %s", podIP)
		}
	}
	return w.AgentStatus(podIP)
}
