package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/internal/simtest"
)

// spec is a spec as the user writes it.
type spec = map[string]any

// scenario is a Memcached that comes to rest, and what happens to it then.
type scenario struct {
	begins spec
	// policy changes pods that are created or updated.
	policy func(was, is client.Object)
	// then happens one after the other, with so many seconds between.
	then    []func(*World)
	seconds int
	// keeps: no shard may be left with less than all its items. settles: at the end all is up to date and
	// nothing requires manual intervention. silent: the operator has nothing to write.
	keeps, settles, silent bool
	// filled scenarios are those of a Memcached that a bootstrap fills.
	filled bool
	// degraded is what requires manual intervention at the end.
	degraded string
}

// good are specs that can be brought about, and bad ones that cannot.
var good = []spec{
	{"size": int64(2)},
	{"size": int64(3), "version": middle},
	{"size": int64(1), "version": oldest, "config": spec{"threads": int64(2)}},
	{"size": int64(2), "memory": "128Mi"},
	{"size": int64(2), "pod": spec{"nodeSelector": spec{"disk": "ssd"}}},
	{"size": int64(3), "config": spec{"maxConnections": int64(512)}, "pod": spec{"metadata": spec{"labels": spec{"team": "shop"}}}},
	{"size": int64(2), "resources": spec{"limits": spec{"memory": "512Mi"}}, "config": spec{"extraArgs": []any{"-v"}}},
	{"size": int64(0)},
}

var bad = []spec{
	{"size": int64(2), "pod": spec{"image": simtest.Image(missing)}},
	{"size": int64(2), "pod": spec{"image": "docker.io/library/busybox:1.37"}},
	{"size": int64(2), "config": spec{"extraArgs": []any{"-R", "0"}}},
	{"size": int64(2), "pod": spec{"nodeSelector": spec{"disk": "none"}}},
	{"size": int64(3), "memory": "128Mi", "pod": spec{"image": simtest.Image(missing)}},
	{"size": int64(2), "version": "1.5.6"},
	{"size": int64(4), "version": "1.5.6"},
	{"size": int64(2), "pod": spec{"topologySpreadConstraints": sameKeyTwice}},
}

// must breaks a scenario in which something does not happen that should.
func (w *World) must(happens bool, format string, words ...any) {
	if !happens {
		w.breaks("the scenario doesn't happen: "+format, words...)
	}
}

// edits returns an edit of the spec, which the API server must accept.
func edits(edit func(spec) spec) func(*World) {
	return func(w *World) { w.must(w.Edit("cache", edit), "the edit is rejected") }
}

// set returns a change of fields of the spec.
func set(change spec) func(*World) {
	return edits(func(s spec) spec {
		for name, value := range change {
			if s[name] = value; value == nil {
				delete(s, name)
			}
		}
		return s
	})
}

// upgrades starts another version of the operator, whose default version of memcached is another one.
func upgrades(version string) func(*World) {
	return func(w *World) {
		w.log("user", "upgrades the operator: the default version of memcached is %s", version)
		w.setDefault(version)
	}
}

