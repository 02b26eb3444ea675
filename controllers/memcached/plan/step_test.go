package plan_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	"k8s.io/utils/ptr"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/plan"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/plan/plantest"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/preflight"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/rollout"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/shard"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/shard/shardtest"
	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
)

func TestFailureIsRecordedUntilTheUpdateRevisionChanges(t *testing.T) {
	old, update := shardtest.Revision(t), shardtest.Revision(t, shardtest.Version("1.6.38"))
	f := plantest.NewShard(old, update, update)
	p := f.Plan(rollout.Decision{Shard: "cache-0", Step: rollout.StepRecordFailure, Message: "memcached crashed"})
	recorded := plan.DesiredShards(f.Observation, p.Shards, p.Decision, "", plan.Scaling{})[0].Annotations[annotations.Failed]
	want := shard.FailureRecord{Revision: update.Hash(), Message: "memcached crashed"}
	if got := shard.DecodeRecord[shard.FailureRecord](map[string]string{"": recorded}, ""); got == nil || *got != want {
		t.Fatalf("record %q", recorded)
	}

	lastUpdate := shard.EncodeRecord(shard.UpdateRecord{Revision: old.Hash(), Method: rollout.Replace})
	f.Set.Annotations = map[string]string{annotations.Failed: recorded, annotations.Update: lastUpdate}
	p = f.Plan(rollout.Decision{Shard: "cache-1", Gate: rollout.GateUpdateFailed})
	desired := plan.DesiredShards(f.Observation, p.Shards, p.Decision, "", plan.Scaling{})[0].Annotations
	if desired[annotations.Failed] != recorded || desired[annotations.Update] != lastUpdate {
		t.Errorf("the next plan has the annotations %q", desired)
	}

	f.UpdateRevision = shardtest.Revision(t, shardtest.Version("1.6.44"))
	p = f.Plan(rollout.Decision{})
	if text, ok := plan.DesiredShards(f.Observation, p.Shards, p.Decision, "", plan.Scaling{})[0].Annotations[annotations.Failed]; ok {
		t.Errorf("for another update revision the record is %q", text)
	}
}

func TestShardThatIsAddedDuringAnUpdateIsLikeShard0(t *testing.T) {
	old, update := shardtest.Revision(t), shardtest.Revision(t, shardtest.Version("1.6.38"))
	f := plantest.NewShard(old, old, update)
	p := f.Plan(rollout.Decision{})
	if got := plan.DesiredShards(f.Observation, p.Shards, p.Decision, "", plan.Scaling{})[1]; got.Revision.Hash() != old.Hash() || got.Surge {
		t.Errorf("the new shard is %+v, want shard 0's %s", got, old)
	}
	p.Shards = nil
	if got := plan.DesiredShards(f.Observation, p.Shards, p.Decision, "", plan.Scaling{})[1]; got.Revision.Hash() != update.Hash() {
		t.Errorf("without shards the new one is %s, want %s", got.Revision, update)
	}
}

// Otherwise the ReplicaSet creates another broken pod.
func TestBrokenPodIsDeletedOnceItsTemplateIsUpdated(t *testing.T) {
	old, update := shardtest.Revision(t), shardtest.Revision(t, shardtest.Version("1.6.38"))
	for name, c := range map[string]struct {
		template resources.PodRevision
		want     int
	}{
		"the template is the old revision":    {old, 0},
		"the template is the update revision": {update, 1},
	} {
		t.Run(name, func(t *testing.T) {
			f := plantest.NewShard(c.template, old, update)
			p := f.Plan(rollout.Decision{Shard: "cache-0", Step: rollout.StepRecreate})
			if a := plan.PlanStep(f.Observation, p.Shards, p.Decision, preflight.Result{}); len(a.Delete) != c.want {
				t.Errorf("%d deletes, want %d", len(a.Delete), c.want)
			}
			if got := plan.DesiredShards(f.Observation, p.Shards, p.Decision, "", plan.Scaling{})[0].Revision.Hash(); got != update.Hash() {
				t.Errorf("desired template %s, want %s", got, update.Hash())
			}
		})
	}
}

func TestUpdateIsRepeatedThatTheKubeletMayHaveMissed(t *testing.T) {
	old, update := shardtest.Revision(t), shardtest.Revision(t, shardtest.Version("1.6.38"))
	f := plantest.NewShard(old, update, update)
	f.Record(shard.UpdateRecord{Revision: update.Hash(), From: old.Hash(), At: f.Now.Add(-6 * time.Second), Method: rollout.Recreate, Container: shardtest.RunningContainer})
	p := f.Plan(rollout.Decision{Shard: "cache-0", Step: rollout.StepAwait})
	if a := plan.PlanRepeats(f.Now, p.Shards); len(a.Patch) != 1 || !strings.Contains(string(a.Patch[0].Bytes()), `"repeated\":`) {
		t.Fatalf("the patches are %+v", a.Patch)
	}
}

