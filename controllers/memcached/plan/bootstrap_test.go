package plan_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/plan"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/plan/plantest"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
)

func fromNightly(s *v1alpha1.MemcachedSpec) {
	s.Bootstrap = &v1alpha1.Bootstrap{BackupRef: &v1alpha1.BackupReference{Name: "nightly"}, DeadlineSeconds: ptr.To[int32](60)}
}

// withoutShards removes all shards, as of a new Memcached.
func withoutShards(obs *plan.Observation) {
	for ordinal := range obs.Shards {
		name := resources.ShardName("cache", ordinal)
		delete(obs.Objects, resources.Key{Kind: resources.KindReplicaSet, Name: name})
		delete(obs.Pods, name)
	}
	obs.Memcached.Status.Shards = nil
}

func TestOnlyNewMemcachedIsFilled(t *testing.T) {
	for name, c := range map[string]struct {
		change       func(*plan.Observation)
		starts       bool
		createsShard bool
	}{
		"it is new":           {func(*plan.Observation) {}, true, false},
		"it is paused":        {func(obs *plan.Observation) { obs.Memcached.Spec.Paused = true }, false, false},
		"its spec is wrong":   {func(obs *plan.Observation) { obs.Memcached.Spec.Version = "1.5.0" }, false, false},
		"it has size 0":       {func(obs *plan.Observation) { *obs.Memcached.Spec.Size = 0 }, false, false},
		"it isn't filled":     {func(obs *plan.Observation) { obs.Memcached.Spec.Bootstrap = nil }, false, true},
		"it is being deleted": {func(obs *plan.Observation) { obs.Memcached.DeletionTimestamp = &metav1.Time{Time: obs.Now} }, false, false},
		"it had shards":       {func(obs *plan.Observation) { obs.Memcached.Status.Shards = []v1alpha1.ShardStatus{{Name: "cache-0"}} }, false, true},
		"it has a shard": {func(obs *plan.Observation) {
			plantest.AddObject(obs, resources.Key{Kind: resources.KindReplicaSet, Name: "cache-0"}, "ours")
		}, false, true},
		"it adopts a shard": {func(obs *plan.Observation) {
			plantest.AddObject(obs, resources.Key{Kind: resources.KindReplicaSet, Name: "cache-0"}, "orphaned")
		}, false, true},
		"another owner has a shard's name": {func(obs *plan.Observation) {
			plantest.AddObject(obs, resources.Key{Kind: resources.KindReplicaSet, Name: "cache-0"}, "foreign")
		}, true, false},
		"a former Memcached's shards are there": {func(obs *plan.Observation) {
			plantest.AddObject(obs, resources.Key{Kind: resources.KindReplicaSet, Name: "cache-0"}, "predecessors")
		}, true, false},
		"it was filled before": {func(obs *plan.Observation) {
			obs.Memcached.Status.Bootstrap = &v1alpha1.BootstrapStatus{Phase: v1alpha1.TransferComplete}
		}, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			obs := plantest.Running(t, 2, fromNightly)
			withoutShards(obs)
			c.change(obs)
			p := plantest.Plan(obs)
			if starts := obs.Memcached.Status.Bootstrap == nil && p.Bootstrap.Status.IsRunning(); starts != c.starts {
				t.Errorf("the bootstrap is %+v", p.Bootstrap.Status)
			}
			if c.starts && !p.Bootstrap.Status.Deadline.Time.Equal(obs.Now.Add(time.Minute)) {
				t.Errorf("its deadline is %s", p.Bootstrap.Status.Deadline)
			}
			creates := strings.Contains(strings.Join(plantest.Describe(p.Actions), "\n"), "ReplicaSet cache-1")
			if creates != c.createsShard {
				t.Errorf("creates shards: %t: %q", creates, plantest.Describe(p.Actions))
			}
		})
	}
}

func TestMemcachedThatRunsIsNotFilled(t *testing.T) {
	obs := plantest.Running(t, 2, fromNightly)
	if p := plantest.Plan(obs); p.Bootstrap.Status != nil || len(plantest.Describe(p.Actions)) > 0 {
		t.Errorf("bootstrap %+v, %q", p.Bootstrap.Status, plantest.Describe(p.Actions))
	}
	obs.Memcached.Status.Shards = nil // it was restored from a backup of etcd, or its ReplicaSets are adopted
	if p := plantest.Plan(obs); p.Bootstrap.Status != nil {
		t.Errorf("without a status, its bootstrap is %+v", p.Bootstrap.Status)
	}
}

