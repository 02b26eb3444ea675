package status

import (
	"maps"
	"strconv"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/condition"
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
				"revert the spec, or retry: kubectl annotate memcached cache -n default cache.memcached-operator.io/retry=\"$(date +%s)\" --overwrite"},
		"the update lost the items": {rollout.Decision{Shard: "cache-0", Gate: rollout.GateUpdateFailed, Message: "memcached started empty", NeedsIntervention: true},
			v1beta1.ReasonUpdateFailed, "update failed on shard cache-0, which lost its items; no other shard was changed: memcached started empty; " +
				"revert the spec, or retry: kubectl annotate memcached cache -n default cache.memcached-operator.io/retry=\"$(date +%s)\" --overwrite"},
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
			f.Memcached.Namespace = "default"
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

// The eviction API rejects a pod that two budgets select.
func TestOtherBudgetThatSelectsAShardIsDegraded(t *testing.T) {
	budget := func(name string, selector *metav1.LabelSelector) policyv1.PodDisruptionBudget {
		return policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: policyv1.PodDisruptionBudgetSpec{Selector: selector}}
	}
	byLabels := func(labels map[string]string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: labels}
	}
	by := func(key string, operator metav1.LabelSelectorOperator, values ...string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: key, Operator: operator, Values: values}}}
	}
	release := byLabels(map[string]string{v1beta1.LabelName: v1beta1.NameValue, v1beta1.LabelInstance: "cache"})
	for name, c := range map[string]struct {
		budgets []policyv1.PodDisruptionBudget
		want    string
	}{
		"none":                                  {nil, ""},
		"that of a chart's release":             {[]policyv1.PodDisruptionBudget{budget("release", release)}, "release selects the pods of shard cache-0, too"},
		"that of another release":               {[]policyv1.PodDisruptionBudget{budget("other", byLabels(map[string]string{v1beta1.LabelInstance: "other"}))}, ""},
		"one for all pods":                      {[]policyv1.PodDisruptionBudget{budget("all", &metav1.LabelSelector{})}, "all selects the pods of shard cache-0, too"},
		"one for no pods":                       {[]policyv1.PodDisruptionBudget{budget("no", nil)}, ""},
		"one for a second shard":                {[]policyv1.PodDisruptionBudget{budget("shard", byLabels(map[string]string{v1beta1.LabelShard: "1"}))}, "shard selects the pods of shard cache-1, too"},
		"one for labels of the user":            {[]policyv1.PodDisruptionBudget{budget("team", by("team", metav1.LabelSelectorOpIn, "shop", "stock"))}, "team selects the pods of shard cache-0, too"},
		"one that excludes the shards":          {[]policyv1.PodDisruptionBudget{budget("rest", by(v1beta1.LabelManagedBy, metav1.LabelSelectorOpDoesNotExist))}, ""},
		"one that the API server would reject":  {[]policyv1.PodDisruptionBudget{budget("invalid", by("team", "Like", "shop"))}, ""},
		"the Memcached's own without its owner": {[]policyv1.PodDisruptionBudget{budget("cache", release)}, ""},
		"two, which the cache has in any order": {[]policyv1.PodDisruptionBudget{budget("z", release), budget("a", release), budget("m", release)}, "a selects"},
	} {
		obs := plantest.Running(t, 2)
		obs.Budgets = c.budgets
		for ordinal, s := range obs.Shards {
			s.Set.Spec.Template.Labels = resources.Labels("cache")
			maps.Copy(s.Set.Spec.Template.Labels, map[string]string{v1beta1.LabelShard: strconv.Itoa(ordinal), "team": "shop"})
		}
		degraded := meta.FindStatusCondition(Make(obs, plantest.Plan(obs), plan.Result{}, obs.Now).Conditions, v1beta1.ConditionDegraded)
		if c.want != "" && (degraded.Reason != v1beta1.ReasonDisruptionBudgetConflict || !strings.HasPrefix(degraded.Message, "PodDisruptionBudget "+c.want)) || c.want == "" && degraded.Status != metav1.ConditionFalse {
			t.Errorf("%s: %s: %s", name, degraded.Reason, degraded.Message)
		}
	}
}

// The update goes on by itself once the API server accepts the pod.
func TestUpdateWhoseNextPodIsRejectedSaysSo(t *testing.T) {
	f := plantest.NewShard(shardtest.Revision(t), shardtest.Revision(t), shardtest.Revision(t, shardtest.Version("1.6.38")))
	f.Set.Status.Conditions = []appsv1.ReplicaSetCondition{{Type: appsv1.ReplicaSetReplicaFailure, Status: corev1.ConditionTrue, Message: "exceeded quota"}}
	waits := rollout.Decision{Shard: "cache-0", Step: rollout.StepAwait, Message: "exceeded quota", NeedsIntervention: true}
	problem := firstProblem(f.Observation, f.Plan(waits), plan.Result{}, v1beta1.MemcachedStatus{})
	if problem == nil || problem.Reason != v1beta1.ReasonApplyRejected || !strings.Contains(problem.Message, "exceeded quota; the old pod keeps serving") {
		t.Errorf("%+v", problem)
	}
}