// scenarios that stand for what users do, and for the bugs that were found.
var scenarios = map[string]scenario{
	"a version":                                   {begins: spec{"size": int64(3), "version": middle}, then: []func(*World){set(spec{"version": newest})}, keeps: true},
	"a version, and back in the middle":           {begins: spec{"size": int64(3), "version": middle}, then: []func(*World){set(spec{"version": newest}), untilUpdated("cache-1"), set(spec{"version": middle})}, keeps: true},
	"a version, and a third":                      {begins: spec{"size": int64(2), "version": middle}, then: []func(*World){set(spec{"version": newest}), untilUpdated("cache-0"), set(spec{"version": oldest})}, keeps: true},
	"another default version":                     {begins: spec{"size": int64(2)}, then: []func(*World){upgrades(later)}, keeps: true, settles: true},
	"another default version, and a repository":   {begins: spec{"size": int64(2), "pod": spec{"image": "docker.io/library/memcached"}}, then: []func(*World){upgrades(later)}, keeps: true, settles: true},
	"another default version than the pinned one": {begins: spec{"size": int64(2), "version": newest}, then: []func(*World){upgrades(later)}, keeps: true, settles: true, silent: true},
	"threads":                              {begins: spec{"size": int64(2)}, then: []func(*World){set(spec{"config": spec{"threads": int64(2)}})}, keeps: true},
	"a version and threads":                {begins: spec{"size": int64(2), "version": middle}, then: []func(*World){set(spec{"version": newest, "config": spec{"threads": int64(2)}})}, keeps: true},
	"resources":                            {begins: spec{"size": int64(2)}, then: []func(*World){set(spec{"resources": spec{"limits": spec{"memory": "512Mi"}}})}, keeps: true},
	"labels":                               {begins: spec{"size": int64(2)}, then: []func(*World){set(spec{"pod": spec{"metadata": spec{"labels": spec{"team": "shop"}}}})}, keeps: true},
	"memory":                               {begins: spec{"size": int64(2)}, then: []func(*World){set(spec{"memory": "128Mi"})}},
	"memory, and back in the middle":       {begins: spec{"size": int64(2)}, then: []func(*World){set(spec{"memory": "128Mi"}), untilGiven("cache-0", "228Mi"), set(spec{"memory": "64Mi"})}},
	"a node selector":                      {begins: spec{"size": int64(2)}, then: []func(*World){set(spec{"pod": spec{"nodeSelector": spec{"disk": "ssd"}}})}},
	"a node selector that no node has":     {begins: spec{"size": int64(2)}, then: []func(*World){set(spec{"pod": spec{"nodeSelector": spec{"disk": "none"}}})}, keeps: true, degraded: v1beta1.ReasonUnschedulable},
	"scaling out":                          {begins: spec{"size": int64(1)}, then: []func(*World){set(spec{"size": int64(3)})}, keeps: true},
	"scaling in":                           {begins: spec{"size": int64(3)}, then: []func(*World){set(spec{"size": int64(1)})}, keeps: true},
	"to size 0 and back":                   {begins: spec{"size": int64(2)}, then: []func(*World){set(spec{"size": int64(0)}), set(spec{"size": int64(2)})}, seconds: 40},
	"a version while scaling out":          {begins: spec{"size": int64(2), "version": middle}, then: []func(*World){set(spec{"version": newest}), set(spec{"size": int64(3)})}, seconds: 2, keeps: true},
	"an image that is not there":           {begins: spec{"size": int64(2)}, then: []func(*World){set(spec{"pod": spec{"image": simtest.Image(missing)}})}, keeps: true},
	"an image that is not memcached":       {begins: spec{"size": int64(2)}, then: []func(*World){set(spec{"pod": spec{"image": "docker.io/library/busybox:1.37"}})}, keeps: true},
	"arguments that memcached rejects":     {begins: spec{"size": int64(2)}, then: []func(*World){set(spec{"config": spec{"extraArgs": []any{"-R", "0"}}})}, keeps: true},
	"rejected arguments, and back":         {begins: spec{"size": int64(2)}, then: []func(*World){set(spec{"config": spec{"extraArgs": []any{"-R", "0"}}}), set(spec{"config": spec{"extraArgs": nil}})}, seconds: 15, keeps: true},
	"a version, and no window is open":     {begins: spec{"size": int64(2), "version": middle, "updateStrategy": spec{"maintenanceWindows": []any{spec{"start": "02:00", "durationSeconds": int64(3600)}}}}, then: []func(*World){set(spec{"version": newest}), happens("blocked by " + string(v1beta1.GateOutsideMaintenanceWindow))}, seconds: 30, keeps: true},
	"paused, a version, and on":            {begins: spec{"size": int64(2), "version": middle}, then: []func(*World){set(spec{"paused": true, "version": newest}), set(spec{"paused": nil})}, seconds: 5, keeps: true},
	"a final backup":                       {begins: spec{"size": int64(2), "deletionPolicy": "Backup", "backup": spec{"final": spec{"store": spec{"persistentVolumeClaim": spec{"claimName": "backups"}}}}}, then: []func(*World){deletes}},
	"deletion":                             {begins: spec{"size": int64(2)}, then: []func(*World){deletes}, silent: true},
	"recreated at once":                    {begins: spec{"size": int64(2)}, then: []func(*World){deletes, makes(spec{"size": int64(2), "version": middle})}},
	"a pod that is deleted":                {begins: spec{"size": int64(2)}, then: []func(*World){deletesPod("cache-0")}},
	"a set is deleted without its pod":     {begins: spec{"size": int64(1)}, then: []func(*World){orphans("cache-0")}, keeps: true, settles: true},
	"a version, and a pod that is deleted": {begins: spec{"size": int64(2), "version": middle}, then: []func(*World){set(spec{"version": newest}), deletesPod("cache-1")}, seconds: 2},
	"a refill":                             {begins: spec{"size": int64(2), "backup": spec{"refill": spec{"mode": "NewestBackup", "maxAgeSeconds": int64(86400)}}}, then: []func(*World){deletesPod("cache-1")}},
	"a bootstrap":                          {then: []func(*World){makes(spec{"size": int64(2), "access": spec{"hashing": spec{"algorithm": "Ketama"}}, "backup": spec{"bootstrap": spec{"backupRef": spec{"name": "yesterday"}}}})}, filled: true, settles: true},

	"a bootstrap of one whose shards stayed": {begins: spec{"size": int64(2)}, then: []func(*World){abandons, makes(spec{"size": int64(2), "backup": spec{"bootstrap": spec{"backupRef": spec{"name": "yesterday"}}}})}, seconds: 2, keeps: true, settles: true},

	"a smaller one than the one whose shards stayed": {begins: spec{"size": int64(3)}, then: []func(*World){abandons, makes(spec{"size": int64(2)})}, seconds: 2, keeps: true, settles: true},

	"a replacement of shards with a refill": {begins: spec{"size": int64(2), "backup": spec{"refill": spec{"mode": "NewestBackup", "maxAgeSeconds": int64(86400)}}}, then: []func(*World){backsUp, set(spec{"memory": "128Mi"})}, seconds: 5},

	"rejected arguments while another node does not answer": {begins: spec{"size": int64(2)}, then: []func(*World){set(spec{"config": spec{"extraArgs": []any{"-R", "0"}}}), loses("cache-1")}, seconds: 5, keeps: true},
	"a handover while another node does not answer":         {begins: spec{"size": int64(2), "version": middle, "updateStrategy": spec{"type": "Handover"}}, then: []func(*World){set(spec{"version": newest}), untilSecond("cache-0", newest), loses("cache-1")}, keeps: true, settles: true},

	"TLS":                                {begins: spec{"size": int64(2)}, then: []func(*World){set(spec{"tls": spec{"mode": "Required"}})}, keeps: true, settles: true},
	"TLS, and back":                      {begins: spec{"size": int64(2)}, then: []func(*World){set(spec{"tls": spec{"mode": "Required"}}), set(spec{"tls": spec{"mode": "Disabled"}})}, seconds: 2, keeps: true, settles: true},
	"TLS and logins are lost":            {begins: secured, then: []func(*World){set(spec{"tls": nil, "auth": nil, "config": spec{"threads": int64(2)}}), areSecured}, seconds: 30, keeps: true, degraded: v1beta1.ReasonProtectionNotStated},
	"TLS and logins are lost, and back":  {begins: secured, then: []func(*World){set(spec{"tls": nil, "auth": nil}), areSecured, set(secured), areSecured}, seconds: 30, keeps: true, settles: true},
	"a certificate that takes a restart": {begins: spec{"size": int64(3), "tls": spec{"mode": "Required"}}, then: []func(*World){rotates}, keeps: true, settles: true},

	"less memory than before, after a version": {begins: spec{"size": int64(2), "version": middle, "config": spec{"maxConnections": int64(4096)}}, then: []func(*World){set(spec{"version": newest}), untilUpdated("cache-1"), set(spec{"config": spec{"maxConnections": nil}})}, keeps: true, settles: true},

	"a version, threads and a certificate that the kubelets miss at first": {begins: spec{"size": int64(2), "version": middle, "tls": spec{"mode": "Required"}}, then: []func(*World){forgets, set(spec{"version": newest}), untilUpdated("cache-1"), set(spec{"config": spec{"threads": int64(2)}}), rotates}, seconds: 30, keeps: true, settles: true},

	"a version, and new pods get another image":                         {begins: upstream, policy: mirrorsNewPods, then: []func(*World){set(spec{"version": newest}), untilUpdated("cache-1")}, keeps: true, settles: true},
	"a version, and all pods get another image":                         {begins: upstream, policy: mirrors, then: []func(*World){set(spec{"version": newest}), untilUpdated("cache-1")}, keeps: true, settles: true},
	"a version, and back in the middle, and new pods get another image": {begins: upstream, policy: mirrorsNewPods, then: []func(*World){set(spec{"version": newest}), untilUpdated("cache-0"), set(spec{"version": middle})}, keeps: true, settles: true},

	"warm: scaling out": {begins: warm(2), then: []func(*World){set(spec{"size": int64(4)}), happens("scaling Closing")}, seconds: 60, keeps: true, settles: true},
	"warm: scaling in":  {begins: warm(4), then: []func(*World){set(spec{"size": int64(2)}), happens("scaling Closing")}, seconds: 60, keeps: true, settles: true},
	"warm: scaling out, and back while items are copied": {begins: warm(2), then: []func(*World){set(spec{"size": int64(3)}), untilCreated("cache-2"), set(spec{"size": int64(2)})}, keeps: true, settles: true},
	"warm: scaling in, and back while items are copied":  {begins: warm(3), then: []func(*World){set(spec{"size": int64(2)}), untilScaling(v1beta1.ScalingCopying), set(spec{"size": int64(3)})}, keeps: true, settles: true},
	"warm: scaling out, and further while copied":        {begins: warm(2), then: []func(*World){set(spec{"size": int64(3)}), untilCreated("cache-2"), set(spec{"size": int64(4)})}, keeps: true, settles: true},
	"warm: scaling out, and back after the list is new":  {begins: warm(2), then: []func(*World){set(spec{"size": int64(3)}), untilScaling(v1beta1.ScalingWaiting), set(spec{"size": int64(2)})}, keeps: true, settles: true},
	"warm: scaling out, and cold then":                   {begins: warm(2), then: []func(*World){set(spec{"size": int64(3)}), untilCreated("cache-2"), set(spec{"scaling": spec{"mode": "Cold"}})}, keeps: true, settles: true},
	"warm: scaling out with another ring":                {begins: warm(2), then: []func(*World){unproven, set(spec{"size": int64(3)})}, keeps: true, settles: true},
	"warm: scaling out, and a new shard is lost":         {begins: warm(2), then: []func(*World){set(spec{"size": int64(3)}), untilScaling(v1beta1.ScalingWaiting), deletesPod("cache-2")}, settles: true},
	"warm: scaling in, and a version":                    {begins: spec{"size": int64(3), "version": middle, "access": hashed["access"], "scaling": hashed["scaling"]}, then: []func(*World){set(spec{"size": int64(2)}), untilScaling(v1beta1.ScalingWaiting), set(spec{"version": newest}), happens("blocked by " + string(v1beta1.GateScaling))}, seconds: 2, keeps: true, settles: true},
	"warm: scaling out until the user confirms it":       {begins: spec{"size": int64(2), "access": hashed["access"]}, then: []func(*World){set(spec{"size": int64(3)}), isWaiting, (*World).confirm}, seconds: 60, keeps: true, settles: true},
	"warm: a purge, with a dry run before":               {begins: warm(2), then: []func(*World){(*World).confirm, untilPurged, (*World).confirm, untilPurged}, keeps: true, settles: true},

	// Bugs that the seeds found.
	"a set is deleted without its pod while shard 0 is replaced":      {begins: spec{"size": int64(2)}, then: []func(*World){set(spec{"memory": "128Mi"}), orphans("cache-1")}, seconds: 1},
	"a Service is deleted and can't be recreated":                     {begins: spec{"size": int64(2)}, then: []func(*World){takes(simtest.KindService, "cache-1"), frees(simtest.KindService, "cache-1")}, seconds: 40, keeps: true},
	"a restarted operator reads the spec from before it scaled out":   {begins: spec{"size": int64(1)}, then: []func(*World){set(spec{"size": int64(3)}), readsThePast}, seconds: 30, keeps: true},
	"a restarted operator reads the ReplicaSets from before a change": {begins: spec{"size": int64(2)}, then: []func(*World){marks, set(spec{"config": spec{"threads": int64(2)}}), crashes("cache-0"), readsMarkedSets}, seconds: 20, settles: true},
	"resources, and back before the rest of the change":               {begins: spec{"size": int64(2)}, then: []func(*World){set(spec{"resources": spec{"limits": spec{"memory": "512Mi"}}, "config": spec{"threads": int64(2)}}), untilGiven("cache-0", "512Mi"), set(spec{"resources": nil, "config": spec{"threads": nil}})}, keeps: true, settles: true},
	"two constraints of one key":                                      {begins: spec{"size": int64(2)}, then: []func(*World){set(spec{"pod": spec{"topologySpreadConstraints": sameKeyTwice}, "memory": "128Mi"})}, keeps: true},
	"a rejected version, and another size":                            {begins: spec{"size": int64(2)}, then: []func(*World){set(spec{"version": "1.5.6", "size": int64(1)}), serve(2), set(spec{"size": int64(4)}), serve(2), set(spec{"version": nil})}, seconds: 5, keeps: true, settles: true},
	"warm: a rejected version, and another size":                      {begins: warm(3), then: []func(*World){set(spec{"version": "1.5.6", "size": int64(2)}), serve(3), set(spec{"size": int64(4)}), serve(3), set(spec{"version": nil}), happens("scaling Closing")}, seconds: 60, keeps: true, settles: true},
	"warm: scaling out, and back and rejected":                        {begins: warm(2), then: []func(*World){set(spec{"size": int64(3)}), untilScaling(v1beta1.ScalingWaiting), set(spec{"version": "1.5.6", "size": int64(2)}), serve(3), set(spec{"version": nil})}, seconds: 2, keeps: true, settles: true},
	"memory, and the ReplicaSet controller sees pods late":            {begins: spec{"size": int64(2), "updateStrategy": available}, then: []func(*World){set(spec{"memory": "128Mi"}), untilGiven("cache-0", "228Mi"), lags}, keeps: true, settles: true},
	"a version and another shard at once":                             {begins: spec{"size": int64(1), "version": middle}, then: []func(*World){set(spec{"version": newest, "size": int64(2)})}, keeps: true},
}