// filling returns an observation of a Memcached that is being filled: memcached runs in each shard, and isn't ready.
func filling(t *testing.T) *plan.Observation {
	obs := plantest.Running(t, 2, fromNightly)
	deadline := metav1.NewTime(obs.Now.Add(time.Minute))
	obs.Memcached.Status.Bootstrap = &v1alpha1.BootstrapStatus{RestoreName: "cache-bootstrap", Phase: v1alpha1.TransferRunning, Deadline: deadline}
	for name, pods := range obs.Pods {
		pods[0].Status.Conditions = nil
		pods[0].Annotations[annotations.HoldUntil] = deadline.UTC().Format(time.RFC3339)
		obs.Agents[pods[0].Name] = agentwire.Status{Version: "1.6.45", Arguments: obs.UpdateRevision.Arguments, Start: agentwire.Start{Result: agentwire.StartCold}}
		delete(obs.Cached, resources.Key{Kind: resources.KindReplicaSet, Name: name})
	}
	return obs
}

func TestBootstrapFollowsItsRestore(t *testing.T) {
	restore := func(obs *plan.Observation, phase v1alpha1.TransferPhase, owner plan.Ownership) *v1alpha1.MemcachedRestore {
		r := &v1alpha1.MemcachedRestore{ObjectMeta: metav1.ObjectMeta{Name: "cache-bootstrap"}}
		r.Status.Phase = phase
		obs.Restores["cache-bootstrap"] = plan.Object{APIObject: r, Owner: owner}
		return r
	}
	const byDeadline = "; the shards become ready when the restore is done, or at 12:01 UTC"
	for name, c := range map[string]struct {
		change  func(*plan.Observation)
		phase   v1alpha1.TransferPhase
		message string
		creates bool
	}{
		"all shards run":                       {func(*plan.Observation) {}, v1alpha1.TransferRunning, "starting the restore" + byDeadline, true},
		"all shards run, and it is paused":     {func(obs *plan.Observation) { obs.Memcached.Spec.Paused = true }, v1alpha1.TransferRunning, "starting the restore" + byDeadline, false},
		"a shard has no pod":                   {func(obs *plan.Observation) { delete(obs.Pods, "cache-1") }, v1alpha1.TransferRunning, "waiting for all shards to run before filling them: cache-1" + byDeadline, false},
		"memcached of a shard starts":          {func(obs *plan.Observation) { obs.Pods["cache-1"][0].Status.ContainerStatuses[0].State.Running = nil }, v1alpha1.TransferRunning, "waiting for all shards to run before filling them: cache-1" + byDeadline, false},
		"memcached of a shard hasn't answered": {func(obs *plan.Observation) { clear(obs.Agents); obs.Memcached.Status.Shards[0].Start = "" }, v1alpha1.TransferRunning, "waiting for all shards to run before filling them: cache-0" + byDeadline, false},
		"a pod of a shard terminates":          {func(obs *plan.Observation) { obs.Pods["cache-1"][0].DeletionTimestamp = &metav1.Time{Time: obs.Now} }, v1alpha1.TransferRunning, "waiting for all shards to run before filling them: cache-1" + byDeadline, false},
		"a former pod would receive items":     {func(obs *plan.Observation) { obs.UnownedPods = map[string]bool{"cache-0": true} }, v1alpha1.TransferRunning, "waiting for all shards to run before filling them: cache-0" + byDeadline, false},
		"the restore hasn't copied":            {func(obs *plan.Observation) { restore(obs, "", plan.Ours) }, v1alpha1.TransferRunning, "restored no items yet" + byDeadline, false},
		"the restore copies": {func(obs *plan.Observation) {
			restore(obs, v1alpha1.TransferRunning, plan.Ours).Status.Progress = &v1alpha1.TransferProgress{TotalItems: 2000, Percent: 43}
		},
			v1alpha1.TransferRunning, "restored 43% of 2,000 items" + byDeadline, false},
		"the restore is complete": {func(obs *plan.Observation) {
			s := &restore(obs, v1alpha1.TransferComplete, plan.Ours).Status
			s.Restored, s.Expired, s.Rejected = 2000, 7, 3
		}, v1alpha1.TransferComplete, "the shards started with 2,000 restored items, without 7 that had expired, without 3 that memcached rejected", false},
		"the restore failed": {func(obs *plan.Observation) {
			restore(obs, v1alpha1.TransferFailed, plan.Ours).Status.Message = "no such bucket"
		},
			v1alpha1.TransferFailed, "the shards started with no restored items: MemcachedRestore cache-bootstrap failed: no such bucket", false},
		"a user has a restore of its name": {func(obs *plan.Observation) { restore(obs, v1alpha1.TransferComplete, plan.Foreign) }, v1alpha1.TransferFailed,
			"the shards started empty: MemcachedRestore cache-bootstrap exists and isn't managed by this Memcached; to fill the shards while they serve, create a MemcachedRestore with another name", false},
		"a former Memcached's restore is there": {func(obs *plan.Observation) { restore(obs, v1alpha1.TransferComplete, plan.Predecessors) }, v1alpha1.TransferRunning,
			"waiting for garbage collection of MemcachedRestore cache-bootstrap of a deleted Memcached with the same name" + byDeadline, false},
		"spec.bootstrap was removed": {func(obs *plan.Observation) { obs.Memcached.Spec.Bootstrap = nil }, v1alpha1.TransferFailed,
			"the shards started empty: spec.bootstrap was removed, and MemcachedRestore cache-bootstrap doesn't exist", false},
		"spec.bootstrap was removed during the restore": {func(obs *plan.Observation) { obs.Memcached.Spec.Bootstrap = nil; restore(obs, "", plan.Ours) }, v1alpha1.TransferRunning, "restored no items yet" + byDeadline, false},
		"the deadline comes before the restore": {func(obs *plan.Observation) { obs.Now = obs.Now.Add(time.Minute) }, v1alpha1.TransferFailed,
			"the shards weren't filled before the deadline and became ready: they are empty, because the restore did not start", false},
		"the deadline comes before all shards run": {func(obs *plan.Observation) { obs.Now = obs.Now.Add(time.Minute); delete(obs.Pods, "cache-1") }, v1alpha1.TransferFailed,
			"the shards weren't filled before the deadline and became ready: they are empty, because the restore waited for cache-1", false},
		"the deadline comes before the restore is complete": {func(obs *plan.Observation) {
			obs.Now = obs.Now.Add(time.Minute)
			restore(obs, v1alpha1.TransferRunning, plan.Ours)
		}, v1alpha1.TransferFailed, "the shards weren't filled before the deadline and became ready: MemcachedRestore cache-bootstrap, which continues, had restored no items yet", false},
		"the restore is complete at the deadline": {func(obs *plan.Observation) {
			obs.Now = obs.Now.Add(time.Minute)
			restore(obs, v1alpha1.TransferComplete, plan.Ours)
		}, v1alpha1.TransferComplete, "the shards started with no restored items", false},
	} {
		t.Run(name, func(t *testing.T) {
			obs := filling(t)
			c.change(obs)
			p := plantest.Plan(obs)
			if b := p.Bootstrap.Status; b.Phase != c.phase || b.Message != c.message {
				t.Errorf("%s: %s, want %s: %s", b.Phase, b.Message, c.phase, c.message)
			}
			if creates := len(p.Actions.Create) > 0; creates != c.creates {
				t.Errorf("creates the restore: %t", creates)
			}
			if until := p.Bootstrap.HoldUntil; (until == "2026-11-18T12:01:00Z") != (c.phase == v1alpha1.TransferRunning) {
				t.Errorf("new pods delay their readiness until %q", until)
			}
			if c.phase == v1alpha1.TransferRunning && (p.Actions.RequeueAfter == 0 || p.Actions.RequeueAfter > time.Minute) {
				t.Errorf("again in %s, after the deadline", p.Actions.RequeueAfter)
			}
		})
	}
}