// Tools that wait, and alerts, would otherwise see a healthy Memcached each time.
func TestVerdictOnAnImageHoldsWhileTheCheckIsRepeated(t *testing.T) {
	verdict := metav1.Condition{Type: v1beta1.ConditionDegraded, Status: metav1.ConditionTrue, Reason: v1beta1.ReasonImageUnusable, Message: "preflight check failed on node node1: no memcached in this image"}
	for name, c := range map[string]struct {
		change func(*plantest.Shard, *rollout.Decision)
		holds  bool
	}{
		"it is repeated":           {func(*plantest.Shard, *rollout.Decision) {}, true},
		"it has succeeded":         {func(_ *plantest.Shard, d *rollout.Decision) { d.Gate = "" }, false},
		"another image is checked": {func(f *plantest.Shard, _ *rollout.Decision) { f.Memcached.Status.Update.Revision = "former" }, false},
		"nothing was wrong": {func(f *plantest.Shard, _ *rollout.Decision) {
			f.Memcached.Status.Conditions[0].Status = metav1.ConditionFalse
		}, false},
		"it was the first check": {func(f *plantest.Shard, _ *rollout.Decision) { f.Memcached.Status.Update = nil }, false},
		"a shard had no node": {func(f *plantest.Shard, _ *rollout.Decision) {
			f.Memcached.Status.Conditions[0].Message = "shard cache-1: no node"
		}, false},
		"another gate was the cause": {func(f *plantest.Shard, _ *rollout.Decision) {
			f.Memcached.Status.Update.Gate = v1beta1.Gate(rollout.GateScaling)
		}, false},
	} {
		f := plantest.NewShard(shardtest.Revision(t), shardtest.Revision(t), shardtest.Revision(t, shardtest.Version("1.6.38")))
		d := rollout.Decision{Shard: "cache-0", Gate: rollout.GateImageNotVerified, Step: rollout.StepPreflight}
		f.Memcached.Status.Conditions = []metav1.Condition{verdict}
		f.Memcached.Status.Update = &v1beta1.UpdateStatus{Revision: f.UpdateRevision.Hash(), Gate: v1beta1.Gate(d.Gate)}
		c.change(f, &d)
		problem := firstProblem(f.Observation, f.Plan(d), plan.Result{}, v1beta1.MemcachedStatus{})
		if (problem != nil) != c.holds || c.holds && *problem != (shard.Problem{Reason: verdict.Reason, Message: verdict.Message}) {
			t.Errorf("%s: %+v", name, problem)
		}
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

func said(status metav1.ConditionStatus, reason string) metav1.Condition {
	return metav1.Condition{Status: status, Reason: reason, Message: "message of " + reason}
}

var (
	isAvailable    = said(metav1.ConditionTrue, v1beta1.ReasonAllShardsReady)
	notAvailable   = said(metav1.ConditionFalse, v1beta1.ReasonShardsNotReady)
	hasNoShards    = said(metav1.ConditionFalse, v1beta1.ReasonNoShards)
	isProgressing  = said(metav1.ConditionTrue, v1beta1.ReasonUpdatingShard)
	notProgressing = said(metav1.ConditionFalse, v1beta1.ReasonUpToDate)
	isDegraded     = said(metav1.ConditionTrue, v1beta1.ReasonUpdateFailed)
	notDegraded    = said(metav1.ConditionFalse, v1beta1.ReasonAsExpected)
	isRunning      = &v1beta1.Memcached{}
	isPaused       = &v1beta1.Memcached{Spec: v1beta1.MemcachedSpec{Paused: true}}
	isDeleted      = &v1beta1.Memcached{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &metav1.Time{}}, Spec: v1beta1.MemcachedSpec{Paused: true}}
)

func TestShardThatDoesNotExistIsNotReady(t *testing.T) {
	obs := plantest.Running(t, 3)
	delete(obs.Objects, resources.Key{Kind: resources.KindReplicaSet, Name: "cache-1"})
	delete(obs.Pods, "cache-1")
	obs.Memcached.Status = v1beta1.MemcachedStatus{}
	available := meta.FindStatusCondition(Make(obs, plantest.Plan(obs), plan.Result{}, obs.Now).Conditions, v1beta1.ConditionAvailable)
	if available.Message != "2 of 3 shards are ready; not ready: cache-1" {
		t.Error(available.Message)
	}
}

func TestHealthHasTheReasonOfTheConditionThatDecides(t *testing.T) {
	update := v1beta1.MemcachedStatus{Update: &v1beta1.UpdateStatus{}}
	filled := v1beta1.MemcachedStatus{Bootstrap: &v1beta1.BootstrapStatus{Phase: v1beta1.TransferRunning, Message: "message of Bootstrapping"}}
	bootstrapping := said(metav1.ConditionFalse, v1beta1.ReasonBootstrapping)
	for name, c := range map[string]struct {
		memcached                        *v1beta1.Memcached
		available, progressing, degraded metav1.Condition
		of                               v1beta1.MemcachedStatus
		want                             condition.Health
		decides                          metav1.Condition
	}{
		"all shards ready and up to date":    {isRunning, isAvailable, notProgressing, notDegraded, v1beta1.MemcachedStatus{}, condition.Ready, isAvailable},
		"the same while paused":              {isPaused, isAvailable, notProgressing, notDegraded, v1beta1.MemcachedStatus{}, condition.Ready, isAvailable},
		"an update waits at a gate":          {isRunning, isAvailable, notProgressing, notDegraded, update, condition.Reconciling, notProgressing},
		"an update waits while paused":       {isPaused, isAvailable, notProgressing, notDegraded, update, condition.Waiting, notProgressing},
		"it is filled":                       {isRunning, isAvailable, isProgressing, notDegraded, filled, condition.Reconciling, bootstrapping},
		"paused before it is filled":         {isPaused, isAvailable, notProgressing, notDegraded, filled, condition.Waiting, bootstrapping},
		"paused before shards are ready":     {isPaused, notAvailable, notProgressing, notDegraded, v1beta1.MemcachedStatus{}, condition.Waiting, notAvailable},
		"progressing":                        {isRunning, isAvailable, isProgressing, notDegraded, v1beta1.MemcachedStatus{}, condition.Reconciling, isProgressing},
		"progressing and shards not ready":   {isRunning, notAvailable, isProgressing, notDegraded, v1beta1.MemcachedStatus{}, condition.Reconciling, isProgressing},
		"degraded":                           {isRunning, isAvailable, notProgressing, isDegraded, v1beta1.MemcachedStatus{}, condition.Stalled, isDegraded},
		"degraded and progressing":           {isRunning, notAvailable, isProgressing, isDegraded, v1beta1.MemcachedStatus{}, condition.Stalled, isDegraded},
		"degraded and paused":                {isPaused, notAvailable, notProgressing, isDegraded, v1beta1.MemcachedStatus{}, condition.Stalled, isDegraded},
		"no shards":                          {isRunning, hasNoShards, notProgressing, notDegraded, v1beta1.MemcachedStatus{}, condition.Ready, hasNoShards},
		"deleting the last shards":           {isRunning, hasNoShards, isProgressing, notDegraded, v1beta1.MemcachedStatus{}, condition.Reconciling, isProgressing},
		"being deleted although it's paused": {isDeleted, isAvailable, isProgressing, notDegraded, v1beta1.MemcachedStatus{}, condition.Reconciling, isProgressing},
		"no shards and degraded":             {isRunning, hasNoShards, notProgressing, isDegraded, v1beta1.MemcachedStatus{}, condition.Stalled, isDegraded},
	} {
		h, reason, message := health(c.memcached, c.of, c.available, c.progressing, c.degraded)
		if h != c.want || reason != c.decides.Reason || message != c.decides.Message {
			t.Errorf("%s: health %d, %s: %s; want %d, %s: %s", name, h, reason, message, c.want, c.decides.Reason, c.decides.Message)
		}
	}
}

func TestPhaseSummarizesTheConditions(t *testing.T) {
	for name, c := range map[string]struct {
		memcached                        *v1beta1.Memcached
		available, progressing, degraded metav1.Condition
		want                             v1beta1.Phase
	}{
		"up to date":                       {isRunning, isAvailable, notProgressing, notDegraded, v1beta1.PhaseRunning},
		"no shards":                        {isRunning, hasNoShards, notProgressing, notDegraded, v1beta1.PhaseRunning},
		"progressing":                      {isRunning, notAvailable, isProgressing, notDegraded, v1beta1.PhaseProgressing},
		"degraded while all shards ready":  {isRunning, isAvailable, notProgressing, isDegraded, v1beta1.PhaseBlocked},
		"degraded while shards not ready":  {isRunning, notAvailable, isProgressing, isDegraded, v1beta1.PhaseDegraded},
		"paused":                           {isPaused, isAvailable, notProgressing, notDegraded, v1beta1.PhasePaused},
		"paused and degraded":              {isPaused, notAvailable, notProgressing, isDegraded, v1beta1.PhaseDegraded},
		"being deleted":                    {isDeleted, isAvailable, isProgressing, notDegraded, v1beta1.PhaseDeleting},
		"being deleted while it is broken": {isDeleted, notAvailable, isProgressing, isDegraded, v1beta1.PhaseDeleting},
	} {
		if got := phase(c.memcached, c.available, c.progressing, c.degraded); got != c.want {
			t.Errorf("%s: phase %s, want %s", name, got, c.want)
		}
	}
}
