package status

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/plan"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/plan/plantest"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/rollout"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/shard"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/shard/shardtest"
)

func TestUpdateThatRequiresInterventionIsDegraded(t *testing.T) {
	for name, c := range map[string]struct {
		decision rollout.Decision
		reason   string
		message  string
	}{
		"the update continues":      {rollout.Decision{Shard: "cache-0", Step: rollout.StepAwait}, "", ""},
		"a gate blocks for a while": {rollout.Decision{Shard: "cache-0", Gate: rollout.GateOutsideMaintenanceWindow}, "", ""},
		"the hit ratio may recover": {rollout.Decision{Shard: "cache-0", Gate: rollout.GateHitRatioNotRecovered}, "", ""},
		"the update failed": {rollout.Decision{Shard: "cache-0", Gate: rollout.GateUpdateFailed, Message: "memcached crashed", NeedsIntervention: true, Change: rollout.Change{Method: rollout.Restart}},
			v1beta1.ReasonUpdateFailed, "update failed on shard cache-0, which was rolled back; no other shard was changed: memcached crashed; " +
				"revert the spec, or retry: kubectl annotate memcached cache cache.memcached-operator.io/retry=1 --overwrite"},
		"the update lost the items": {rollout.Decision{Shard: "cache-0", Gate: rollout.GateUpdateFailed, Message: "memcached started empty", NeedsIntervention: true},
			v1beta1.ReasonUpdateFailed, "update failed on shard cache-0, which lost its items; no other shard was changed: memcached started empty; " +
				"revert the spec, or retry: kubectl annotate memcached cache cache.memcached-operator.io/retry=1 --overwrite"},
		"the update path is not allowed": {rollout.Decision{Shard: "cache-0", Gate: rollout.GateUpdatePathNotAllowed, Message: "use Allow", NeedsIntervention: true},
			v1beta1.ReasonUpdatePathNotAllowed, "use Allow"},
		"the preflight check failed": {rollout.Decision{Shard: "cache-0", Gate: rollout.GateImageNotVerified, Message: "no such image", NeedsIntervention: true},
			v1beta1.ReasonImageUnusable, "no such image; fix the image, or revert to docker.io/library/memcached:1.6.45"},
		"no node accepts the second pod": {rollout.Decision{Shard: "cache-0", Step: rollout.StepAwait, Message: "no node", NeedsIntervention: true},
			v1beta1.ReasonUnschedulable, "shard cache-0 can't be replaced because the new pod isn't running: no node; the old pod keeps serving; free capacity or revert the spec"},
		"the hit ratio did not recover": {rollout.Decision{Shard: "cache-0", Gate: rollout.GateHitRatioNotRecovered, Message: "20%", NeedsIntervention: true},
			v1beta1.ReasonHitRatioNotRecovered, "20%; the other shards wait until it does, or until you change spec.updateStrategy.hitRatioGate"},
	} {
		t.Run(name, func(t *testing.T) {
			f := plantest.NewShard(shardtest.Revision(t), shardtest.Revision(t), shardtest.Revision(t, shardtest.Version("1.6.38")))
			reason, message := "", ""
			if problem := firstProblem(f.Observation, f.Plan(c.decision), plan.Result{}, v1beta1.MemcachedStatus{}); problem != nil {
				reason, message = problem.Reason, problem.Message
			}
			if reason != c.reason || message != c.message {
				t.Errorf("%s: %q, want %s: %q", reason, message, c.reason, c.message)
			}
		})
	}
}

// The first shard may already have the image that another node can't use.
func TestImageToRevertToIsThatOfTheShardThatIsNotUpdated(t *testing.T) {
	update, former := shardtest.Revision(t, shardtest.Version("1.6.38")), shardtest.Revision(t)
	p := plan.Plan{Decision: rollout.Decision{Shard: "cache-1", Gate: rollout.GateImageNotVerified, Message: "no such image", NeedsIntervention: true}}
	for ordinal, template := range []resources.PodRevision{update, former} {
		p.Shards = append(p.Shards, shard.State{Observation: shard.Observation{Name: resources.ShardName("cache", ordinal), Template: template}})
	}
	if got, want := blockedProblem(&v1beta1.Memcached{}, p).Message, "no such image; fix the image, or revert to docker.io/library/memcached:1.6.45"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	p.Preflight.Problem = &shard.Problem{Reason: v1beta1.ReasonImageCannotBePulled}
	if got := blockedProblem(&v1beta1.Memcached{}, p).Reason; got != v1beta1.ReasonImageCannotBePulled {
		t.Errorf("the reason of the preflight check is %s", got)
	}
}

func condition(status metav1.ConditionStatus, reason string) metav1.Condition {
	return metav1.Condition{Status: status, Reason: reason, Message: "message of " + reason}
}