func TestBootstrapRestoreHasNoRateLimit(t *testing.T) {
	obs := filling(t)
	b := obs.Memcached.Spec.Bootstrap
	b.MaxAgeSeconds, b.MaxTTLSeconds = ptr.To[int32](7), ptr.To[int32](8)
	restore := plantest.Plan(obs).Actions.Create[0].(*v1alpha1.MemcachedRestore)
	want := v1alpha1.MemcachedRestoreSpec{MemcachedRef: v1alpha1.MemcachedReference{Name: "cache"}, BackupRef: &v1alpha1.BackupReference{Name: "nightly"},
		MaxAgeSeconds: ptr.To[int32](7), MaxTTLSeconds: ptr.To[int32](8), DeadlineSeconds: ptr.To[int32](60),
		RateLimit: &v1alpha1.RateLimit{ItemsPerSecond: ptr.To[int32](0), MebibytesPerSecond: ptr.To[int32](0)}}
	if diff := cmp.Diff(want, restore.Spec); diff != "" || restore.Name != "cache-bootstrap" {
		t.Errorf("%s (-want +got):\n%s", restore.Name, diff)
	}
}

// The kubelet can miss a change of an annotation until the pod changes again.
func TestReadinessIsReleasedAgainForPodsThatDontBecomeReady(t *testing.T) {
	now := time.Date(2026, 11, 21, 15, 0, 0, 0, time.UTC)
	at := func(d time.Duration) string { return now.Add(d).Format(time.RFC3339) }
	deadline := metav1.NewTime(now.Add(time.Minute))
	keep := "keep"
	for name, c := range map[string]struct {
		value string
		ready bool
		phase v1alpha1.TransferPhase
		late  time.Duration
		want  string
	}{
		"while the restore is running": {at(time.Minute), false, v1alpha1.TransferRunning, 0, keep},
		"when the restore is done":     {at(time.Minute), false, v1alpha1.TransferComplete, 0, at(0)},
		"two seconds later":            {at(-2 * time.Second), false, v1alpha1.TransferComplete, 0, keep},
		"after five seconds":           {at(-5 * time.Second), false, v1alpha1.TransferComplete, 0, at(0)},
		"when the pod is ready":        {at(-time.Second), true, v1alpha1.TransferFailed, 0, ""},
		"at the deadline":              {at(time.Minute), false, v1alpha1.TransferFailed, time.Minute, ""},
		"a value that isn't a time":    {"later", false, v1alpha1.TransferComplete, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			obs := plantest.Observation(1, "valid", [2]string{"ours", "absent"}, [2]string{"ours", "absent"}, [2]string{"starting", "none"})
			obs.Now = now.Add(c.late)
			obs.Memcached.Spec.Bootstrap = &v1alpha1.Bootstrap{BackupRef: &v1alpha1.BackupReference{Name: "nightly"}}
			pod := obs.Pods["cache-0"][0]
			pod.Annotations = map[string]string{annotations.HoldUntil: c.value}
			if c.ready {
				pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
			}
			obs.Memcached.Status.Bootstrap = &v1alpha1.BootstrapStatus{RestoreName: "cache-bootstrap", Phase: c.phase, Deadline: deadline}
			p := plantest.Plan(obs)
			got := keep
			for _, patch := range p.Actions.Patch {
				value := patch.Body["metadata"].(map[string]any)["annotations"].(map[string]any)[annotations.HoldUntil]
				got, _ = value.(string)
			}
			if got != c.want {
				t.Errorf("annotation %q, want %q", got, c.want)
			}
			if got == keep && p.Actions.RequeueAfter == 0 {
				t.Error("no requeue")
			}
		})
	}
}

