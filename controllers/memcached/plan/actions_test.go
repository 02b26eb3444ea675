package plan_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	"k8s.io/utils/ptr"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/observation"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/plan"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/plan/plantest"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/rollout"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/shard"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/shard/shardtest"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/status"
	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
)

func size(n int32) func(*observation.Observation) {
	return func(obs *observation.Observation) { *obs.Memcached.Spec.Size = n }
}

func remove(kind resources.Kind, name string) func(*observation.Observation) {
	return func(obs *observation.Observation) { delete(obs.Objects, resources.Key{Kind: kind, Name: name}) }
}

// preflightPod adds a pod that has checked the image.
func preflightPod(phase corev1.PodPhase) func(*observation.Observation) {
	return func(obs *observation.Observation) {
		pod := shardtest.Pod("preflight", obs.UpdateRevision)
		pod.Status.Phase, pod.CreationTimestamp = phase, metav1.NewTime(obs.Now.Add(-time.Minute))
		obs.PreflightPods = []*corev1.Pod{pod}
	}
}

// Each case changes one thing in the steady state of a Memcached of three shards.
func TestActionsFollowWhatWasObserved(t *testing.T) {
	spec := func(change func(*v1beta1.MemcachedSpec)) func(*observation.Observation) {
		return func(obs *observation.Observation) { change(&obs.Memcached.Spec) }
	}
	changed := func(kind resources.Kind, name string) func(*observation.Observation) {
		return func(obs *observation.Observation) {
			obs.Objects[resources.Key{Kind: kind, Name: name}].APIObject.SetAnnotations(map[string]string{"theirs": "1"})
		}
	}
	owner := func(kind resources.Kind, name, state string) func(*observation.Observation) {
		return func(obs *observation.Observation) {
			plantest.AddObject(obs, resources.Key{Kind: kind, Name: name}, state)
		}
	}
	for name, c := range map[string]struct {
		change func(*observation.Observation)
		want   []string
	}{
		"nothing changes":   {func(*observation.Observation) {}, nil},
		"it scales out":     {size(4), []string{"create Secret cache-handover-ours", "create Secret cache-scaling-ours", "create Service cache-3", "create ReplicaSet cache-3"}},
		"it scales in":      {size(1), []string{"delete Service cache-2", "delete ReplicaSet cache-2", "delete Service cache-1", "delete ReplicaSet cache-1"}},
		"it scales in to 0": {size(0), []string{"delete Service cache-2", "delete ReplicaSet cache-2", "delete Service cache-1", "delete ReplicaSet cache-1", "delete Service cache-0", "delete ReplicaSet cache-0"}},
		"it is paused":      {func(obs *observation.Observation) { size(1)(obs); obs.Memcached.Spec.Paused = true }, nil},
		"it is being deleted": {func(obs *observation.Observation) {
			size(1)(obs)
			obs.Memcached.DeletionTimestamp = &metav1.Time{Time: obs.Now}
		}, nil},
		"its version is not known":      {func(obs *observation.Observation) { size(1)(obs); obs.Memcached.Spec.Version = "1.5.0" }, nil},
		"a Service was deleted":         {remove(resources.KindService, "cache-1"), []string{"create Service cache-1"}},
		"the NetworkPolicy was deleted": {remove(resources.KindNetworkPolicy, "cache"), []string{"create NetworkPolicy cache"}},
		"the NetworkPolicy is disabled": {spec(func(s *v1beta1.MemcachedSpec) { s.Access.NetworkPolicy.Mode = v1beta1.NetworkPolicyDisabled }), []string{"delete NetworkPolicy cache"}},
		"a foreign NetworkPolicy is there when ours is disabled": {func(obs *observation.Observation) {
			obs.Memcached.Spec.Access.NetworkPolicy.Mode = v1beta1.NetworkPolicyDisabled
			owner(resources.KindNetworkPolicy, "cache", "foreign")(obs)
		}, nil},
		"a ReplicaSet was deleted": {remove(resources.KindReplicaSet, "cache-1"), []string{"create Secret cache-handover-ours", "create Secret cache-scaling-ours", "create ReplicaSet cache-1"}},
		"without handover": {func(obs *observation.Observation) {
			obs.Memcached.Spec.UpdateStrategy.Handover.Mode = v1beta1.HandoverDisabled
			remove(resources.KindReplicaSet, "cache-1")(obs)
		}, []string{"create ReplicaSet cache-1"}},
		"a Service was modified":     {changed(resources.KindService, "cache-1"), []string{"update Service cache-1"}},
		"a Service is an orphan":     {owner(resources.KindService, "cache-1", "orphaned"), []string{"update Service cache-1"}},
		"a Service is foreign":       {owner(resources.KindService, "cache-1", "foreign"), []string{"again in 30s"}},
		"a Service is a former one":  {owner(resources.KindService, "cache-1", "predecessors"), nil},
		"a Service is being deleted": {owner(resources.KindService, "cache-1", "terminating"), nil},
		"an extra shard is foreign": {func(obs *observation.Observation) {
			size(2)(obs)
			owner(resources.KindReplicaSet, "cache-2", "foreign")(obs)
		}, []string{"delete Service cache-2"}},
		"an extra shard is an orphan": {func(obs *observation.Observation) {
			size(2)(obs)
			owner(resources.KindReplicaSet, "cache-2", "orphaned")(obs)
		}, []string{"delete Service cache-2", "delete ReplicaSet cache-2"}},
		"an agent doesn't answer": {func(obs *observation.Observation) { obs.Unreachable["cache-1-x"] = true }, []string{"again in 1s"}},
		"an agent hasn't answered for a while": {func(obs *observation.Observation) {
			obs.Unreachable["cache-1-x"] = true
			obs.Memcached.Status.Shards[1].AgentUnreachableTime = ptr.To(v1beta1.Time(obs.Now.Add(-time.Minute)))
		}, []string{"again in 15s"}},
		"a start isn't known": {func(obs *observation.Observation) { obs.Memcached.Status.Shards[1].StartResult = "" }, []string{"again in 1s"}},
		"a shard starts": {func(obs *observation.Observation) {
			obs.Memcached.Status.Shards[1].StartResult = ""
			shardtest.Starting(obs.Pods["cache-1"][0])
		}, nil},
		"a shard has no pod":                             {func(obs *observation.Observation) { delete(obs.Pods, "cache-1") }, nil},
		"a preflight check isn't needed any more":        {preflightPod(corev1.PodSucceeded), []string{"delete Pod preflight"}},
		"a failed preflight check isn't needed any more": {preflightPod(corev1.PodFailed), []string{"delete Pod preflight"}},
		"it follows another default image":               {func(obs *observation.Observation) { obs.DefaultImageHold.Message = "waits" }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			obs := plantest.Running(t, 3)
			c.change(obs)
			if diff := cmp.Diff(c.want, describe(plantest.Plan(obs).Actions)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// The API server rejects the write when the ReplicaSet has changed since: its replicas may be those of a replacement.
func TestReplicaSetIsUpdatedInTheObservedVersion(t *testing.T) {
	obs := plantest.Running(t, 1)
	set := obs.ReplicaSet("cache-0")
	set.SetAnnotations(map[string]string{"theirs": "1"})
	set.SetResourceVersion("17")
	if apply := plantest.Plan(obs).Actions.Apply; len(apply) != 1 || apply[0].UID != set.UID || apply[0].Version != "17" {
		t.Errorf("%+v", apply)
	}
}

// The operator can't read whether the Secret exists: each attempt to create it is a write.
func TestSecretOfHandoversIsCreatedOnceInAnUpdate(t *testing.T) {
	for name, want := range map[string]bool{"cache-0": true, "cache-1": false} {
		obs := plantest.Running(t, 2)
		obs.ReplicaSet(name).SetAnnotations(map[string]string{"theirs": "1"})
		if a := plantest.Plan(obs).Actions; len(a.Apply) != 1 || (len(a.Secrets) == 2) != want {
			t.Errorf("with the template of %s, so many Secrets are created: %d; %+v", name, len(a.Secrets), a.Apply)
		}
	}
}

// As after a downgrade to a release that doesn't know the fields.
func TestProtectionThatIsStatedAgainChangesNothing(t *testing.T) {
	modes := func(auth v1beta1.AuthMode, tls v1beta1.TLSMode) func(*v1beta1.MemcachedSpec) {
		return func(s *v1beta1.MemcachedSpec) { s.Auth.Mode, s.TLS.Mode = auth, tls }
	}
	both := modes(v1beta1.AuthRequired, v1beta1.TLSRequired)
	obs := plantest.Running(t, 2, both)
	for reason, edit := range map[string]func(*v1beta1.MemcachedSpec){v1beta1.ReasonProtectionNotStated: modes("", ""), "": both} {
		edit(&obs.Memcached.Spec)
		p := plantest.Plan(obs)
		var got shard.Problem
		if obs.Rejected != nil {
			got = *obs.Rejected
		}
		if a := p.Actions; got.Reason != reason || len(a.Apply)+len(a.Patch)+len(a.Delete)+len(a.ScaleIn) > 0 || p.IsDisruptive() {
			t.Errorf("%+v, want %q; it does %+v", got, reason, a)
		}
	}
}

func TestSpecThatCannotBeAppliedIsRejected(t *testing.T) {
	tls := func(s *v1beta1.MemcachedSpec) { s.TLS = v1beta1.TLSSpec{Mode: v1beta1.TLSRequired} }
	for name, c := range map[string]struct {
		change  func(*observation.Observation)
		reason  string
		message string
	}{
		"valid": {func(*observation.Observation) {}, "", ""},
		"too large to be stored": {func(obs *observation.Observation) {
			obs.Memcached.Annotations = map[string]string{resources.ReducedSpec: ""}
		}, v1beta1.ReasonPodConfigurationTooLarge, "shorten its lists"},
		"not an image":           {func(obs *observation.Observation) { obs.Memcached.Spec.Pod.Image = "Not an image" }, v1beta1.ReasonImageInvalid, "correct spec.pod.image"},
		"an unsupported version": {func(obs *observation.Observation) { obs.Memcached.Spec.Version = "1.5.0" }, v1beta1.ReasonVersionUnsupported, "nothing changes until then"},
		"an unsupported version that runs": {func(obs *observation.Observation) {
			obs.Memcached.Spec.Pod.Image = "memcached@sha256:" + strings.Repeat("0", 64)
			plantest.Read(obs)
			obs.Pods["cache-0"] = []*corev1.Pod{plantest.Pod(obs, "cache-0", "x")}
			obs.Memcached.Status.Shards[0].Version, obs.Memcached.Status.Shards[0].Revision = "1.5.0", obs.UpdateRevision.Hash()
		}, v1beta1.ReasonVersionUnsupported, "shard cache-0 runs image"},
		"an unsupported version that ran with another image": {func(obs *observation.Observation) {
			obs.Memcached.Status.Shards[0].Version, obs.Memcached.Status.Shards[0].Revision = "1.5.0", "former"
		}, "", ""},
		"a version without TLS": {func(obs *observation.Observation) { tls(&obs.Memcached.Spec); obs.Memcached.Spec.Version = "1.6.38" },
			v1beta1.ReasonVersionUnsupported, "Use 1.6.39 or newer"},
		"a version without logins": {func(obs *observation.Observation) {
			obs.Memcached.Spec.Auth, obs.Memcached.Spec.Version = v1beta1.AuthSpec{Mode: v1beta1.AuthRequired}, "1.6.38"
		},
			v1beta1.ReasonVersionUnsupported, "isn't supported with spec.auth"},
		"a protection of a newer release": {func(obs *observation.Observation) {
			obs.ReplicaSet("cache-0").Spec.Template.Annotations[annotations.Protection] = `{"quantum":"Required"}`
		}, v1beta1.ReasonProtectionNotStated, "install the release that you had"},
		"a peer that the API server rejects": {func(obs *observation.Observation) {
			obs.Memcached.Spec.Access.NetworkPolicy.AllowedClients = []networkingv1.NetworkPolicyPeer{{IPBlock: &networkingv1.IPBlock{CIDR: "10.0.0.0/33"}}}
		}, v1beta1.ReasonApplyRejected, "spec.access.networkPolicy.allowedClients[0]"},
		"a range that isn't one": {func(obs *observation.Observation) {
			obs.Memcached.Spec.Access.External = v1beta1.ExternalSpec{Mode: v1beta1.ExternalLoadBalancer, SourceRanges: []string{"192.0.2.0/24", "999.1.1.1/99"}}
		}, v1beta1.ReasonApplyRejected, "spec.access.external.sourceRanges[1]: invalid CIDR address: 999.1.1.1/99; correct it"},
		"another first IP family than the Services have": {func(obs *observation.Observation) {
			obs.Memcached.Spec.Access.IPFamilies = []corev1.IPFamily{corev1.IPv6Protocol}
			service := obs.Objects[resources.Key{Kind: resources.KindService, Name: "cache-0"}].APIObject.(*corev1.Service)
			service.Spec.IPFamilies = []corev1.IPFamily{corev1.IPv4Protocol}
		}, v1beta1.ReasonApplyRejected, "spec.access.ipFamilies begins with IPv6, and the Service cache-0 with IPv4, which Kubernetes can't change; write IPv4 first"},
		"options of TLS among the arguments": {func(obs *observation.Observation) {
			tls(&obs.Memcached.Spec)
			obs.Memcached.Spec.Config.ExtraArgs = []string{"-o", "ssl_min_version=3"}
		}, v1beta1.ReasonExtraArgsInvalid, "spec.config.extraArgs contains ssl_min_version=3; remove it"},
		"a pod configuration that is too large": {func(obs *observation.Observation) {
			obs.Memcached.Spec.Pod.Metadata.Annotations = map[string]string{"a": strings.Repeat("x", resources.MaxRevision)}
		}, v1beta1.ReasonPodConfigurationTooLarge, "shorten spec.pod.metadata"},
	} {
		t.Run(name, func(t *testing.T) {
			obs := plantest.Running(t, 2)
			obs.Memcached.Spec.Config.Threads = ptr.To[int32](2) // would update shard 0
			c.change(obs)
			size(1)(obs) // would delete shard 1
			p := plantest.Plan(obs)
			var got shard.Problem
			if obs.Rejected != nil {
				got = *obs.Rejected
			}
			if got.Reason != c.reason || !strings.Contains(got.Message, c.message) {
				t.Errorf("%+v, want %s: %s", got, c.reason, c.message)
			}
			if writes := len(p.Actions.Apply) + len(p.Actions.Delete) + len(p.Actions.ScaleIn) + len(p.Actions.Patch); (writes == 0) != (c.reason != "") {
				t.Errorf("%d writes", writes)
			}
		})
	}
}

func TestOperatorsSettingsRestrictTheSpec(t *testing.T) {
	obs := plantest.Running(t, 1, func(s *v1beta1.MemcachedSpec) { s.Pod.Image = "example.com/memcached:1.6.45" })
	options := plantest.Options
	options.Restrictions, _ = resources.ParseRestrictions(func(name string) string {
		return map[string]string{"ALLOWED_IMAGE_PREFIXES": "docker.io/library/memcached"}[name]
	})
	if p := plan.SpecProblem(obs, options); p == nil || p.Reason != v1beta1.ReasonNotAllowed {
		t.Errorf("%+v with %+v", p, options.Restrictions)
	}
}

func TestStepOfTheRolloutBecomesAWrite(t *testing.T) {
	to := shardtest.All(shardtest.Version("1.6.38"), shardtest.MaxConnections(2048))
	old, update := shardtest.Revision(t, shardtest.Resources("cpu 1")), shardtest.Revision(t, to, shardtest.Resources("cpu 2"))
	for name, c := range map[string]struct {
		decision rollout.Decision
		change   func(*plantest.Shard)
		want     []string // parts of the lines
	}{
		"it waits":              {rollout.Decision{Step: rollout.StepAwait, RequeueAfter: time.Second}, nil, []string{"again in 1s"}},
		"a gate blocks":         {rollout.Decision{Gate: rollout.GatePaused}, nil, nil},
		"its pod is resized":    {rollout.Decision{Step: rollout.StepResize}, nil, []string{`patch first/resize: {"spec":{"containers":[{"name":"memcached","resources":{"limits":`}},
		"its stop is announced": {rollout.Decision{Step: rollout.StepAnnounceStop}, nil, []string{`patch first: {"metadata":{"annotations":{"cache.memcached-operator.io/stop":"running-` + update.Hash()}},
		"its stop is announced already": {rollout.Decision{Step: rollout.StepAnnounceStop}, func(f *plantest.Shard) {
			f.Pod.Annotations[annotations.Stop] = agentwire.AnnounceArguments("running-"+update.Hash()+"-999", update.ArgumentsText)
		}, nil},
		"a stop of its rollback is announced": {rollout.Decision{Step: rollout.StepAnnounceStop, RollingBack: true}, nil, []string{`"running-` + old.Hash()}},
		"its stop is not needed any more": {rollout.Decision{Step: rollout.StepRevert}, func(f *plantest.Shard) {
			f.Pod.Annotations[annotations.Stop] = "running-x"
		}, []string{`patch first: {"metadata":{"annotations":{"cache.memcached-operator.io/stop":null}}}`}},
		"its resources are not needed any more": {rollout.Decision{Step: rollout.StepRevert}, nil, []string{`patch first/resize: `}},
		"it is updated in place":                {rollout.Decision{Step: rollout.StepUpdateInPlace, Change: rollout.Change{Method: rollout.Recreate}}, nil, []string{`"image":"docker.io/library/memcached:1.6.38"`}},
		"it is drained":                         {rollout.Decision{Step: rollout.StepDrain}, nil, []string{`patch first: {"metadata":{"annotations":{"controller.kubernetes.io/pod-deletion-cost":"-1000"}}}`}},
		"it is drained already": {rollout.Decision{Step: rollout.StepDrain}, func(f *plantest.Shard) {
			f.Pod.Annotations[corev1.PodDeletionCost] = shard.DrainedPodDeletionCost
		}, nil},
		"it hands over its items": {rollout.Decision{Step: rollout.StepHandOver}, func(f *plantest.Shard) { addSecond(f) }, []string{`patch second: {"metadata":{"annotations":{"cache.memcached-operator.io/receive":"first"}}}`}},
		"it has handed over its items, and its ReplicaSet has counted one pod": {rollout.Decision{Step: rollout.StepDrain}, func(f *plantest.Shard) {
			addSecond(f).Annotations[annotations.Receive] = string(f.Pod.UID)
		}, nil},
		"it has handed over its items": {rollout.Decision{Step: rollout.StepDrain}, func(f *plantest.Shard) {
			addSecond(f).Annotations[annotations.Receive] = string(f.Pod.UID)
			f.Set.Status.Replicas = 2
		}, []string{"delete Pod first"}},
		"its image is checked": {rollout.Decision{Step: rollout.StepPreflight}, nil, nil},
		"it doesn't exist":     {rollout.Decision{Shard: "cache-9", Step: rollout.StepHandOver}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			f := plantest.NewShard(old, old, update)
			if c.change != nil {
				c.change(f)
			}
			if c.decision.Shard == "" {
				c.decision.Shard = "cache-0"
			}
			p := f.Plan(c.decision)
			got := describe(plan.PlanStep(f.Observation, p.Shards, p.Decision, p.Preflight))
			if len(got) != len(c.want) {
				t.Fatalf("%q, want %q", got, c.want)
			}
			for i := range got {
				if !strings.Contains(got[i], c.want[i]) {
					t.Errorf("%s, want %s", got[i], c.want[i])
				}
			}
		})
	}
}

// addSecond adds the pod that will take over.
func addSecond(f *plantest.Shard) *corev1.Pod {
	f.Set = shardtest.ReplicaSet("cache-0", f.UpdateRevision)
	pod := shardtest.Pod("second", f.UpdateRevision)
	f.Pods["cache-0"] = append(f.Pods["cache-0"], pod)
	return pod
}

// Its agent can't know otherwise.
func TestShorterGracePeriodIsAnnouncedToThePodThatReceivesTheItems(t *testing.T) {
	const own = 219
	for name, c := range map[string]struct {
		grace  int64
		second func(*corev1.Pod)
		want   []string
	}{
		"shorter": {30, nil, []string{`patch second: {"metadata":{"annotations":{"cache.memcached-operator.io/receive":"cache-0-x 30"}}}`}},
		"shorter than when it was announced": {30, func(pod *corev1.Pod) { pod.Annotations[annotations.Receive] = "cache-0-x 60" },
			[]string{`patch second: {"metadata":{"annotations":{"cache.memcached-operator.io/receive":"cache-0-x 30"}}}`}},
		"it hands over already": {30, func(pod *corev1.Pod) { pod.Annotations[annotations.Receive] = "cache-0-x" },
			[]string{`patch second: {"metadata":{"annotations":{"cache.memcached-operator.io/receive":"cache-0-x 30"}}}`}},
		"announced":           {30, func(pod *corev1.Pod) { pod.Annotations[annotations.Receive] = "cache-0-x 30" }, nil},
		"the pod's own":       {own, nil, nil},
		"its kubelet is done": {0, nil, nil},
		"the second pod serves": {30, func(pod *corev1.Pod) {
			pod.Status.Conditions = shardtest.Pod("", resources.PodRevision{}).Status.Conditions
		}, nil},
		"the second pod is deleted too": {30, func(pod *corev1.Pod) { pod.DeletionTimestamp = &metav1.Time{Time: plantest.Now} }, nil},
		"the pods don't hand over":      {30, func(pod *corev1.Pod) { delete(pod.Annotations, annotations.Handover) }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			obs := plantest.Running(t, 1)
			first, second := plantest.ActivePod(obs, "cache-0"), plantest.Pod(obs, "cache-0", "y")
			first.DeletionTimestamp, first.DeletionGracePeriodSeconds = &metav1.Time{Time: plantest.Now.Add(time.Minute)}, &c.grace
			first.Spec.TerminationGracePeriodSeconds = new(int64(own))
			shardtest.Starting(second)
			second.Name, second.Annotations[annotations.Receive] = "second", ""
			if c.second != nil {
				c.second(second)
			}
			obs.Pods["cache-0"] = append(obs.Pods["cache-0"], second)
			got := describe(plan.Actions{Patch: plantest.Plan(obs).Actions.Patch})
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("writes (-want +got):\n%s", diff)
			}
		})
	}
}

// The rollout requests the first pod's items with the same annotation.
func TestGracePeriodOfAPodThatHasNoItemsIsNotAnnounced(t *testing.T) {
	obs := plantest.Running(t, 1)
	former, second := plantest.Pod(obs, "cache-0", "y"), plantest.Pod(obs, "cache-0", "z")
	former.DeletionTimestamp, former.DeletionGracePeriodSeconds = &metav1.Time{Time: plantest.Now.Add(time.Minute)}, new(int64(30))
	former.Spec.TerminationGracePeriodSeconds = new(int64(219))
	second.Annotations[annotations.Receive] = string(plantest.ActivePod(obs, "cache-0").UID)
	shardtest.Starting(former)
	shardtest.Starting(second)
	obs.Pods["cache-0"] = append(obs.Pods["cache-0"], second, former)
	if got := describe(plan.Actions{Patch: plantest.Plan(obs).Actions.Patch}); got != nil {
		t.Errorf("writes %q", got)
	}
}

func TestUpdateInPlaceIsOneWriteWithItsRecord(t *testing.T) {
	metadata := func(name string) shardtest.Edit {
		return func(s *v1beta1.MemcachedSpec) {
			s.Pod.Metadata = v1beta1.Metadata{Labels: map[string]string{name: "1"}, Annotations: map[string]string{name: "2"}}
		}
	}
	old, update := shardtest.Revision(t, metadata("old")), shardtest.Revision(t, metadata("new"))
	f := plantest.NewShard(old, old, update)
	p := f.Plan(rollout.Decision{Shard: "cache-0", Step: rollout.StepUpdateInPlace, Change: rollout.Change{Method: rollout.Live}})
	p.Shards[0].Target.Restart = "token"
	patch := plan.PlanStep(f.Observation, p.Shards, p.Decision, p.Preflight).Patch[0]
	body := patch.Body["metadata"].(map[string]any)
	set := body["annotations"].(map[string]any)
	record := shard.DecodeRecord[shard.UpdateRecord](map[string]string{"": set[annotations.Update].(string)}, "")
	if record == nil || record.Revision != update.Hash() || record.From != old.Hash() || record.Method != rollout.Live || record.Restart != "token" {
		t.Errorf("the record is %+v", record)
	}
	if diff := cmp.Diff(map[string]any{"old": nil, "new": "1"}, body["labels"]); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	if set["old"] != nil || set["new"] != "2" || set[annotations.Revision] != update.Hash() || set[v1beta1.AnnotationRestart] != "token" {
		t.Errorf("the annotations are %v", set)
	}
	if _, ok := patch.Body["spec"]; ok {
		t.Error("the image is written, although it is the same")
	}
	f.Pod.UID, f.Pod.ResourceVersion = "pod", "17"
	if raw := string(patch.Bytes()); !strings.Contains(raw, `"resourceVersion":"17","uid":"pod"`) {
		t.Errorf("without the version of the pod: %s", raw)
	}
	if raw := string(plan.PodPatch{Pod: &corev1.Pod{}, Body: map[string]any{}}.Bytes()); raw != `{"metadata":{"resourceVersion":"","uid":""}}` {
		t.Errorf("an empty patch is %s", raw)
	}
}

func TestMovedShardAvoidsItsNode(t *testing.T) {
	revision := shardtest.Revision(t)
	f := plantest.NewShard(revision, revision, revision)
	f.Pod.Spec.NodeName = "node1"
	f.Pod.Annotations[v1beta1.AnnotationMove] = "1"
	desired := func(step rollout.Step) resources.Shard {
		p := f.Plan(rollout.Decision{Shard: "cache-0", Step: step, Change: rollout.Change{KeepsItems: true}})
		return plan.DesiredShards(f.Observation, p.Shards, p.Decision, "", plan.Scaling{})[0]
	}
	surged := desired(rollout.StepSurge)
	record := shard.DecodeRecord[shard.UpdateRecord](surged.Annotations, annotations.Update)
	if surged.AvoidNode != "node1" || !surged.Surge || record == nil || record.MovedPod != "first" || !record.KeepsItems {
		t.Errorf("the replacement is %+v with the record %+v", surged, record)
	}
	f.Set.Annotations = surged.Annotations
	if moving := desired(rollout.StepAwait); moving.AvoidNode != "node1" {
		t.Errorf("while it moves: %+v", moving)
	}
	if stays := desired(rollout.StepPromoteTemplate); stays.AvoidNode != "" || stays.Annotations[annotations.Update] != "" || stays.Surge {
		t.Errorf("the pod stays: %+v", stays)
	}
}

// The rollout knows neither the spec nor Kubernetes.
func TestRolloutIsBlockedByWhatTheSpecSays(t *testing.T) {
	strategy := func(change func(*v1beta1.UpdateStrategy)) func(*observation.Observation) {
		return func(obs *observation.Observation) {
			obs.Memcached.Spec.UpdateStrategy = v1beta1.UpdateStrategy{}
			change(&obs.Memcached.Spec.UpdateStrategy)
		}
	}
	restore := func(obs *observation.Observation, name string, phase v1beta1.TransferPhase) {
		r := &v1beta1.MemcachedRestore{ObjectMeta: metav1.ObjectMeta{Name: name}}
		r.Status.Phase, r.Status.StartTime = phase, &metav1.Time{Time: obs.Now}
		obs.Restores[name] = observation.Object{APIObject: r, Owner: observation.Foreign}
	}
	larger := func(obs *observation.Observation) {
		obs.Memcached.Spec.Memory = shardtest.Revision(t, shardtest.Memory("128Mi")).Spec.Memory
	}
	record := func(obs *observation.Observation, ago time.Duration) {
		shardtest.Annotate(obs.Pods["cache-0"][0], annotations.Update, shard.EncodeRecord(shard.UpdateRecord{Revision: obs.UpdateRevision.Hash(),
			At: obs.Now.Add(-ago), Method: rollout.Restart, Gets: 5000, Hits: 4000}))
	}
	for name, c := range map[string]struct {
		change  func(*observation.Observation)
		gate    rollout.Gate
		message string
		again   time.Duration
	}{
		"nothing":                    {func(*observation.Observation) {}, "", "", 0},
		"a missing shard":            {size(4), rollout.GateShardUnavailable, "waiting until shard cache-3 is created", 0},
		"a shard missing in between": {remove(resources.KindReplicaSet, "cache-1"), rollout.GateShardUnavailable, "waiting until shard cache-1 is created", 0},
		"a closed window": {strategy(func(s *v1beta1.UpdateStrategy) {
			s.MaintenanceWindows = []v1beta1.MaintenanceWindow{{Start: "13:00", DurationSeconds: 3600}}
		}), rollout.GateOutsideMaintenanceWindow, "", time.Hour},
		"an invalid window": {strategy(func(s *v1beta1.UpdateStrategy) {
			s.MaintenanceWindows = []v1beta1.MaintenanceWindow{{Start: "13:00", TimeZone: "Europe/Bonn"}}
		}), rollout.GateUpdateStrategyInvalid, "Europe/Bonn", 0},
		"a recent update": {func(obs *observation.Observation) {
			strategy(func(s *v1beta1.UpdateStrategy) { s.MinPeriodSeconds = ptr.To[int32](60) })(obs)
			record(obs, 20*time.Second)
		}, rollout.GateMinPeriodNotElapsed, "", 40 * time.Second},
		"a hit ratio": {func(obs *observation.Observation) {
			strategy(func(s *v1beta1.UpdateStrategy) { s.HitRatioGate = v1beta1.HitRatioGate{Mode: v1beta1.HitRatioGateStop} })(obs)
			record(obs, 20*time.Second)
		}, rollout.GateHitRatioNotRecovered, "waiting for shard cache-0's hit ratio to recover to 90% of its previous value (80.0%), in a minute with at least 1000 lookups", 5 * time.Second},
		"the first of two restores that run": {func(obs *observation.Observation) {
			restore(obs, "a", v1beta1.TransferComplete)
			restore(obs, "b", v1beta1.TransferRunning)
			restore(obs, "c", v1beta1.TransferRunning)
			larger(obs)
		}, rollout.GateRestoreRunning, "waiting until MemcachedRestore b has finished", 0},
		"an empty start that is not announced": {larger, rollout.GateEmptyStartNotAnnounced, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			obs := plantest.Running(t, 3)
			c.change(obs)
			if name != "nothing" {
				obs.Memcached.Spec.Config.Threads = ptr.To[int32](2) // an update, which begins with shard 0
			}
			p := plantest.Plan(obs)
			if p.Decision.Gate != c.gate || !strings.Contains(p.Decision.Message, c.message) || p.Decision.RequeueAfter != c.again {
				t.Errorf("%+v, want gate %q: %s, again in %s", p.Decision, c.gate, c.message, c.again)
			}
			if invalid := p.Invalid != nil; invalid != (c.gate == rollout.GateUpdateStrategyInvalid) {
				t.Errorf("invalid: %+v", p.Invalid)
			}
			if p.IsDisruptive() {
				t.Errorf("the plan disturbs a shard: %+v", p.Decision)
			}
		})
	}
}