// hashed is what a spec has if items move when the number of shards changes.
var hashed = spec{"access": spec{"hashing": spec{"algorithm": "Ketama"}}, "scaling": spec{"switchSeconds": int64(20)}}

// available is an update strategy with which both pods of a shard serve at the end of its handover.
var available = spec{"handover": spec{"mode": string(v1beta1.HandoverAvailable)}}

// lags has the ReplicaSet controller see later changes of pods late.
func lags(w *World) {
	for _, m := range w.Models() {
		m()
	}
	w.Lags = func(k simtest.Kind) time.Duration {
		if k == simtest.KindPod {
			return 5 * time.Second
		}
		return 0
	}
}

func warm(size int64) spec {
	return spec{"size": size, "access": hashed["access"], "scaling": hashed["scaling"]}
}

// idle plays a step in which the user does nothing.
func idle(w *World) { w.Step(func(*World) {}) }

// until has so many steps happen at most, until something is done.
func until(what string, limit int, step func(*World), isDone func(*World) bool) func(*World) {
	return func(w *World) {
		for range limit {
			if isDone(w) {
				return
			}
			step(w)
		}
		w.must(false, "after %d steps, %s is missing", limit, what)
	}
}

// hasPod reports whether a pod of a shard is as wanted.
func hasPod(shard string, isWanted func(*corev1.Container) bool) func(*World) bool {
	return func(w *World) bool {
		return slices.ContainsFunc(simtest.All[*corev1.Pod](w.Server), func(pod *corev1.Pod) bool {
			return simtest.ShardOf(pod) == shard && isWanted(simtest.Container(pod))
		})
	}
}