var (
	isAvailable    = condition(metav1.ConditionTrue, v1beta1.ReasonAllShardsReady)
	notAvailable   = condition(metav1.ConditionFalse, v1beta1.ReasonShardsNotReady)
	hasNoShards    = condition(metav1.ConditionFalse, v1beta1.ReasonNoShards)
	isProgressing  = condition(metav1.ConditionTrue, v1beta1.ReasonUpdatingShard)
	notProgressing = condition(metav1.ConditionFalse, v1beta1.ReasonUpToDate)
	isDegraded     = condition(metav1.ConditionTrue, v1beta1.ReasonUpdateFailed)
	notDegraded    = condition(metav1.ConditionFalse, v1beta1.ReasonAsExpected)
)

func TestReadyHasTheReasonOfTheConditionThatDecides(t *testing.T) {
	for name, c := range map[string]struct {
		available, progressing, degraded metav1.Condition
		status                           metav1.ConditionStatus
		decides                          metav1.Condition
		of                               v1beta1.MemcachedStatus
	}{
		"all shards ready and up to date": {isAvailable, notProgressing, notDegraded, metav1.ConditionTrue, isAvailable, v1beta1.MemcachedStatus{}},
		"an update waits at a gate":       {isAvailable, notProgressing, notDegraded, metav1.ConditionFalse, notProgressing, v1beta1.MemcachedStatus{Update: &v1beta1.UpdateStatus{}}},
		"paused before it is filled": {isAvailable, notProgressing, notDegraded, metav1.ConditionFalse, condition(metav1.ConditionFalse, v1beta1.ReasonBootstrapping),
			v1beta1.MemcachedStatus{Bootstrap: &v1beta1.BootstrapStatus{Phase: v1beta1.TransferRunning, Message: "message of Bootstrapping"}}},
		"shards not ready":                 {notAvailable, notProgressing, notDegraded, metav1.ConditionFalse, notAvailable, v1beta1.MemcachedStatus{}},
		"progressing":                      {isAvailable, isProgressing, notDegraded, metav1.ConditionFalse, isProgressing, v1beta1.MemcachedStatus{}},
		"progressing and shards not ready": {notAvailable, isProgressing, notDegraded, metav1.ConditionFalse, isProgressing, v1beta1.MemcachedStatus{}},
		"degraded":                         {isAvailable, notProgressing, isDegraded, metav1.ConditionFalse, isDegraded, v1beta1.MemcachedStatus{}},
		"degraded and progressing":         {notAvailable, isProgressing, isDegraded, metav1.ConditionFalse, isDegraded, v1beta1.MemcachedStatus{}},
		"no shards":                        {hasNoShards, notProgressing, notDegraded, metav1.ConditionTrue, hasNoShards, v1beta1.MemcachedStatus{}},
		"deleting the last shards":         {hasNoShards, isProgressing, notDegraded, metav1.ConditionFalse, isProgressing, v1beta1.MemcachedStatus{}},
		"no shards and degraded":           {hasNoShards, notProgressing, isDegraded, metav1.ConditionFalse, isDegraded, v1beta1.MemcachedStatus{}},
	} {
		want := metav1.Condition{Type: v1beta1.ConditionReady, Status: c.status, Reason: c.decides.Reason, Message: c.decides.Message}
		if got := readyCondition(c.available, c.progressing, c.degraded, c.of); got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
}

func TestPhaseSummarizesTheConditions(t *testing.T) {
	paused := &v1beta1.Memcached{Spec: v1beta1.MemcachedSpec{Paused: true}}
	deleted := &v1beta1.Memcached{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &metav1.Time{}}}
	for name, c := range map[string]struct {
		memcached                        *v1beta1.Memcached
		available, progressing, degraded metav1.Condition
		want                             v1beta1.Phase
	}{
		"up to date":                       {&v1beta1.Memcached{}, isAvailable, notProgressing, notDegraded, v1beta1.PhaseRunning},
		"no shards":                        {&v1beta1.Memcached{}, hasNoShards, notProgressing, notDegraded, v1beta1.PhaseRunning},
		"progressing":                      {&v1beta1.Memcached{}, notAvailable, isProgressing, notDegraded, v1beta1.PhaseProgressing},
		"degraded while all shards ready":  {&v1beta1.Memcached{}, isAvailable, notProgressing, isDegraded, v1beta1.PhaseBlocked},
		"degraded while shards not ready":  {&v1beta1.Memcached{}, notAvailable, isProgressing, isDegraded, v1beta1.PhaseDegraded},
		"paused":                           {paused, isAvailable, notProgressing, notDegraded, v1beta1.PhasePaused},
		"paused and degraded":              {paused, notAvailable, notProgressing, isDegraded, v1beta1.PhaseDegraded},
		"being deleted":                    {deleted, isAvailable, isProgressing, notDegraded, v1beta1.PhaseDeleting},
		"being deleted while it is broken": {deleted, notAvailable, isProgressing, isDegraded, v1beta1.PhaseDeleting},
	} {
		if got := phase(c.memcached, c.available, c.progressing, c.degraded); got != c.want {
			t.Errorf("%s: phase %s, want %s", name, got, c.want)
		}
	}
}
