package sim

import (
	"flag"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// spec is a spec as the user writes it.
type spec = map[string]any

// scenario is a Memcached that comes to rest, and what happens to it then.
type scenario struct {
	begins spec
	// then happens one after the other, with so many seconds between.
	then    []func(*World)
	seconds int
	// keeps: no shard may be left with less than all its items. settles: nothing may
	// require manual intervention at the end.
	keeps, settles bool
}

// set returns an edit of the spec.
func set(change spec) func(*World) {
	return func(w *World) {
		w.Edit("cache", func(s map[string]any) map[string]any {
			for name, value := range change {
				if s[name] = value; value == nil {
					delete(s, name)
				}
			}
			return s
		})
	}
}

// scenarios that stand for what users do, and for the bugs that were found.
var scenarios = map[string]scenario{
	"a version":                            {begins: spec{"size": int64(3), "version": "1.6.38"}, then: []func(*World){set(spec{"version": "1.6.45"})}, keeps: true},
	"a version, and back in the middle":    {begins: spec{"size": int64(3), "version": "1.6.38"}, then: []func(*World){set(spec{"version": "1.6.45"}), untilUpdated("cache-1", "1.6.45"), set(spec{"version": "1.6.38"})}, keeps: true},
	"a version, and a third":               {begins: spec{"size": int64(2), "version": "1.6.38"}, then: []func(*World){set(spec{"version": "1.6.45"}), untilUpdated("cache-0", "1.6.45"), set(spec{"version": "1.6.18"})}, keeps: true},
	"threads":                              {begins: spec{"size": int64(2)}, then: []func(*World){set(spec{"threads": int64(2)})}, keeps: true},
	"a version and threads":                {begins: spec{"size": int64(2), "version": "1.6.38"}, then: []func(*World){set(spec{"version": "1.6.45", "threads": int64(2)})}, keeps: true},
	"resources":                            {begins: spec{"size": int64(2)}, then: []func(*World){set(spec{"resources": spec{"limits": spec{"memory": "512Mi"}}})}, keeps: true},
	"labels":                               {begins: spec{"size": int64(2)}, then: []func(*World){set(spec{"podMetadata": spec{"labels": spec{"team": "shop"}}})}, keeps: true},
	"memory":                               {begins: spec{"size": int64(2)}, then: []func(*World){set(spec{"memory": "128Mi"})}},
	"memory, and back in the middle":       {begins: spec{"size": int64(2)}, then: []func(*World){set(spec{"memory": "128Mi"}), set(spec{"memory": "64Mi"})}, seconds: 2},
	"a node selector":                      {begins: spec{"size": int64(2)}, then: []func(*World){set(spec{"scheduling": spec{"nodeSelector": spec{"disk": "ssd"}}})}},
	"scaling out":                          {begins: spec{"size": int64(1)}, then: []func(*World){set(spec{"size": int64(3)})}, keeps: true},
	"scaling in":                           {begins: spec{"size": int64(3)}, then: []func(*World){set(spec{"size": int64(1)})}, keeps: true},
	"to size 0 and back":                   {begins: spec{"size": int64(2)}, then: []func(*World){set(spec{"size": int64(0)}), set(spec{"size": int64(2)})}, seconds: 40},
	"a version while scaling out":          {begins: spec{"size": int64(2), "version": "1.6.38"}, then: []func(*World){set(spec{"version": "1.6.45"}), set(spec{"size": int64(3)})}, seconds: 2, keeps: true},
	"an image that is not there":           {begins: spec{"size": int64(2)}, then: []func(*World){set(spec{"image": "docker.io/library/memcached:1.6.99"})}, keeps: true},
	"an image that is not memcached":       {begins: spec{"size": int64(2)}, then: []func(*World){set(spec{"image": "docker.io/library/busybox:1.37"})}, keeps: true},
	"arguments that memcached rejects":     {begins: spec{"size": int64(2)}, then: []func(*World){set(spec{"extraArgs": []any{"-R", "0"}})}, keeps: true},
	"rejected arguments, and back":         {begins: spec{"size": int64(2)}, then: []func(*World){set(spec{"extraArgs": []any{"-R", "0"}}), set(spec{"extraArgs": nil})}, seconds: 15, keeps: true},
	"paused, a version, and on":            {begins: spec{"size": int64(2), "version": "1.6.38"}, then: []func(*World){set(spec{"paused": true, "version": "1.6.45"}), set(spec{"paused": nil})}, seconds: 5, keeps: true},
	"a final backup":                       {begins: spec{"size": int64(2), "deletionPolicy": "Backup", "finalBackup": spec{"store": spec{"persistentVolumeClaim": spec{"claimName": "backups"}}}}, then: []func(*World){deletes}},
	"deletion":                             {begins: spec{"size": int64(2)}, then: []func(*World){deletes}},
	"recreated at once":                    {begins: spec{"size": int64(2)}, then: []func(*World){deletes, makes(spec{"size": int64(2), "version": "1.6.38"})}},
	"a pod that is deleted":                {begins: spec{"size": int64(2)}, then: []func(*World){deletesPod("cache-0")}},
	"a version, and a pod that is deleted": {begins: spec{"size": int64(2), "version": "1.6.38"}, then: []func(*World){set(spec{"version": "1.6.45"}), deletesPod("cache-1")}, seconds: 2},
	"a refill":                             {begins: spec{"size": int64(2), "refill": spec{"maxAgeSeconds": int64(86400)}}, then: []func(*World){deletesPod("cache-1")}},
	"a bootstrap":                          {begins: spec{"size": int64(2), "hashing": spec{"algorithm": "Ketama"}, "bootstrap": spec{"backupRef": spec{"name": "yesterday"}}}},

	// Bugs that the seeds found.
	"a set is deleted without its pod while shard 0 is replaced":      {begins: spec{"size": int64(2)}, then: []func(*World){set(spec{"memory": "128Mi"}), orphans("cache-1")}, seconds: 1},
	"a Service is deleted and can't be recreated":                     {begins: spec{"size": int64(2)}, then: []func(*World){takes(serviceKind, "cache-1"), frees(serviceKind, "cache-1")}, seconds: 40, keeps: true},
	"a restarted operator reads the spec from before it scaled out":   {begins: spec{"size": int64(1)}, then: []func(*World){set(spec{"size": int64(3)}), readsThePast}, seconds: 30, keeps: true},
	"a restarted operator reads the ReplicaSets from before a change": {begins: spec{"size": int64(2)}, then: []func(*World){marks, set(spec{"threads": int64(2)}), crashes("cache-0"), readsMarkedSets}, seconds: 20, settles: true},
	"resources, and back before the rest of the change":               {begins: spec{"size": int64(2)}, then: []func(*World){set(spec{"resources": spec{"limits": spec{"memory": "512Mi"}}, "threads": int64(2)}), untilGiven("cache-0", "512Mi"), set(spec{"resources": nil, "threads": nil})}, keeps: true, settles: true},
	"two constraints of one key":                                      {begins: spec{"size": int64(2)}, then: []func(*World){set(spec{"scheduling": spec{"topologySpreadConstraints": sameKeyTwice}, "memory": "128Mi"})}, keeps: true},
	"a version and another shard at once":                             {begins: spec{"size": int64(1), "version": "1.6.38"}, then: []func(*World){set(spec{"version": "1.6.45", "size": int64(2)})}, keeps: true},
}

// untilUpdated plays until the operator has applied a version to the shard's pod. A number of
// seconds instead would be a race with an operator that is killed and starts again.
func untilUpdated(shard, version string) func(*World) {
	return func(w *World) {
		for range 100 {
			for _, pod := range all[*corev1.Pod](w.server) {
				if shardOf(pod) == shard && strings.HasSuffix(container(pod).Image, ":"+version) {
					return
				}
			}
			w.Round()
		}
	}
}

// untilGiven lets the world go on until the shard's pod is given so much memory.
func untilGiven(shard, memory string) func(*World) {
	return func(w *World) {
		for range 1000 {
			for _, pod := range all[*corev1.Pod](w.server) {
				if shardOf(pod) == shard && container(pod).Resources.Limits.Memory().String() == memory {
					return
				}
			}
			w.Step(idleUser{})
		}
	}
}

// sameKeyTwice is what the API server takes of a Memcached, and not of a ReplicaSet.
var sameKeyTwice = []any{
	spec{"topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway", "maxSkew": int64(1)},
	spec{"topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway", "maxSkew": int64(2)},
}

func deletes(w *World) { w.remove("cache") }

func makes(s spec) func(*World) { return func(w *World) { w.Make("cache", s) } }

func deletesPod(shard string) func(*World) {
	return func(w *World) {
		for _, pod := range all[*corev1.Pod](w.server) {
			if shardOf(pod) == shard && pod.DeletionTimestamp == nil {
				w.deletePod(pod)
				return
			}
		}
	}
}

func orphans(shard string) func(*World) {
	return func(w *World) { w.orphan(get[*appsv1.ReplicaSet](w.server, shard)) }
}

// startsBehind restarts the operator, which reads one kind as it was after that many changes
// from an API server that lags behind, before it receives the others.
func (w *World) startsBehind(k kind, changes int) {
	w.log("fault", "the operator starts and reads %s as it was after %d changes", k, changes)
	w.start()
	seen := map[kind]int{}
	for _, other := range kinds {
		seen[other] = len(w.server.past[other])
	}
	seen[k] = changes
	w.operator.cache = newCache(w.server, seen)
}

// readsThePast restarts the operator, which reads the first version of the Memcached.
func readsThePast(w *World) {
	w.startsBehind(memcachedKind, 1)
	w.operator.reconcile("cache")
}

// marks notes how far the ReplicaSets are.
func marks(w *World) { w.marked = len(w.server.past[replicaSetKind]) }

// readsMarkedSets restarts the operator, which reads the ReplicaSets as they were
// when that was noted.
func readsMarkedSets(w *World) {
	w.startsBehind(replicaSetKind, w.marked)
	w.operator.reconcile("cache")
	w.operator.reconcile("cache")
}

// crashes has a shard's memcached end, with its items.
func crashes(shard string) func(*World) {
	return func(w *World) {
		for _, p := range w.procs {
			if p.shard == shard {
				w.crashOf(p)
			}
		}
	}
}

// takes deletes an object and creates a foreign one in its place.
func takes(k kind, name string) func(*World) {
	return func(w *World) {
		w.server.delete(w.server.now[k][name])
		w.take(k, name)
	}
}

func frees(k kind, name string) func(*World) {
	return func(w *World) {
		w.log("user", "deletes the foreign %s %s", k, name)
		w.server.delete(w.server.now[k][name])
	}
}

// play has a scenario happen, after a rest from which on writes are counted, and
// returns the world in steady state again.
func (s scenario) play(w *World, fault func(*World)) *World {
	if w.Make("cache", s.begins) {
		w.Rest()
	}
	w.writes = 0
	if fault != nil {
		fault(w)
	}
	for i, act := range s.then {
		if act(w); i+1 < len(s.then) {
			for range s.seconds {
				w.Round()
			}
		}
	}
	w.Rest()
	return w
}

func TestScenariosConverge(t *testing.T) {
	for name, s := range scenarios {
		t.Run(name, func(t *testing.T) {
			w := s.play(newWorld(1, faults{}), nil)
			if w.broken != "" {
				t.Fatalf("%s\n%s", w.broken, w.tail(80))
			}
			if s.settles && !strings.Contains(w.End(), "Degraded=False") {
				t.Errorf("it requires manual intervention:\n%s\n%s", w.End(), w.tail(60))
			}
			if w.gaps > 0 {
				t.Error("a pod has other resources than the spec")
			}
			if starts := w.Starts(); s.keeps && strings.Contains(starts, " 0 items") {
				t.Errorf("a shard is empty:\n%s", starts)
			}
			t.Logf("%d writes", w.writes)
		})
	}
}

var every = flag.Int("every", 3, "of the writes that are rejected or whose answer is lost, one in this many is tried")

// TestScenariosConvergeWhicheverWriteFails has each write of each scenario fail in
// turn: the operator is killed after it and, for some of them, it is rejected or its
// answer is lost. It must end as without: in the same state, and with no start of a
// container or of memcached more.
func TestScenariosConvergeWhicheverWriteFails(t *testing.T) {
	for name, s := range scenarios {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			calm := s.play(newWorld(1, faults{}), nil)
			want := calm.End() + "\n" + calm.Starts()
			for at := 1; at <= calm.writes; at++ {
				ways := map[string]func(*World){"the operator is killed after it": func(w *World) { w.killAt = at }}
				if (at+len(name))%*every == 0 {
					ways["it is rejected"] = func(w *World) { w.rejectAt = at }
					ways["its answer is lost"] = func(w *World) { w.loseAt = at }
				}
				for fault, put := range ways {
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

// requestsFail, and no pod or node: losing a shard during its change stops the update,
// by design.
var requestsFail = faults{refusals: 25, answers: 25, reads: 60, agents: 12, kills: 20, stale: true}

// good are specs that can be brought about, and bad ones that cannot.
var good = []spec{
	{"size": int64(2)},
	{"size": int64(3), "version": "1.6.38"},
	{"size": int64(1), "version": "1.6.18", "threads": int64(2)},
	{"size": int64(2), "memory": "128Mi"},
	{"size": int64(2), "scheduling": spec{"nodeSelector": spec{"disk": "ssd"}}},
	{"size": int64(3), "maxConnections": int64(512), "podMetadata": spec{"labels": spec{"team": "shop"}}},
	{"size": int64(2), "resources": spec{"limits": spec{"memory": "512Mi"}}, "extraArgs": []any{"-v"}},
	{"size": int64(0)},
}

var bad = []spec{
	{"size": int64(2), "image": "docker.io/library/memcached:1.6.99"},
	{"size": int64(2), "image": "docker.io/library/busybox:1.37"},
	{"size": int64(2), "extraArgs": []any{"-R", "0"}},
	{"size": int64(2), "scheduling": spec{"nodeSelector": spec{"disk": "none"}}},
	{"size": int64(3), "memory": "128Mi", "image": "docker.io/library/memcached:1.6.99"},
	{"size": int64(2), "version": "1.5.6"},
	{"size": int64(2), "scheduling": spec{"topologySpreadConstraints": sameKeyTwice}},
}

// to has the whole spec be another one.
func to(s spec) func(*World) {
	return func(w *World) {
		w.Edit("cache", func(map[string]any) map[string]any { return s })
	}
}

// fresh returns the final state of a new Memcached of a spec.
func fresh(t *testing.T, s spec) string {
	t.Helper()
	w := newWorld(1, faults{})
	w.Make("cache", s)
	if w.Rest(); w.broken != "" {
		t.Fatalf("a new one: %s\n%s", w.broken, w.tail(60))
	}
	return w.End()
}

// TestResultDependsOnlyOnTheFinalSpec goes from one spec over another to a third, waiting for the
// second one or not, and with requests that fail on the way and an operator that is
// killed or none. It ends as a new Memcached of the third spec does.
func TestResultDependsOnlyOnTheFinalSpec(t *testing.T) {
	for i, c := range good {
		t.Run(fmt.Sprintf("to %v", c), func(t *testing.T) {
			t.Parallel()
			want := fresh(t, c)
			for j, b := range append(append([]spec{}, good...), bad...) {
				for seed := range uint64(3) {
					a := good[(i+j+int(seed))%len(good)] //nolint:gosec // small
					w := newWorld(seed, requestsFail)
					w.Make("cache", a)
					w.Rest()
					to(b)(w)
					for range int(seed) * 60 { // undisturbed, then longer and longer not
						w.Step(idleUser{})
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

// idleUser changes nothing.
type idleUser struct{}

func (idleUser) act(*World) {}