// untilCreated plays until a pod of the shard exists.
func untilCreated(shard string) func(*World) {
	return until("a pod of "+shard, 1000, idle, hasPod(shard, func(*corev1.Container) bool { return true }))
}

// untilScaling plays until the status has a step.
func untilScaling(step v1beta1.ScalingStep) func(*World) {
	return until("the scaling's step "+string(step), 1000, idle, func(w *World) bool {
		s := simtest.Get[*v1beta1.Memcached](w.Server, "cache").Status.Scaling
		return s != nil && s.Step == step
	})
}

// untilPurged plays until the purge of the annotation is complete.
var untilPurged = until("the complete purge", 1000, idle, func(w *World) bool {
	m := simtest.Get[*v1beta1.Memcached](w.Server, "cache")
	s := m.Status.Purge
	return s != nil && s.Request == m.Annotations[v1beta1.AnnotationPurge] && s.Phase == v1beta1.TransferComplete
})

// happens requires that something was counted, such as that a gate has blocked an update.
func happens(what string) func(*World) {
	return func(w *World) { w.must(w.happened[what] > 0, "%s", what) }
}

// isWaiting requires that the operator waits for the user.
func isWaiting(w *World) {
	s := simtest.Get[*v1beta1.Memcached](w.Server, "cache").Status.Scaling
	w.must(s != nil && s.Step == v1beta1.ScalingWaiting, "the scaling is %+v", s)
}

