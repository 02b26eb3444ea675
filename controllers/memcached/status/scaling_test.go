package status

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/plan"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/plan/plantest"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/shard/shardtest"
	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
)

// Clients use the shards of the published list: one that copies items isn't missed, and its addresses aren't listed.
func TestStatusHasTheShardsThatClientsUseWhileItemsMove(t *testing.T) {
	for step, c := range map[v1beta1.ScalingStep]struct {
		servers          int
		available        bool
		progressing      string
		message, ofShard string
	}{
		v1beta1.ScalingPreparing: {2, true, v1beta1.ReasonScalingOut, "from 2 to 3 shards: Preparing; waiting for the agent in pod cache-1-x", ""},
		v1beta1.ScalingCopying:   {2, true, v1beta1.ReasonScalingOut, "from 2 to 3 shards: Copying; copied 25.0% of 1,000 items; shard cache-2: refused", "pod cache-2-x gets the items of other shards"},
		v1beta1.ScalingWaiting:   {3, false, v1beta1.ReasonWaitingForClients, "kubectl annotate memcached cache -n default cache.memcached-operator.io/scaled=id", "pod cache-2-x gets the items of other shards"},
	} {
		obs := plantest.Running(t, 3, func(s *v1beta1.MemcachedSpec) {
			s.Access.Hashing = &v1beta1.Hashing{Algorithm: v1beta1.HashJump}
			s.Access.External.Mode = v1beta1.ExternalLoadBalancer
		})
		m := obs.Memcached
		m.Status.Scaling = &v1beta1.ScalingStatus{ID: "id", From: 2, To: 3, Step: step, PublishTime: &metav1.Time{Time: obs.Now}}
		m.Status.Servers = []string{"cache-0.", "cache-1.", "cache-2."}
		shardtest.Starting(obs.Pods["cache-2"][0])
		copies := agentwire.Status{Phase: agentwire.PhaseReceiving, Scaling: &agentwire.ScalingStatus{ID: "id", Moved: 250, Total: 1000, Error: "refused"}}
		obs.Answers = map[string]agentwire.Status{"cache-2-x": copies}
		plantest.Read(obs)
		s := Make(obs, plantest.Plan(obs), plan.Result{}, obs.Now)
		progressing := meta.FindStatusCondition(s.Conditions, v1beta1.ConditionProgressing)
		if meta.IsStatusConditionTrue(s.Conditions, v1beta1.ConditionAvailable) != c.available || progressing.Reason != c.progressing || !strings.Contains(progressing.Message, c.message) || s.ReadyShards != 2 || len(s.Servers) != c.servers {
			t.Errorf("%s: %d ready shards, servers %q, conditions %+v", step, s.ReadyShards, s.Servers, s.Conditions)
		}
		if !strings.Contains(s.External.Message, map[int]string{2: "2 of 2", 3: "3 of 3"}[c.servers]) {
			t.Errorf("%s: %+v", step, s.External)
		}
		if meta.IsStatusConditionTrue(s.Conditions, v1beta1.ConditionReady) || !meta.IsStatusConditionTrue(s.Conditions, v1beta1.ConditionReconciling) {
			t.Errorf("%s: %+v", step, s.Conditions)
		}
		if c.ofShard != "" && s.Shards[2].Message != c.ofShard {
			t.Errorf("%s: %q", step, s.Shards[2].Message)
		}
	}
}