// Both pods of a shard serve clients, which have different items. One of them has to go, even while nothing else changes.
func TestShardHasOneServingPodAlsoWithoutAnUpdate(t *testing.T) {
	const drains = `patch cache-1-x: {"metadata":{"annotations":{"controller.kubernetes.io/pod-deletion-cost":"-1000"}}}`
	for name, c := range map[string]struct {
		change func(*v1beta1.MemcachedSpec)
		want   []string
	}{
		"it is paused": {func(s *v1beta1.MemcachedSpec) { s.Paused = true }, []string{"update ReplicaSet cache-1", drains}},
		"it is paused, and its spec is as before": {func(s *v1beta1.MemcachedSpec) { s.Paused, s.Config.Threads = true, ptr.To[int32](4) },
			[]string{"update ReplicaSet cache-1"}},
		"its spec is rejected": {func(s *v1beta1.MemcachedSpec) {
			s.Access.External = v1beta1.ExternalSpec{Mode: v1beta1.ExternalLoadBalancer, SourceRanges: []string{"everyone"}}
		}, []string{"update ReplicaSet cache-1", drains}},
		"its spec is rejected, with another version": {func(s *v1beta1.MemcachedSpec) { s.Version = "1.5.0" }, []string{"update ReplicaSet cache-1"}},
		"its update strategy is invalid": {func(s *v1beta1.MemcachedSpec) {
			s.UpdateStrategy.MaintenanceWindows = []v1beta1.MaintenanceWindow{{Start: "13:00", DurationSeconds: 60, TimeZone: "Europe/Nowhere"}}
		}, []string{"update ReplicaSet cache-1", drains}},
	} {
		t.Run(name, func(t *testing.T) {
			obs := plantest.Running(t, 2)
			former := obs.Pods["cache-1"][0]
			obs.Memcached.Spec.Config.Threads = ptr.To[int32](2)
			plantest.Read(obs)
			set := obs.ReplicaSet("cache-1")
			set.Spec.Replicas, set.Spec.Template.Annotations = ptr.To[int32](2), resources.PodAnnotations(obs.UpdateRevision)
			shardtest.Annotate(set, annotations.Update, shard.EncodeRecord(shard.UpdateRecord{Revision: obs.UpdateRevision.Hash(), Method: rollout.Replace}))
			obs.Pods["cache-1"] = []*corev1.Pod{former, plantest.Pod(obs, "cache-1", "y")}
			c.change(&obs.Memcached.Spec)
			p := plantest.Plan(obs)
			if diff := cmp.Diff(c.want, describe(p.Actions)); diff != "" || p.IsDisruptive() != slices.Contains(c.want, drains) {
				t.Errorf("%+v (-want +got):\n%s", p.Decision, diff)
			}
			if u := status.Make(obs, p, plan.Result{}, obs.Now).Update; u != nil && obs.Rejected != nil {
				t.Errorf("an update to a rejected spec is reported: %+v", u)
			}
		})
	}
}