// serve requires that clients know so many shards.
func serve(shards int) func(*World) {
	return func(w *World) {
		m := simtest.Get[*v1beta1.Memcached](w.Server, "cache")
		w.must(len(m.Status.Servers) == shards && m.Status.ReadyShards == int32(shards), "%d shards serve: %+v", shards, m.Status) //nolint:gosec // a few
	}
}

// unproven has clients use another ring than the spec says.
func unproven(w *World) { w.Unproven = true }

// mirrors has the containers of a pod use a mirror of the registry that no node reaches.
func mirrors(_, is client.Object) {
	if pod, ok := is.(*corev1.Pod); ok {
		for i := range pod.Spec.Containers {
			c := &pod.Spec.Containers[i]
			c.Image = strings.Replace(c.Image, simtest.Upstream, "docker.io/library/", 1)
		}
	}
}

// mirrorsNewPods is like mirrors for pods that are created.
func mirrorsNewPods(was, is client.Object) {
	if was == nil {
		mirrors(was, is)
	}
}

// admitted returns the image that a new pod gets with a reference.
func (w *World) admitted(image string) string {
	if w.Server.Mutates == nil {
		return image
	}
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Image: image}}}}
	w.Server.Mutates(nil, pod)
	return pod.Spec.Containers[0].Image
}