func TestBootstrapIgnoresTheResultOfForeignRestore(t *testing.T) {
	for _, phase := range []v1alpha1.TransferPhase{"", v1alpha1.TransferRunning, v1alpha1.TransferComplete, v1alpha1.TransferFailed} {
		for owner, want := range map[plan.Ownership]v1alpha1.TransferPhase{plan.Orphaned: v1alpha1.TransferFailed, plan.Foreign: v1alpha1.TransferFailed, plan.Predecessors: v1alpha1.TransferRunning} {
			obs := plantest.Observation(1, "valid", [2]string{"ours", "absent"}, [2]string{"ours", "absent"}, [2]string{"none", "none"})
			m := obs.Memcached
			m.Spec.Bootstrap = &v1alpha1.Bootstrap{}
			m.Status.Bootstrap = &v1alpha1.BootstrapStatus{RestoreName: "cache-bootstrap", Phase: v1alpha1.TransferRunning, Deadline: metav1.NewTime(obs.Now.Add(time.Minute))}
			restore := &v1alpha1.MemcachedRestore{ObjectMeta: metav1.ObjectMeta{Name: "cache-bootstrap"}}
			restore.Status.Phase, restore.Status.Restored = phase, 1000
			obs.Restores = map[string]plan.Object{"cache-bootstrap": {APIObject: restore, Owner: owner}}
			p := plantest.Plan(obs)
			if b := p.Bootstrap.Status; b.Phase != want || strings.Contains(b.Message, "1,000") || len(p.Actions.Create) > 0 {
				t.Errorf("phase %q, owner %d: bootstrap %+v, %d objects to create", phase, owner, b, len(p.Actions.Create))
			}
		}
	}
}