// The template can change again before the ReplicaSet has deleted the pod that it created from the former one.
func TestPodOfAFormerTemplateMakesRoomForTheNextOne(t *testing.T) {
	obs := plantest.Running(t, 1)
	former := obs.Pods["cache-0"][0]
	obs.Memcached.Spec.Pod.Scheduling.NodeSelector = map[string]string{"disk": "hdd"}
	plantest.Read(obs)
	surplus := plantest.Pod(obs, "cache-0", "y")
	surplus.Status.Conditions = nil
	obs.Memcached.Spec.Pod.Scheduling.NodeSelector = map[string]string{"disk": "ssd"}
	plantest.Read(obs)
	obs.Memcached.Status.Update = &v1beta1.UpdateStatus{Revision: obs.UpdateRevision.Hash(), Shard: "cache-0", Method: v1beta1.UpdateReplace}
	set := obs.ReplicaSet("cache-0")
	set.Spec.Replicas, set.Spec.Template.Annotations = ptr.To[int32](2), resources.PodAnnotations(obs.UpdateRevision)
	shardtest.Annotate(set, annotations.Update, shard.EncodeRecord(shard.UpdateRecord{Revision: obs.UpdateRevision.Hash(), Method: rollout.Replace}))
	for pods, want := range map[int]int32{1: 2, 2: 1} {
		obs.Pods["cache-0"] = []*corev1.Pod{former, surplus}[:pods]
		p := plantest.Plan(obs)
		if p.Decision.Step != rollout.StepSurge {
			t.Fatalf("%+v", p.Decision)
		}
		var got []int32
		for _, a := range p.Actions.Apply {
			if set, ok := a.Apply.(*appsv1ac.ReplicaSetApplyConfiguration); ok {
				got = append(got, *set.Spec.Replicas)
			}
		}
		if !slices.Equal(got, []int32{want}) {
			t.Errorf("with %d pods, the ReplicaSet has %v replicas, want %d", pods, got, want)
		}
	}
}