// The ReplicaSet controller's own back-off grows to minutes: what ends a rejection must not wait for it.
func TestReplicaSetTriesAgainToCreateItsPod(t *testing.T) {
	obs := plantest.Running(t, 2)
	set := obs.ReplicaSet("cache-1")
	delete(obs.Pods, "cache-1")
	retried := func() string {
		plantest.Read(obs)
		p := plantest.Plan(obs)
		for _, a := range p.Actions.Apply {
			if a.Key.Name == "cache-1" && a.Key.Kind == resources.KindReplicaSet {
				return a.Apply.(*appsv1ac.ReplicaSetApplyConfiguration).Annotations[annotations.CreationRetried]
			}
		}
		if p.Actions.RequeueAfter == 0 && len(set.Status.Conditions) > 0 {
			t.Error("nothing repeats it")
		}
		return ""
	}
	failed := func(reason string) []appsv1.ReplicaSetCondition {
		return []appsv1.ReplicaSetCondition{{Type: appsv1.ReplicaSetReplicaFailure, Status: corev1.ConditionTrue, Reason: reason, Message: "exceeded quota"}}
	}
	if at := retried(); at != "" {
		t.Errorf("before a rejection: %s", at)
	}
	set.Status.Conditions = failed("FailedCreate")
	first := retried()
	if first == "" {
		t.Fatal("it isn't retried")
	}
	shardtest.Annotate(set, annotations.CreationRetried, first)
	obs.Now = obs.Now.Add(29 * time.Second)
	if at := retried(); at != "" && at != first {
		t.Errorf("it is retried again at %s", at)
	}
	obs.Now = obs.Now.Add(time.Second)
	if at := retried(); at == "" || at == first {
		t.Errorf("half a minute later: %q", at)
	}
	obs.Now = obs.Now.Add(-time.Hour) // another clock
	if at := retried(); at == "" || at == first {
		t.Errorf("the annotation is of the future: %q", at)
	}
}

func TestTemplateIsPromotedToTheRevisionOfItsPod(t *testing.T) {
	old, updated, update := shardtest.Revision(t), shardtest.Revision(t, shardtest.Version("1.6.44")), shardtest.Revision(t, shardtest.Version("1.6.38"))
	f := plantest.NewShard(old, updated, update)
	p := f.Plan(rollout.Decision{Shard: "cache-0", Step: rollout.StepPromoteTemplate})
	if got := plan.DesiredShards(f.Observation, p.Shards, p.Decision, "", plan.Scaling{})[0]; got.Revision.Hash() != updated.Hash() || got.Surge {
		t.Errorf("desired %+v, want the pod's %s", got, updated)
	}
	p.Decision.Step = rollout.StepAwait
	if got := plan.DesiredShards(f.Observation, p.Shards, p.Decision, "", plan.Scaling{})[0]; got.Revision.Hash() != old.Hash() {
		t.Errorf("before that the template is %s, want %s", got.Revision, old)
	}
}

func TestHitRatioGateWaitsForTheShardThatWasUpdatedLast(t *testing.T) {
	gate := v1beta1.HitRatioGate{Mode: v1beta1.HitRatioGateContinue, Percent: ptr.To[int32](50), MinRequests: ptr.To[int32](100), TimeoutSeconds: ptr.To[int32](60)}
	updated := func(revision string, ago, gets, hits int64) *shard.State {
		return &shard.State{Agent: &agentwire.Status{RecentGets: 200, RecentHits: 50}, Observation: shard.Observation{Name: "cache-0",
			Record: &shard.UpdateRecord{Revision: revision, At: time.Unix(1000-ago, 0), Gets: gets, Hits: hits}}}
	}
	recovery := func(waited time.Duration) *rollout.Recovery {
		return &rollout.Recovery{Shard: "cache-0", Before: 0.8, Now: 0.25, Requests: 200, Share: 0.5, MinRequests: 100, Waited: waited, Timeout: time.Minute, Continue: true}
	}
	for _, c := range []struct {
		name string
		gate v1beta1.HitRatioGate
		last *shard.State
		want *rollout.Recovery
	}{
		{"no gate", v1beta1.HitRatioGate{}, updated("update", 1, 1000, 800), nil},
		{"no shard was updated", gate, nil, nil},
		{"just updated", gate, updated("update", 1, 1000, 800), recovery(time.Second)},
		{"just enough requests before", gate, updated("update", 1, 100, 80), recovery(time.Second)},
		{"too few requests before", gate, updated("update", 1, 99, 80), nil},
		{"updated long ago", gate, updated("update", 60, 1000, 800), recovery(time.Minute)},
		{"just updated to another revision", gate, updated("superseded", 59, 1000, 800), recovery(59 * time.Second)},
		{"updated long ago to another revision", gate, updated("superseded", 60, 1000, 800), nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, plan.HitRatioRecovery(c.gate, c.last, "update", time.Unix(1000, 0))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