// What was reported stays until another change is over. One that only restores the former size isn't recorded.
func TestLastScalingIsThatWhichIsOver(t *testing.T) {
	now := time.Date(2026, 11, 27, 12, 0, 0, 500, time.UTC)
	former := &v1beta1.ScalingStatus{ID: "former"}
	finishing := v1beta1.ScalingStatus{ID: "id", From: 3, To: 2, Step: v1beta1.ScalingFinishing, Moved: 5, Problem: "another ring"}
	last := finishing
	last.CompletionTime = new(metav1.NewTime(now.Truncate(time.Second)))
	waiting, back := finishing, finishing
	waiting.Step, back.To = v1beta1.ScalingWaiting, 3
	for name, c := range map[string]struct{ was, next, want *v1beta1.ScalingStatus }{
		"there was none":      {nil, &v1beta1.ScalingStatus{ID: "id"}, former},
		"it waits":            {&waiting, &waiting, former},
		"it finishes":         {&finishing, &finishing, former},
		"it is over":          {&finishing, nil, &last},
		"another one begins":  {&finishing, &v1beta1.ScalingStatus{ID: "next"}, &last},
		"another size before": {&waiting, &v1beta1.ScalingStatus{ID: "next"}, former},
		"the former size":     {&back, nil, former},
	} {
		if got := lastScaling(v1beta1.MemcachedStatus{Scaling: c.was, LastScaling: former}, c.next, now); !equality.Semantic.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// A tool that waits for the Memcached isn't kept waiting, and an owner who takes over the size gets it as any other.
func TestForbiddenScaleInIsReportedUntilTheOwnerSetsTheSize(t *testing.T) {
	obs := plantest.Running(t, 4, func(s *v1beta1.MemcachedSpec) { s.Access.Hashing = &v1beta1.Hashing{Algorithm: v1beta1.HashJump} })
	m := obs.Memcached
	m.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "hpa", Subresource: "scale", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:size":{}}}`)}}
	m.Status.ObservedGeneration, m.Status.Servers = m.Generation-1, []string{"cache-0.", "cache-1.", "cache-2.", "cache-3."}
	*m.Spec.Size = 3
	plantest.Read(obs)
	for _, events := range []int{1, 0} {
		p := plantest.Plan(obs)
		s := Make(obs, p, plan.Result{}, obs.Now)
		progressing := meta.FindStatusCondition(s.Conditions, v1beta1.ConditionProgressing)
		if !meta.IsStatusConditionTrue(s.Conditions, v1beta1.ConditionReady) || progressing.Reason != v1beta1.ReasonScaleInForbidden || progressing.Status != metav1.ConditionFalse ||
			progressing.Message != s.LimitedSize.Message || !strings.HasPrefix(s.LimitedSize.Message, "hpa set spec.size to 3") || s.ObservedGeneration != m.Generation || s.Size != 4 || len(s.Servers) != 4 || len(p.Actions.ScaleIn) > 0 {
			t.Errorf("status %+v, and %d shards are deleted", s, len(p.Actions.ScaleIn))
		}
		if got := Events(m.Status, s, obs, p, plan.Result{}); len(got) != events || events > 0 && got[0].Reason != v1beta1.ReasonScaleInForbidden {
			t.Errorf("events %+v", got)
		}
		m.Status = s
	}
	m.ManagedFields = nil // the generation is the same
	if s := plantest.Plan(obs).Scaling.Status; s == nil || s.From != 4 || s.To != 3 || s.Step != v1beta1.ScalingPreparing {
		t.Errorf("it begins with %+v", s)
	}
}

// What waits uses up no steps: the first one begins with the shards that exist when the Memcached continues.
func TestStepsOfAPausedMemcachedAreNotUsedUp(t *testing.T) {
	obs := plantest.Running(t, 4, func(s *v1beta1.MemcachedSpec) {
		s.Access.Hashing = &v1beta1.Hashing{Algorithm: v1beta1.HashJump}
		s.Scaling.ScaleSubresource.MaxStep = new(int32(1))
	})
	m := obs.Memcached
	m.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "hpa", Subresource: "scale", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:size":{}}}`)}}
	m.Status.ObservedGeneration, m.Status.Servers = m.Generation-1, []string{"cache-0.", "cache-1.", "cache-2.", "cache-3."}
	*m.Spec.Size, m.Spec.Paused, obs.Paused = 8, true, true
	plantest.Read(obs)
	for range 4 {
		m.Status = Make(obs, plantest.Plan(obs), plan.Result{}, obs.Now)
		if l := m.Status.LimitedSize; l == nil || l.Size != 4 || m.Status.Scaling != nil {
			t.Errorf("limited to %+v, scaling %+v", l, m.Status.Scaling)
		}
	}
	m.Spec.Paused, obs.Paused = false, false
	m.Generation++
	plantest.Read(obs)
	if s := plantest.Plan(obs).Scaling.Status; s == nil || s.From != 4 || s.To != 5 {
		t.Errorf("it begins with %+v", s)
	}
	*m.Spec.Size = 4 // the load is over
	if got := resources.Size(m); got != 4 {
		t.Errorf("%d shards", got)
	}
}