// A controller whose watch of pods is late would delete the pod that has taken over instead of the one that has terminated.
func TestReplicaSetKeepsTwoPodsUntilItHasCountedTheEndOfOne(t *testing.T) {
	obs := plantest.Running(t, 1)
	set := obs.ReplicaSet("cache-0")
	for _, c := range []struct {
		has, counted int32
		surges       bool
	}{{2, 2, true}, {2, 1, false}, {1, 2, false}} {
		set.Spec.Replicas, set.Status.Replicas = ptr.To(c.has), c.counted
		p := plantest.Plan(obs)
		if surges := plan.DesiredShards(obs, p.Shards, p.Decision, "", plan.Scaling{})[0].Surge; surges != c.surges {
			t.Errorf("of %d replicas and %d pods counted, with one pod, it has two replicas: %t", c.has, c.counted, surges)
		}
	}
}

// With two replicas, the third pod would stay, and drains of all shards wait for it.
func TestPausedHandoverLeavesOnePod(t *testing.T) {
	obs := plantest.Running(t, 2)
	obs.Memcached.Spec.Paused = true
	plantest.Read(obs)
	set := obs.ReplicaSet("cache-1")
	set.ResourceVersion, set.Spec.Replicas, set.Status.Replicas = "another", ptr.To[int32](2), 1 // the former pod was deleted and counted
	if got := describe(plantest.Plan(obs).Actions); !slices.Contains(got, "update ReplicaSet cache-1") {
		t.Errorf("%q", got)
	}
	obs.Memcached.Spec.Config.Threads = ptr.To[int32](2)
	plantest.Read(obs)
	set.Spec.Template.Annotations = resources.PodAnnotations(obs.UpdateRevision)
	next := plantest.Pod(obs, "cache-1", "y")
	shardtest.Starting(next)
	obs.Pods["cache-1"] = append(obs.Pods["cache-1"], next)
	// Kubernetes expects both pods, so that the budget admits one more that isn't ready.
	if got := describe(plantest.Plan(obs).Actions); !slices.Equal(got, []string{"update PodDisruptionBudget cache", "again in 1s"}) {
		t.Errorf("while a second pod starts: %q", got)
	}
}