// upstream is a spec with an image that no node can pull.
var upstream = spec{"size": int64(2), "version": middle, "pod": spec{"image": simtest.Upstream + "memcached"}}

// secured is a spec with all protections.
var secured = spec{"size": int64(2), "tls": spec{"mode": "Required"}, "auth": spec{"mode": "Required"}}

// areSecured checks that each shard that serves has them, whatever the spec says.
func areSecured(w *World) {
	for _, p := range w.Procs {
		w.must(!p.Serves || strings.Contains(p.Arguments, `"-Z"`) && strings.Contains(p.Arguments, `"-Y"`), "shard %s keeps its TLS and its logins: %s", p.Shard, p.Arguments)
	}
}

// untilUpdated plays until the operator has applied the newest version to the shard's pod. A number of
// seconds instead would be a race with an operator that is killed and starts again.
func untilUpdated(shard string) func(*World) {
	return until("the newest version in "+shard, 100, func(w *World) { w.Round() }, hasPod(shard, func(c *corev1.Container) bool { return simtest.VersionIn(c.Image) == newest }))
}

// untilGiven plays until the shard's pod, or its second one, is given so much memory or more.
func untilGiven(shard, memory string) func(*World) {
	return until("the memory of "+shard, 1000, idle, hasPod(shard, func(c *corev1.Container) bool {
		return c.Resources.Limits.Memory().Cmp(resource.MustParse(memory)) >= 0
	}))
}

// untilSecond plays until the shard's pod, or its second one, has the version.
func untilSecond(shard, version string) func(*World) {
	return until(version+" in "+shard, 1000, idle, hasPod(shard, func(c *corev1.Container) bool { return simtest.VersionIn(c.Image) == version }))
}

// loses takes the node of a shard away for half a minute.
func loses(shard string) func(*World) {
	return func(w *World) {
		for _, p := range w.Procs {
			if p.Shard == shard {
				n := w.NodeOf(p)
				w.turn(n)
				for range 30 {
					w.Round()
				}
				w.turn(n)
				return
			}
		}
		w.must(false, "no pod of %s runs", shard)
	}
}

// forgets has the kubelets miss every other change of a pod's annotations.
func forgets(w *World) { w.forgetful = true }

// sameKeyTwice is what the API server takes of a Memcached, and not of a ReplicaSet.
var sameKeyTwice = []any{
	spec{"topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway", "maxSkew": int64(1)},
	spec{"topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway", "maxSkew": int64(2)},
}

// rotates gives the Secret a certificate that memcached serves after a restart only, and plays until each does.
func rotates(w *World) {
	w.log("user", "rotates the certificate")
	w.Certificate = "fedcba9876543210"
	until("the new certificate", 200, func(w *World) { w.Round() }, func(w *World) bool {
		for _, p := range w.Procs {
			if !p.Serves || p.Certificate != w.Certificate {
				return false
			}
		}
		return true
	})(w)
}