func TestPlanKnowsWhatDisturbsClients(t *testing.T) {
	obs := plantest.Running(t, 2)
	for what, c := range map[string]struct {
		change               func(p *plan.Plan)
		disruptive, replaces bool
	}{
		"nothing":                 {func(*plan.Plan) {}, false, false},
		"a step that waits":       {func(p *plan.Plan) { p.Decision.Step = rollout.StepAwait }, false, false},
		"an update in place":      {func(p *plan.Plan) { p.Decision.Step = rollout.StepUpdateInPlace }, true, false},
		"a replacement begins":    {func(p *plan.Plan) { p.Decision.Step = rollout.StepSurge }, true, true},
		"a replacement continues": {func(p *plan.Plan) { p.Decision.Step = rollout.StepSurge; p.Shards[0].Rollout.Template = "another" }, true, false},
		"a shard is deleted":      {func(p *plan.Plan) { p.Actions.ScaleIn = []resources.APIObject{obs.ReplicaSet("cache-1")} }, true, false},
		"an external name is deleted": {func(p *plan.Plan) {
			p.Actions.Delete = []resources.APIObject{resources.NewObject(resources.KindService)}
		}, true, false},
		"a policy is deleted": {func(p *plan.Plan) {
			p.Actions.Delete = []resources.APIObject{resources.NewObject(resources.KindNetworkPolicy)}
		}, false, false},
	} {
		p := plantest.Plan(obs)
		p.Decision.Shard = "cache-0"
		c.change(&p)
		if p.IsDisruptive() != c.disruptive || p.BeginsReplacement() != c.replaces {
			t.Errorf("%s: disturbs clients %t, replaces a pod %t", what, p.IsDisruptive(), p.BeginsReplacement())
		}
	}
}

func TestResultHasTheErrorsToRetry(t *testing.T) {
	if err := (plan.Result{}).Retry(); err != nil {
		t.Error(err)
	}
	if err := (plan.Result{Failures: []error{errors.New("timeout")}, Rejections: []error{errors.New("denied")}}).Retry(); err == nil || err.Error() != "timeout" {
		t.Error(err)
	}
}

func TestReportsOfSecretsAreForgottenWithTheirPods(t *testing.T) {
	obs := plantest.Running(t, 2, func(s *v1beta1.MemcachedSpec) { s.TLS = v1beta1.TLSSpec{Mode: v1beta1.TLSRequired} })
	report := agentwire.Secrets{Certificate: agentwire.Certificate{SHA256: "abc"}}
	obs.Agents["cache-0-x"] = agentwire.Status{Secrets: &report}
	obs.Secrets = map[types.UID]agentwire.Secrets{"cache-1-x": report, "gone": report}
	obs.ReadSecrets()
	if len(obs.Secrets) != 2 || !obs.Secrets["cache-0-x"].ReadAt.Equal(obs.Now) || !obs.Secrets["cache-1-x"].ReadAt.IsZero() {
		t.Errorf("%+v", obs.Secrets)
	}
	obs.Memcached.Spec.TLS = v1beta1.TLSSpec{}
	if obs.ReadSecrets(); len(obs.Secrets) != 0 {
		t.Errorf("without TLS: %+v", obs.Secrets)
	}
}