// backsUp creates a backup of all shards.
func backsUp(w *World) {
	w.log("user", "creates a backup")
	w.create(&v1beta1.MemcachedBackup{
		ObjectMeta: metav1.ObjectMeta{Name: "today", Namespace: w.Server.Namespace},
		Spec: v1beta1.MemcachedBackupSpec{
			MemcachedRef: v1beta1.MemcachedReference{Name: "cache"},
			Store:        v1beta1.SnapshotStore{PersistentVolumeClaim: &v1beta1.PersistentVolumeClaimStore{ClaimName: "backups"}},
		},
	})
}

func deletes(w *World) { w.remove("cache") }

// abandons deletes the Memcached without its shards.
func abandons(w *World) { w.orphan(simtest.Get[*v1beta1.Memcached](w.Server, "cache")) }

func makes(s spec) func(*World) {
	return func(w *World) { w.must(w.Make("cache", s), "the Memcached is rejected") }
}

func deletesPod(shard string) func(*World) {
	return func(w *World) {
		for _, pod := range simtest.All[*corev1.Pod](w.Server) {
			if simtest.ShardOf(pod) == shard && pod.DeletionTimestamp == nil {
				w.deletePod(pod)
				return
			}
		}
		w.must(false, "there is no pod of %s to delete", shard)
	}
}

func orphans(shard string) func(*World) {
	return func(w *World) { w.orphan(simtest.Get[*appsv1.ReplicaSet](w.Server, shard)) }
}

// startsBehind restarts the operator, which reads one kind as it was after that many changes
// from an API server that lags behind, before it receives the others.
func (w *World) startsBehind(k simtest.Kind, changes int) {
	w.log("fault", "the operator starts and reads %s as it was after %d changes", k, changes)
	w.start()
	seen := map[simtest.Kind]int{}
	for _, other := range simtest.Kinds {
		seen[other] = len(w.Server.Past[other])
	}
	seen[k] = changes
	w.operator.cache = newCache(w.Server, seen)
}

// readsThePast restarts the operator, which reads the first version of the Memcached.
func readsThePast(w *World) {
	w.startsBehind(simtest.KindMemcached, 1)
	w.operator.reconcile("cache")
}

// marks notes how far the ReplicaSets are.
func marks(w *World) { w.marked = len(w.Server.Past[simtest.KindReplicaSet]) }

// readsMarkedSets restarts the operator, which reads the ReplicaSets as they were when that was noted.
func readsMarkedSets(w *World) {
	w.startsBehind(simtest.KindReplicaSet, w.marked)
	w.operator.reconcile("cache")
	w.operator.reconcile("cache")
}

// crashes has a shard's memcached end, with its items.
func crashes(shard string) func(*World) {
	return func(w *World) {
		crashed := false
		for _, p := range w.Procs {
			if p.Shard == shard && p.Runs {
				w.crashOf(p)
				crashed = true
			}
		}
		w.must(crashed, "no memcached of %s runs", shard)
	}
}

// takes deletes an object and creates a foreign one in its place.
func takes(k simtest.Kind, name string) func(*World) {
	return func(w *World) {
		w.delete(w.Server.Now[k][name])
		w.take(k, name)
	}
}

func frees(k simtest.Kind, name string) func(*World) {
	return func(w *World) {
		w.log("user", "deletes the foreign %s %s", k, name)
		w.delete(w.Server.Now[k][name])
	}
}

// play has a scenario happen, after a rest from which on writes are counted, and returns the world in steady state again.
func (s scenario) play(w *World, fault func(*World)) *World {
	w.Server.Mutates = s.policy
	if s.begins != nil {
		makes(s.begins)(w)
		w.Rest()
		w.must(strings.Contains(w.End(), "Degraded=False"), "it begins as\n%s", w.End())
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

// PlayScenario plays a scenario in a new cluster, without a fault, and returns its final state.
func PlayScenario(name string, cluster *simtest.Cluster) (string, error) {
	s, ok := scenarios[name]
	if !ok {
		return "", fmt.Errorf("there is no scenario %q", name)
	}
	w := s.play(newWorldOf(cluster, 1), nil)
	if w.broken != "" {
		return "", fmt.Errorf("%s\n%s", w.broken, w.tail(80))
	}
	return w.End() + "\n" + w.Starts(), nil
}