func TestReportsOfSecretsAreReadEachMinute(t *testing.T) {
	for name, c := range map[string]struct {
		ago         [2]time.Duration
		unreachable bool
		want        []string
	}{
		"both are recent":            {[2]time.Duration{10 * time.Second, 20 * time.Second}, false, []string{"again in 40s"}},
		"one is due":                 {[2]time.Duration{10 * time.Second, time.Minute}, false, []string{"again in 1s"}},
		"one's agent doesn't answer": {[2]time.Duration{10 * time.Second, time.Minute}, true, []string{"again in 1s"}},
	} {
		obs := plantest.Running(t, 2, func(s *v1beta1.MemcachedSpec) { s.TLS = v1beta1.TLSSpec{Mode: v1beta1.TLSRequired} })
		for i, pod := range []*corev1.Pod{obs.Pods["cache-0"][0], obs.Pods["cache-1"][0]} {
			shardtest.MountTLS(pod, "cache-tls")
			obs.Secrets[pod.UID] = agentwire.Secrets{ReadAt: obs.Now.Add(-c.ago[i])}
		}
		obs.Unreachable["cache-1-x"] = c.unreachable
		if diff := cmp.Diff(c.want, describe(plantest.Plan(obs).Actions)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestProgressOfAHandoverIsRead(t *testing.T) {
	for pass, want := range map[int]string{0: "again in 1s", 2: "again in 5s"} {
		obs := plantest.Running(t, 1)
		next := plantest.Pod(obs, "cache-0", "y")
		shardtest.Starting(next)
		obs.Pods["cache-0"] = append(obs.Pods["cache-0"], next)
		obs.Pods["cache-0"][0].DeletionTimestamp = &metav1.Time{Time: obs.Now}
		obs.Answers[next.Name] = agentwire.Status{Phase: agentwire.PhaseReceiving, Handover: &agentwire.Progress{Pass: pass}}
		plantest.Read(obs)
		if got := describe(plantest.Plan(obs).Actions); len(got) != 1 || got[0] != want {
			t.Errorf("pass %d: %q, want %s", pass, got, want)
		}
		if names := observation.AgentsToQuery(obs); len(names) != 1 || names[0] != next {
			t.Errorf("%d agents are queried", len(names))
		}
	}
}
