package status

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/event"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/observation"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/plan"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/plan/plantest"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/rollout"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/shard"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/shard/shardtest"
	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
)

// describe returns the conditions of a status: those that are as in the steady state are omitted, and so are Reconciling
// and Stalled, which follow from the others.
func describe(s v1beta1.MemcachedStatus) (lines []string) {
	for _, steady := range []string{"Ready True AllShardsReady", "Available True AllShardsReady", "Progressing False UpToDate", "Degraded False AsExpected"} {
		kind, _, _ := strings.Cut(steady, " ")
		c := meta.FindStatusCondition(s.Conditions, kind)
		if line := fmt.Sprintf("%s %s %s", c.Type, c.Status, c.Reason); line != steady {
			lines = append(lines, line+": "+c.Message)
		}
	}
	return lines
}

// reject lets the API server reject the pods of a shard.
func reject(obs *observation.Observation, name string) {
	obs.ReplicaSet(name).Status.Conditions = []appsv1.ReplicaSetCondition{{Type: appsv1.ReplicaSetReplicaFailure, Status: corev1.ConditionTrue, Reason: "FailedCreate", Message: "exceeded quota"}}
}

// terminating gives shard 1 a former pod whose grace period was over so long ago.
func terminating(obs *observation.Observation, ago time.Duration) {
	former := plantest.Pod(obs, "cache-1", "former")
	former.DeletionTimestamp = &metav1.Time{Time: obs.Now.Add(-ago)}
	obs.Pods["cache-1"] = append(obs.Pods["cache-1"], former)
}

const stuck = "shard cache-1: pod cache-1-former has been terminating for longer than its grace period, and node node1 doesn't say that it has stopped; " +
	"if the node no longer exists, remove it, or taint it out-of-service: kubectl taint node node1 node.kubernetes.io/out-of-service=nodeshutdown:NoExecute"

// limitMemory sets the memory limit of the pod of shard 1.
func limitMemory(obs *observation.Observation, limit string) {
	obs.Pods["cache-1"][0].Spec.Containers = []corev1.Container{{Name: "proxy"}, {Name: resources.Container, Resources: corev1.ResourceRequirements{
		Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(limit)}}}}
}

const tooSmall = "shard cache-1: the memory limit of pod cache-1-x is 1Mi, and memcached needs 159Mi; " +
	"exclude the pods from what has lowered it, and replace this one: kubectl annotate pod cache-1-x -n default cache.memcached-operator.io/move=1"

func deleted(obs *observation.Observation) {
	obs.Memcached.DeletionTimestamp = &metav1.Time{Time: obs.Now}
}

func sized(n int32) func(*observation.Observation) {
	return func(obs *observation.Observation) { *obs.Memcached.Spec.Size = n }
}

// Each case changes one thing in the steady state of a Memcached of three shards.
func TestConditionsFollowWhatWasObserved(t *testing.T) {
	serviceOf := func(name, state string) func(*observation.Observation) {
		return func(obs *observation.Observation) {
			key := resources.Key{Kind: resources.KindService, Name: name}
			delete(obs.Objects, key)
			plantest.AddObject(obs, key, state)
		}
	}
	updating := func(decision rollout.Decision) (func(*observation.Observation), func(*plan.Plan, *plan.Result)) {
		return func(*observation.Observation) {}, func(p *plan.Plan, _ *plan.Result) { p.Decision = decision }
	}
	type change = func(*observation.Observation)
	type outcome = func(*plan.Plan, *plan.Result)
	nothing, asPlanned := func(*observation.Observation) {}, func(*plan.Plan, *plan.Result) {}
	unsupported := resources.UnsupportedVersion("1.5.0", v1beta1.TLSSpec{}, v1beta1.AuthSpec{}) + "; nothing changes until then"
	withDecision := func(d rollout.Decision) outcome { _, o := updating(d); return o }
	for name, c := range map[string]struct {
		change  change
		outcome outcome
		want    []string
		phase   v1beta1.Phase
	}{
		"steady state": {nothing, asPlanned, nil, v1beta1.PhaseRunning},
		"one shard too few": {func(obs *observation.Observation) { shardtest.Starting(obs.Pods["cache-1"][0]) }, asPlanned, []string{
			"Ready False ShardsStarting: waiting for cache-1", "Available False ShardsNotReady: 2 of 3 shards are ready; not ready: cache-1", "Progressing True ShardsStarting: waiting for cache-1",
		}, v1beta1.PhaseProgressing},
		"two shards too few": {func(obs *observation.Observation) {
			shardtest.Starting(obs.Pods["cache-0"][0])
			delete(obs.Pods, "cache-2")
		}, asPlanned, []string{
			"Ready False ShardsStarting: waiting for cache-0, cache-2", "Available False ShardsNotReady: 1 of 3 shards are ready; not ready: cache-0, cache-2", "Progressing True ShardsStarting: waiting for cache-0, cache-2",
		}, v1beta1.PhaseProgressing},
		"no Service leads to a shard": {serviceOf("cache-1", "terminating"), asPlanned, []string{
			"Ready False WaitingForGarbageCollection: waiting for the deletion of Service cache-1",
			"Available False ShardsNotReady: 2 of 3 shards are ready; not ready: cache-1",
			"Progressing True WaitingForGarbageCollection: waiting for the deletion of Service cache-1",
		}, v1beta1.PhaseProgressing},
		"another owner has a Service": {serviceOf("cache-1", "foreign"), asPlanned, []string{
			"Ready False NameConflict: Service cache-1 already exists and isn't managed by this Memcached; delete it, or create the Memcached with another name",
			"Available False ShardsNotReady: 2 of 3 shards are ready; not ready: cache-1", "Progressing True ShardsStarting: waiting for cache-1",
			"Degraded True NameConflict: Service cache-1 already exists and isn't managed by this Memcached; delete it, or create the Memcached with another name",
		}, v1beta1.PhaseDegraded},
		"it scales out": {sized(5), asPlanned, []string{
			"Ready False ScalingOut: from 3 to 5 shards", "Available False ShardsNotReady: 3 of 5 shards are ready; not ready: cache-3, cache-4", "Progressing True ScalingOut: from 3 to 5 shards",
		}, v1beta1.PhaseProgressing},
		"it scales in": {sized(2), asPlanned, []string{
			"Ready False ScalingIn: from 3 to 2 shards", "Progressing True ScalingIn: from 3 to 2 shards",
		}, v1beta1.PhaseProgressing},
		"it scales in when clients know": {func(obs *observation.Observation) {
			sized(2)(obs)
			obs.Memcached.Spec.Access.Discovery.Mode = v1beta1.DiscoveryElastiCache
		}, asPlanned, []string{
			"Ready False ScalingIn: from 3 to 2 shards at 2026-11-18T12:01:30Z, after clients have read the new list",
			"Progressing True ScalingIn: from 3 to 2 shards at 2026-11-18T12:01:30Z, after clients have read the new list",
		}, v1beta1.PhaseProgressing},
		"it scales in to 0": {sized(0), asPlanned, []string{
			"Ready False ScalingIn: from 3 to 0 shards", "Available False NoShards: spec.size is 0", "Progressing True ScalingIn: from 3 to 0 shards",
		}, v1beta1.PhaseProgressing},
		"a second pod waits for the items": {func(obs *observation.Observation) { receiving(agentwire.Status{})(obs, nil) }, asPlanned, nil, v1beta1.PhaseRunning},
		"both pods of a shard serve": {func(obs *observation.Observation) {
			receiving(agentwire.Status{Phase: agentwire.PhaseFollowing})(obs, nil)
			obs.Pods["cache-0"][1].Status.Conditions = obs.Pods["cache-0"][0].Status.Conditions
		}, asPlanned, nil, v1beta1.PhaseRunning},
		"it is paused": {func(obs *observation.Observation) { obs.Memcached.Spec.Paused = true }, asPlanned, []string{"Progressing False Paused: nothing changes until spec.paused is false"}, v1beta1.PhasePaused},
		"it is paused, and has another size": {func(obs *observation.Observation) {
			obs.Memcached.Spec.Paused = true
			sized(5)(obs)
			obs.Memcached.Status.Servers = []string{"cache-0.", "cache-1.", "cache-2."}
		}, asPlanned, []string{
			"Ready False Paused: nothing changes until spec.paused is false", "Progressing False Paused: nothing changes until spec.paused is false"}, v1beta1.PhasePaused},
		"it is being deleted": {deleted, asPlanned, []string{"Ready False Deleting: deleting the shards", "Progressing True Deleting: deleting the shards"}, v1beta1.PhaseDeleting},
		"it is being deleted while paused": {func(obs *observation.Observation) { deleted(obs); obs.Memcached.Spec.Paused = true }, asPlanned, []string{
			"Ready False Deleting: deleting the shards", "Progressing True Deleting: deleting the shards"}, v1beta1.PhaseDeleting},
		"it is being deleted after a backup": {deleted, func(p *plan.Plan, _ *plan.Result) { p.FinalBackup.Message = "copying" }, []string{
			"Ready False BackingUp: copying", "Progressing True BackingUp: copying"}, v1beta1.PhaseDeleting},
		"it isn't deleted, since its backup failed": {deleted, func(p *plan.Plan, _ *plan.Result) {
			p.FinalBackup.Message, p.FinalBackup.Problem = "copying", &shard.Problem{Reason: v1beta1.ReasonFinalBackupFailed, Message: "it stays"}
		}, []string{
			"Ready False FinalBackupFailed: it stays", "Progressing True BackingUp: copying", "Degraded True FinalBackupFailed: it stays"}, v1beta1.PhaseDeleting},
		"it is being filled": {nothing, func(p *plan.Plan, _ *plan.Result) {
			p.Bootstrap.Status = &v1beta1.BootstrapStatus{Phase: v1beta1.TransferRunning, Message: "restoring"}
		}, []string{
			"Ready False Bootstrapping: restoring", "Progressing True Bootstrapping: restoring"}, v1beta1.PhaseProgressing},
		"a write failed": {nothing, func(_ *plan.Plan, res *plan.Result) {
			res.Failures = []error{errors.New("timeout"), errors.New("another")}
		}, []string{
			"Ready False Retrying: timeout; retrying", "Progressing True Retrying: timeout; retrying"}, v1beta1.PhaseProgressing},
		"a write was rejected": {nothing, func(_ *plan.Plan, res *plan.Result) { res.Rejections = []error{errors.New("Service cache: denied")} }, []string{
			"Ready False ApplyRejected: the API server rejected Service cache: denied", "Degraded True ApplyRejected: the API server rejected Service cache: denied"}, v1beta1.PhaseBlocked},
		"it keeps its image": {func(obs *observation.Observation) { obs.DefaultImageHold.Message = "keeps image" }, asPlanned, []string{"Progressing False KeepingImage: keeps image"}, v1beta1.PhaseRunning},
		"a shard is updated": {nothing, withDecision(rollout.Decision{Shard: "cache-1", Step: rollout.StepUpdateInPlace, Change: rollout.Change{Method: rollout.Restart, Description: "config.threads 4 → 2"}}), []string{
			"Ready False UpdatingShard: shard 2 of 3: config.threads 4 → 2", "Progressing True UpdatingShard: shard 2 of 3: config.threads 4 → 2"}, v1beta1.PhaseProgressing},
		"the update waits for another shard": {nothing, withDecision(rollout.Decision{Shard: "cache-1", Gate: rollout.GateShardInTransition, Message: "waiting for cache-0"}), []string{
			"Ready False ShardInTransition: shard 2 of 3; waiting for cache-0", "Progressing True ShardInTransition: shard 2 of 3; waiting for cache-0"}, v1beta1.PhaseProgressing},
		"the update waits for its window": {nothing, withDecision(rollout.Decision{Shard: "cache-0", Gate: rollout.GateOutsideMaintenanceWindow, Message: "waiting", RequeueAfter: time.Hour}), []string{
			"Ready False OutsideMaintenanceWindow: shard 1 of 3; waiting, which opens at 13:00 UTC on Wednesday, 18 November",
			"Progressing False OutsideMaintenanceWindow: shard 1 of 3; waiting, which opens at 13:00 UTC on Wednesday, 18 November"}, v1beta1.PhaseRunning},
		"the update requires intervention": {nothing, withDecision(rollout.Decision{Shard: "cache-0", Gate: rollout.GateUpdatePathNotAllowed, Message: "not allowed", NeedsIntervention: true}), []string{
			"Ready False UpdatePathNotAllowed: not allowed", "Progressing False UpdatePathNotAllowed: shard 1 of 3; not allowed", "Degraded True UpdatePathNotAllowed: not allowed"}, v1beta1.PhaseBlocked},
		"the update strategy is invalid": {nothing, func(p *plan.Plan, _ *plan.Result) {
			p.Invalid = &shard.Problem{Reason: "UpdateStrategyInvalid", Message: "no such zone"}
		}, []string{
			"Ready False UpdateStrategyInvalid: no such zone", "Degraded True UpdateStrategyInvalid: no such zone"}, v1beta1.PhaseBlocked},
		"the spec is rejected, and has another size": {func(obs *observation.Observation) {
			obs.Memcached.Spec.Version = "1.5.0"
			sized(5)(obs)
			obs.Memcached.Status.Servers = []string{"cache-0.", "cache-1.", "cache-2."}
		}, asPlanned, []string{
			"Ready False VersionUnsupported: " + unsupported, "Progressing False SpecRejected: nothing changes until the spec is valid", "Degraded True VersionUnsupported: " + unsupported}, v1beta1.PhaseBlocked},
		"the API server rejects a pod": {func(obs *observation.Observation) { delete(obs.Pods, "cache-1"); reject(obs, "cache-1") }, asPlanned, []string{
			"Ready False ApplyRejected: shard cache-1: the API server rejects the pod: exceeded quota", "Available False ShardsNotReady: 2 of 3 shards are ready; not ready: cache-1",
			"Progressing True ShardsStarting: waiting for cache-1", "Degraded True ApplyRejected: shard cache-1: the API server rejects the pod: exceeded quota"}, v1beta1.PhaseDegraded},
		"the API server rejects the successor of a pod that terminates": {func(obs *observation.Observation) {
			obs.Pods["cache-1"][0].DeletionTimestamp = &metav1.Time{Time: obs.Now}
			reject(obs, "cache-1")
		}, asPlanned, []string{
			"Ready False ApplyRejected: shard cache-1: the API server rejects the pod: exceeded quota",
			"Degraded True ApplyRejected: shard cache-1: the API server rejects the pod: exceeded quota"}, v1beta1.PhaseBlocked},
		"the API server doesn't let the ReplicaSet delete a pod": {func(obs *observation.Observation) {
			reject(obs, "cache-1")
			obs.ReplicaSet("cache-1").Status.Conditions[0].Reason = "FailedDelete"
			obs.Pods["cache-1"][0].DeletionTimestamp = &metav1.Time{Time: obs.Now}
		}, asPlanned, nil, v1beta1.PhaseRunning},
		"a pod is terminating": {func(obs *observation.Observation) { terminating(obs, 5*time.Minute-1) }, asPlanned, nil, v1beta1.PhaseRunning},
		"a pod has been terminating for too long": {func(obs *observation.Observation) { terminating(obs, 5*time.Minute) }, asPlanned, []string{
			"Ready False NodeLost: " + stuck, "Degraded True NodeLost: " + stuck}, v1beta1.PhaseBlocked},
		"a finalizer keeps the only pod, which has stopped": {func(obs *observation.Observation) {
			pod := obs.Pods["cache-1"][0]
			pod.DeletionTimestamp, pod.Status = &metav1.Time{Time: obs.Now.Add(-time.Hour)}, corev1.PodStatus{Phase: corev1.PodSucceeded}
		}, asPlanned, []string{
			"Ready False ShardsStarting: waiting for cache-1",
			"Available False ShardsNotReady: 2 of 3 shards are ready; not ready: cache-1", "Progressing True ShardsStarting: waiting for cache-1"}, v1beta1.PhaseProgressing},
		"an autoscaler has lowered a memory limit": {func(obs *observation.Observation) { limitMemory(obs, "1Mi") }, asPlanned, []string{
			"Ready False MemoryLimitTooSmall: " + tooSmall, "Degraded True MemoryLimitTooSmall: " + tooSmall}, v1beta1.PhaseBlocked},
		"an autoscaler has raised a memory limit": {func(obs *observation.Observation) { limitMemory(obs, "8Gi") }, asPlanned, nil, v1beta1.PhaseRunning},
		"an update changes a memory limit": {func(obs *observation.Observation) { limitMemory(obs, "1Mi") }, withDecision(rollout.Decision{Shard: "cache-1", Step: rollout.StepAwait}), []string{
			"Ready False UpdatingShard: shard 2 of 3", "Progressing True UpdatingShard: shard 2 of 3"}, v1beta1.PhaseProgressing},
		"a pod crashes": {func(obs *observation.Observation) {
			pod := obs.Pods["cache-1"][0]
			pod.Status.ContainerStatuses[0].Image = "i:1"
			shardtest.Crashing(pod)
		}, asPlanned, []string{
			"Ready False ShardCrashes: shard cache-1: image i:1: CrashLoopBackOff: back-off", "Available False ShardsNotReady: 2 of 3 shards are ready; not ready: cache-1",
			"Progressing True ShardsStarting: waiting for cache-1", "Degraded True ShardCrashes: shard cache-1: image i:1: CrashLoopBackOff: back-off"}, v1beta1.PhaseDegraded},
		"an agent hasn't answered for minutes": {func(obs *observation.Observation) {
			obs.Unreachable["cache-1-x"] = true
			obs.Memcached.Status.Shards[1].AgentUnreachableTime = &metav1.Time{Time: obs.Now.Add(-5 * time.Minute)}
		}, asPlanned, []string{
			"Ready False AgentUnreachable: shard cache-1: the agent in pod cache-1-x hasn't answered since 11:55 UTC on 18 November; let the operator's pods connect to its TCP port 11212: check the NetworkPolicies and the service mesh",
			"Degraded True AgentUnreachable: shard cache-1: the agent in pod cache-1-x hasn't answered since 11:55 UTC on 18 November; let the operator's pods connect to its TCP port 11212: check the NetworkPolicies and the service mesh"}, v1beta1.PhaseBlocked},
		"an image has another version than its tag": {func(obs *observation.Observation) { obs.Memcached.Status.Shards[1].Version = "1.6.40" }, asPlanned, []string{
			"Ready False VersionMismatch: shard cache-1: image docker.io/library/memcached:1.6.45 contains memcached 1.6.40, but its tag says 1.6.45; use an image whose tag matches its version",
			"Degraded True VersionMismatch: shard cache-1: image docker.io/library/memcached:1.6.45 contains memcached 1.6.40, but its tag says 1.6.45; use an image whose tag matches its version"}, v1beta1.PhaseBlocked},
	} {
		t.Run(name, func(t *testing.T) {
			obs := plantest.Running(t, 3)
			c.change(obs)
			p, res := plantest.Plan(obs), plan.Result{}
			c.outcome(&p, &res)
			s := Make(obs, p, res, obs.Now)
			if diff := cmp.Diff(c.want, describe(s)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if s.Phase != c.phase {
				t.Errorf("phase %s, want %s", s.Phase, c.phase)
			}
		})
	}
}

func TestSecretThatCannotBeUsedIsReported(t *testing.T) {
	for name, c := range map[string]struct {
		report agentwire.Secrets
		reason string
		words  string
	}{
		"it can be used": {agentwire.Secrets{}, "", ""},
		"no certificate": {agentwire.Secrets{Certificate: agentwire.Certificate{Error: "tls.crt is missing"}}, v1beta1.ReasonSecretInvalid, "shard cache-0: tls.crt is missing; correct Secret cache-tls"},
		"an expired one": {agentwire.Secrets{Certificate: agentwire.Certificate{SHA256: "a", NotAfter: plantest.Now}}, v1beta1.ReasonCertificateExpiring, "shard cache-0: the certificate expired at 2026-11-18T12:00:00Z"},
		"no users":       {agentwire.Secrets{Users: agentwire.Users{Error: "there are no users"}}, v1beta1.ReasonSecretInvalid, "shard cache-0: there are no users; correct Secret cache-auth"},
	} {
		obs := plantest.Running(t, 1, func(s *v1beta1.MemcachedSpec) {
			s.TLS, s.Auth = v1beta1.TLSSpec{Mode: v1beta1.TLSRequired}, v1beta1.AuthSpec{Mode: v1beta1.AuthRequired}
		})
		pod := obs.Pods["cache-0"][0]
		shardtest.MountTLS(pod, "cache-tls")
		users := *pod.Spec.Volumes[0].DeepCopy()
		users.Name, users.Projected.Sources[0].Secret.Name = "users", "cache-auth"
		pod.Spec.Volumes = append(pod.Spec.Volumes, users)
		obs.Secrets[pod.UID] = c.report
		degraded := meta.FindStatusCondition(Make(obs, plantest.Plan(obs), plan.Result{}, obs.Now).Conditions, v1beta1.ConditionDegraded)
		if (degraded.Status == metav1.ConditionTrue) != (c.reason != "") || c.reason != "" && degraded.Reason != c.reason || !strings.Contains(degraded.Message, c.words) {
			t.Errorf("%s: %+v", name, degraded)
		}
	}
}

func TestEachShardHasAMessageUntilItServes(t *testing.T) {
	for want, change := range map[string]func(obs *observation.Observation, pod *corev1.Pod){
		"":           func(*observation.Observation, *corev1.Pod) {},
		"no pod yet": func(obs *observation.Observation, _ *corev1.Pod) { delete(obs.Pods, "cache-0") },
		"the API server rejects the pod: exceeded quota": func(obs *observation.Observation, _ *corev1.Pod) {
			delete(obs.Pods, "cache-0")
			reject(obs, "cache-0")
		},
		"starting": func(_ *observation.Observation, pod *corev1.Pod) { shardtest.Starting(pod) },
		"running, but no Service selects it": func(obs *observation.Observation, _ *corev1.Pod) {
			delete(obs.Objects, resources.Key{Kind: resources.KindService, Name: "cache-0"})
		},
		"pod next waits for the items":                                              receiving(agentwire.Status{}),
		"pod next received 50.0% of 2,000 items":                                    receiving(agentwire.Status{Handover: &agentwire.Progress{Items: 1000, Total: 2000}}),
		"pod next received 100% of 2,000 items":                                     receiving(agentwire.Status{Handover: &agentwire.Progress{Items: 3000, Total: 2000}}),
		"pod next serves new connections, and the previous pod those that are open": receiving(agentwire.Status{Phase: agentwire.PhaseFollowing}),
	} {
		obs := plantest.Running(t, 1)
		change(obs, obs.Pods["cache-0"][0])
		plantest.Read(obs)
		if got := Make(obs, plantest.Plan(obs), plan.Result{}, obs.Now).Shards[0].Message; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// receiving adds a second pod, which receives the items of the first.
func receiving(agent agentwire.Status) func(*observation.Observation, *corev1.Pod) {
	return func(obs *observation.Observation, _ *corev1.Pod) {
		next := plantest.Pod(obs, "cache-0", "next")
		next.Name = "next"
		shardtest.Starting(next)
		obs.Pods["cache-0"] = append(obs.Pods["cache-0"], next)
		if agent.Phase == "" {
			agent.Phase = agentwire.PhaseReceiving
		}
		obs.Answers["next"] = agent
	}
}

func TestShardsOfTheStatus(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*observation.Observation, *plan.Result)
		want   []string
	}{
		"those that exist": {func(*observation.Observation, *plan.Result) {}, []string{"cache-0", "cache-1"}},
		"one was just created": {func(_ *observation.Observation, res *plan.Result) {
			res.Applied[resources.Key{Kind: resources.KindReplicaSet, Name: "cache-2"}] = true
		}, []string{"cache-0", "cache-1", "cache-2"}},
		"a ReplicaSet was deleted": {func(obs *observation.Observation, _ *plan.Result) {
			delete(obs.Objects, resources.Key{Kind: resources.KindReplicaSet, Name: "cache-1"})
		}, []string{"cache-0", "cache-1"}},
		"an extra shard still exists": {func(obs *observation.Observation, _ *plan.Result) { sized(1)(obs) }, []string{"cache-0", "cache-1"}},
		"an extra shard was deleted": {func(obs *observation.Observation, _ *plan.Result) {
			sized(1)(obs)
			delete(obs.Objects, resources.Key{Kind: resources.KindReplicaSet, Name: "cache-1"})
		}, []string{"cache-0"}},
		"another owner has a name": {func(obs *observation.Observation, _ *plan.Result) {
			obs.Memcached.Status.Shards = nil
			plantest.AddObject(obs, resources.Key{Kind: resources.KindReplicaSet, Name: "cache-1"}, "foreign")
		}, []string{"cache-0"}},
	} {
		obs, res := plantest.Running(t, 2), plan.Result{Applied: map[resources.Key]bool{}}
		c.change(obs, &res)
		var got []string
		for _, s := range Make(obs, plantest.Plan(obs), res, obs.Now).Shards {
			got = append(got, s.Name)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// Then the operator tries again.
func TestLossIsRecordedWhenItsRestoreExists(t *testing.T) {
	obs := plantest.Running(t, 1)
	plantest.Answer(obs, "cache-0", agentwire.StartCold)
	p := plantest.Plan(obs)
	p.Refills.Lost = []plan.Refill{{Shard: "cache-0", Restore: "refill", Event: event.Normal(v1beta1.EventRefillStarted, "refilling")}}
	created := map[resources.Key]bool{{Kind: resources.KindRestore, Name: "refill"}: true}
	for name, c := range map[string]struct {
		res      plan.Result
		restores map[string]observation.Object
		want     string
	}{
		"it is rejected":        {plan.Result{Applied: map[resources.Key]bool{}}, nil, shardtest.RunningContainer},
		"the spec has changed":  {plan.Result{Conflict: true}, nil, shardtest.RunningContainer},
		"it is created":         {plan.Result{Applied: created}, nil, "another"},
		"it was created before": {plan.Result{}, map[string]observation.Object{"refill": {}}, "another"},
	} {
		obs.Restores = c.restores
		s := Make(obs, p, c.res, obs.Now)
		if got := s.Shards[0].ContainerID; got != c.want {
			t.Errorf("%s: the status describes the start of container %q", name, got)
		}
		reasons := reasonsOf(Events(obs.Memcached.Status, s, obs, p, c.res))
		if slices.Contains(reasons, v1beta1.EventRefillStarted) != (c.want == "another") {
			t.Errorf("%s: events %q", name, reasons)
		}
	}
}

func reasonsOf(events []event.Event) (reasons []string) {
	for _, e := range events {
		reasons = append(reasons, e.Reason)
	}
	return reasons
}

func TestBindingIsReportedWhenItsSecretIsWritten(t *testing.T) {
	obs := plantest.Running(t, 2, func(s *v1beta1.MemcachedSpec) { s.Access.Binding.Mode = v1beta1.BindingSecret })
	p := plantest.Plan(obs)
	if got := Make(obs, p, plan.Result{}, obs.Now).Binding; got == nil || got.Name != "" {
		t.Errorf("before: %+v", got)
	}
	written := plan.Result{Applied: map[resources.Key]bool{resources.KeyOf(p.Actions.Binding): true}}
	if got := Make(obs, p, written, obs.Now).Binding; got == nil || got.Name != p.Actions.Binding.Name || got.Size != 2 {
		t.Errorf("after: %+v", got)
	}
	rejected := plan.Result{BindingRejection: errors.New(strings.Repeat("x", v1beta1.MaxMessage))}
	if got := Make(obs, p, rejected, obs.Now).Binding; got == nil || len(got.Message) != v1beta1.MaxMessage {
		t.Errorf("with a long rejection: %+v", got)
	}
	obs.Memcached.Spec.Paused, obs.Memcached.Status.Binding = true, &v1beta1.BindingStatus{Name: "kept"}
	if got := Make(obs, plantest.Plan(obs), plan.Result{}, obs.Now).Binding; got == nil || got.Name != "kept" {
		t.Errorf("while paused: %+v", got)
	}
	obs.Memcached.Spec.Access.Binding.Mode = v1beta1.BindingDisabled
	if got := Make(obs, plantest.Plan(obs), plan.Result{}, obs.Now).Binding; got != nil {
		t.Errorf("without it: %+v", got)
	}
}

func TestClientsOutsideTheClusterFindTheFirstShards(t *testing.T) {
	for name, c := range map[string]struct {
		addresses []string
		policy    v1beta1.NetworkPolicySpec
		servers   []string
		message   string
	}{
		"all have an address":             {[]string{"192.0.2.1", "lb.example.com"}, v1beta1.NetworkPolicySpec{Mode: v1beta1.NetworkPolicyOpen}, []string{"192.0.2.1:11211", "lb.example.com:11211"}, ""},
		"the first one has none":          {[]string{"", "192.0.2.2"}, v1beta1.NetworkPolicySpec{Mode: v1beta1.NetworkPolicyDisabled}, nil, "1 of 2 shards have no external address, such as cache-0; check the events of the Service cache-0-ext, and whether the cluster has a controller for load balancers"},
		"an IPv6 address":                 {[]string{"fd00::1"}, v1beta1.NetworkPolicySpec{AllowedClients: []networkingv1.NetworkPolicyPeer{{IPBlock: &networkingv1.IPBlock{}}}}, []string{"[fd00::1]:11211"}, ""},
		"the namespace alone is admitted": {[]string{"192.0.2.1"}, v1beta1.NetworkPolicySpec{}, []string{"192.0.2.1:11211"}, "the NetworkPolicy admits no client outside the cluster; add an ipBlock to spec.access.networkPolicy.allowedClients"},
		"no client is admitted":           {[]string{"192.0.2.1"}, v1beta1.NetworkPolicySpec{AllowedClients: []networkingv1.NetworkPolicyPeer{{}}}, []string{"192.0.2.1:11211"}, "the NetworkPolicy admits no client outside the cluster; add an ipBlock to spec.access.networkPolicy.allowedClients"},
	} {
		obs := plantest.Running(t, int32(len(c.addresses)), func(s *v1beta1.MemcachedSpec) {
			s.Access.External.Mode, s.Access.NetworkPolicy = v1beta1.ExternalLoadBalancer, c.policy
		}) //nolint:gosec // two
		for i, address := range c.addresses {
			ingress := corev1.LoadBalancerIngress{IP: address}
			if strings.HasSuffix(address, ".com") {
				ingress = corev1.LoadBalancerIngress{Hostname: address}
			}
			obs.Objects[resources.ExternalKey(obs.Names[i])].APIObject.(*corev1.Service).Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{ingress}
		}
		if s := Make(obs, plantest.Plan(obs), plan.Result{}, obs.Now).External; !slices.Equal(s.Servers, c.servers) || s.Message != c.message {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

func TestCertificateThatExpiresFirstIsReported(t *testing.T) {
	at := func(hours int) time.Time { return plantest.Now.Add(time.Duration(hours) * time.Hour) }
	early, late := agentwire.Certificate{SHA256: "b", NotAfter: at(1), PlainConnections: 3}, agentwire.Certificate{SHA256: "a", NotAfter: at(2), PlainConnections: 4}
	same := agentwire.Certificate{SHA256: "a", NotAfter: at(1)}
	was := &v1beta1.TLSStatus{Fingerprint: "was", NotAfter: ptr.To(v1beta1.Time(at(9))), PlainConnections: ptr.To[int64](7)}
	for name, c := range map[string]struct {
		mode        v1beta1.TLSMode
		reports     []*agentwire.Certificate // by shard; nil is unknown
		fingerprint string
		plain       *int64
	}{
		"the first shard's":                          {"", []*agentwire.Certificate{&early, &late}, "b", nil},
		"the second shard's":                         {"", []*agentwire.Certificate{&late, &early}, "b", nil},
		"of two that expire together, the lower one": {"", []*agentwire.Certificate{&early, &same}, "a", nil},
		"of one shard":                               {"", []*agentwire.Certificate{nil, &late}, "a", nil},
		"of none yet":                                {"", []*agentwire.Certificate{nil, nil}, "was", nil},
		"all count plain connections":                {v1beta1.TLSPermissive, []*agentwire.Certificate{&early, &late}, "b", ptr.To[int64](7)},
		"not all count plain connections":            {v1beta1.TLSPermissive, []*agentwire.Certificate{&early, nil}, "b", was.PlainConnections},
	} {
		mode := v1beta1.TLSRequired
		if c.mode != "" {
			mode = c.mode
		}
		obs := plantest.Running(t, 3, func(s *v1beta1.MemcachedSpec) { s.TLS.Mode = mode })
		delete(obs.Pods, "cache-2")
		plantest.Read(obs)
		obs.Memcached.Status.TLS = was
		for i, report := range c.reports {
			if report != nil {
				obs.Secrets[obs.Pods[obs.Names[i]][0].UID] = agentwire.Secrets{Certificate: *report}
			}
		}
		s := tlsStatus(obs)
		if s.Fingerprint != c.fingerprint || ptr.Deref(s.PlainConnections, -1) != ptr.Deref(c.plain, -1) {
			t.Errorf("%s: %+v, want %s", name, s, c.fingerprint)
		}
	}
}

// A client that connects once a day is in no number of open connections.
func TestLastPlainConnectionIsThatOfAllShards(t *testing.T) {
	at := func(hours int) time.Time {
		return plantest.Now.Truncate(time.Hour).Add(time.Duration(hours) * time.Hour)
	}
	minutes := func(hours int) agentwire.Certificate {
		return agentwire.Certificate{LastPlainConnection: at(hours).Add(59 * time.Minute)}
	}
	none := time.Time{}
	for name, c := range map[string]struct {
		mode    v1beta1.TLSMode
		was     time.Time
		reports []agentwire.Certificate // by shard, of two; nil without shards
		want    time.Time
	}{
		"the latest one":                         {v1beta1.TLSPermissive, none, []agentwire.Certificate{minutes(-9), minutes(-7)}, at(-7)},
		"one shard isn't in the mode yet":        {v1beta1.TLSPermissive, none, []agentwire.Certificate{minutes(-9), {}}, none},
		"one shard is unknown":                   {v1beta1.TLSPermissive, none, []agentwire.Certificate{minutes(-9)}, none},
		"one shard is unknown, with a later one": {v1beta1.TLSPermissive, at(-20), []agentwire.Certificate{minutes(-9)}, at(-9)},
		"a former pod's":                         {v1beta1.TLSPermissive, at(-5), []agentwire.Certificate{minutes(-9), minutes(-7)}, at(-5)},
		"one of another clock":                   {v1beta1.TLSPermissive, none, []agentwire.Certificate{minutes(9), minutes(7)}, at(0)},
		"no shard":                               {v1beta1.TLSPermissive, none, nil, none},
		"without the mode":                       {v1beta1.TLSRequired, at(-5), []agentwire.Certificate{minutes(-9), minutes(-7)}, none},
	} {
		size := int32(2)
		if c.reports == nil {
			size = 0
		}
		obs := plantest.Running(t, size, func(s *v1beta1.MemcachedSpec) { s.TLS.Mode = c.mode })
		obs.Memcached.Status.TLS = &v1beta1.TLSStatus{}
		if !c.was.IsZero() {
			obs.Memcached.Status.TLS.LastPlainConnectionTime = new(v1beta1.Time(c.was))
		}
		for i, report := range c.reports {
			obs.Secrets[obs.Pods[obs.Names[i]][0].UID] = agentwire.Secrets{Certificate: report}
		}
		if got := ptr.Deref(tlsStatus(obs).LastPlainConnectionTime, metav1.Time{}); !got.Time.Equal(c.want) {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func TestEventsReportWhatHasChanged(t *testing.T) {
	type statuses = func(was, next *v1beta1.MemcachedStatus)
	shard1 := func(change func(was, next *v1beta1.ShardStatus)) statuses {
		return func(was, next *v1beta1.MemcachedStatus) { change(&was.Shards[1], &next.Shards[1]) }
	}
	restarted := func(result v1beta1.StartResult) statuses {
		return shard1(func(_, next *v1beta1.ShardStatus) {
			next.ContainerID, next.StartResult, next.Items, next.ItemsBefore, next.GapMilliseconds = "another", result, 90, 100, 250
		})
	}
	degraded := func(s *v1beta1.MemcachedStatus, reason string) {
		meta.SetStatusCondition(&s.Conditions, metav1.Condition{Type: v1beta1.ConditionDegraded, Status: metav1.ConditionTrue, Reason: reason, Message: "message"})
	}
	cost := func(s *v1beta1.MemcachedStatus, misses *int64, recovered *metav1.Time) {
		s.LastUpdate = &v1beta1.UpdateCost{Revision: "r", StartTime: metav1.NewTime(plantest.Now), ExtraMisses: misses, HitRatioRecoveryTime: recovered}
	}
	scales := func(from, to v1beta1.ScalingStep) statuses {
		return func(was, next *v1beta1.MemcachedStatus) {
			was.Size = 2 // which other events say
			was.Scaling = &v1beta1.ScalingStatus{From: 2, To: 3, Step: from, Moved: 1000, StaleMilliseconds: 500}
			next.Scaling = was.Scaling.DeepCopy()
			next.Scaling.Step = to
		}
	}
	later := metav1.NewTime(plantest.Now.Add(90 * time.Second))
	for name, c := range map[string]struct {
		change statuses
		agent  agentwire.Start
		want   []string
	}{
		"nothing":            {func(*v1beta1.MemcachedStatus, *v1beta1.MemcachedStatus) {}, agentwire.Start{}, nil},
		"it was scaled out":  {func(was, _ *v1beta1.MemcachedStatus) { was.Size = 1 }, agentwire.Start{}, []string{"Normal Scaled: from 1 to 3 shards"}},
		"it was scaled in":   {func(was, _ *v1beta1.MemcachedStatus) { was.Size = 5 }, agentwire.Start{}, []string{"Normal Scaled: from 5 to 3 shards. Keys that return to a remaining shard may have an old value there, from before the last scale-out, until its TTL"}},
		"it was scaled to 0": {func(was, next *v1beta1.MemcachedStatus) { next.Size, next.Shards, was.Shards = 0, nil, nil }, agentwire.Start{}, []string{"Normal Scaled: from 3 to 0 shards"}},
		"it was scaled, and no items moved": {func(was, _ *v1beta1.MemcachedStatus) { was.Servers = []string{"a", "b"} }, agentwire.Start{}, []string{
			"Normal ScaledCold: from 2 to 3 shards; keys that move are missing at first: set spec.access.hashing to what your clients use"}},
		"items begin to move": {scales(v1beta1.ScalingPreparing, v1beta1.ScalingCopying), agentwire.Start{}, []string{"Normal ScalingStarted: from 2 to 3 shards: copying the items of the keys that move"}},
		"items move":          {scales(v1beta1.ScalingCopying, v1beta1.ScalingCopying), agentwire.Start{}, nil},
		"items have moved":    {scales(v1beta1.ScalingPublishing, v1beta1.ScalingWaiting), agentwire.Start{}, []string{"Normal ScalingPublished: from 2 to 3 shards: copied 1,000 items; give your clients the new list in status.servers"}},
		"no shard has the items of others": {scales(v1beta1.ScalingClosing, v1beta1.ScalingFinishing), agentwire.Start{}, []string{
			"Normal ScalingFinished: from 2 to 3 shards: copied 1,000 items; a client could read a value 500ms after another one had changed it"}},
		"items can't move": {func(was, next *v1beta1.MemcachedStatus) {
			scales(v1beta1.ScalingCopying, v1beta1.ScalingFinishing)(was, next)
			next.Scaling.Problem = "shard cache-2: no ring"
		}, agentwire.Start{}, []string{"Warning ScaledCold: from 2 to 3 shards; keys that move are missing at first: shard cache-2: no ring"}},
		"it is new":                      {func(was, _ *v1beta1.MemcachedStatus) { was.Size, was.ObservedGeneration = 0, -1 }, agentwire.Start{}, nil},
		"a shard is ready":               {shard1(func(was, _ *v1beta1.ShardStatus) { was.Ready = false }), agentwire.Start{}, []string{"Normal ShardReady cache-1-x: shard cache-1 is ready in pod cache-1-x"}},
		"a shard is not ready":           {shard1(func(_, next *v1beta1.ShardStatus) { next.Ready = false }), agentwire.Start{}, []string{"Warning ShardNotReady cache-1-x: shard cache-1 is not ready: not ready"}},
		"a shard has no pod":             {shard1(func(_, next *v1beta1.ShardStatus) { next.Ready, next.PodName, next.Message = false, "", "no pod yet" }), agentwire.Start{}, []string{"Warning ShardNotReady cache-1-x: shard cache-1 is not ready: no pod yet"}},
		"a shard started empty":          {restarted(v1beta1.StartCold), agentwire.Start{}, []string{"Warning ShardStartedEmpty cache-1-x: shard cache-1 started empty in pod cache-1-x"}},
		"a shard started empty, and why": {restarted(v1beta1.StartCold), agentwire.Start{Reason: "no file"}, []string{"Warning ShardStartedEmpty cache-1-x: shard cache-1 started empty in pod cache-1-x: no file"}},
		"a shard started empty in another pod": {func(was, next *v1beta1.MemcachedStatus) {
			restarted(v1beta1.StartCold)(was, next)
			was.Shards[1].PodName = "cache-1-former"
		}, agentwire.Start{Reason: agentwire.FirstStart},
			[]string{"Warning ShardStartedEmpty cache-1-x: shard cache-1 started empty in pod cache-1-x: the former pod had terminated before this one could start, or didn't respond"}},
		"an update restarts a shard": {func(_, next *v1beta1.MemcachedStatus) {
			next.Update, next.Shards[1].Ready = &v1beta1.UpdateStatus{Revision: "r", Shard: "cache-1"}, false
		}, agentwire.Start{}, []string{"Normal UpdateStarted: "}},
		"a shard is not ready while an update restarts another one": {func(_, next *v1beta1.MemcachedStatus) {
			next.Update, next.Shards[1].Ready = &v1beta1.UpdateStatus{Revision: "r", Shard: "cache-0"}, false
		}, agentwire.Start{}, []string{"Normal UpdateStarted: ", "Warning ShardNotReady cache-1-x: shard cache-1 is not ready: not ready"}},
		"a shard is not ready while its update waits": {func(_, next *v1beta1.MemcachedStatus) {
			next.Update, next.Shards[1].Ready = &v1beta1.UpdateStatus{Revision: "r", Shard: "cache-1", Gate: v1beta1.GatePaused}, false
		}, agentwire.Start{}, []string{"Normal UpdateStarted: ", "Warning ShardNotReady cache-1-x: shard cache-1 is not ready: not ready"}},
		"a shard that restarted is ready": {func(was, next *v1beta1.MemcachedStatus) {
			restarted(v1beta1.StartWarm)(was, next)
			was.Shards[1].Ready = false
		}, agentwire.Start{}, []string{"Normal ShardKeptItems cache-1-x: shard cache-1 restarted in pod cache-1-x with 90 of 100 items"}},
		"a shard kept its items": {restarted(v1beta1.StartWarm), agentwire.Start{}, []string{"Normal ShardKeptItems cache-1-x: shard cache-1 restarted in pod cache-1-x with 90 of 100 items"}},
		"a shard moved":          {restarted(v1beta1.StartHandedOver), agentwire.Start{}, []string{"Normal ShardHandedOver cache-1-x: shard cache-1 moved to pod cache-1-x with 90 of 100 items; no pod responded for 250ms"}},
		"a shard moved while both served": {restarted(v1beta1.StartHandedOver), agentwire.Start{Mode: agentwire.ModeAvailable, StaleSeconds: 1.5, Reason: "full"}, []string{
			"Normal ShardHandedOver cache-1-x: shard cache-1 moved to pod cache-1-x with 90 of 100 items; no pod responded for 250ms, and clients could read values that were up to 1.5s old (mode Available); full"}},
		"a user restarted a shard": {shard1(func(_, next *v1beta1.ShardStatus) {
			next.RestartAnnotation, next.StartResult = "now", v1beta1.StartWarm
		}), agentwire.Start{}, []string{"Normal ShardKeptItems cache-1-x: shard cache-1 restarted in pod cache-1-x with 0 of 0 items"}},
		"the first start of a shard": {shard1(func(was, next *v1beta1.ShardStatus) { was.StartResult, next.ContainerID = "", "another" }), agentwire.Start{}, nil},
		"it is Degraded":             {func(_, next *v1beta1.MemcachedStatus) { degraded(next, "NameConflict") }, agentwire.Start{}, []string{"Warning NameConflict: message"}},
		"it is Degraded for another reason": {func(was, next *v1beta1.MemcachedStatus) {
			degraded(was, "UpdateFailed")
			degraded(next, "NameConflict")
		}, agentwire.Start{}, []string{"Warning NameConflict: message"}},
		"it remains Degraded": {func(was, next *v1beta1.MemcachedStatus) {
			degraded(was, "NameConflict")
			degraded(next, "NameConflict")
		}, agentwire.Start{}, nil},
		"it is not Degraded any more": {func(was, _ *v1beta1.MemcachedStatus) { degraded(was, "NameConflict") }, agentwire.Start{}, []string{"Normal AsExpected: no problems detected"}},
		"it was filled": {func(was, next *v1beta1.MemcachedStatus) {
			was.Bootstrap, next.Bootstrap = &v1beta1.BootstrapStatus{Phase: v1beta1.TransferRunning}, &v1beta1.BootstrapStatus{Phase: v1beta1.TransferComplete, Message: "filled"}
		}, agentwire.Start{}, []string{"Normal BootstrapFinished: filled"}},
		"it could not be filled": {func(was, next *v1beta1.MemcachedStatus) {
			was.Bootstrap, next.Bootstrap = &v1beta1.BootstrapStatus{Phase: v1beta1.TransferRunning}, &v1beta1.BootstrapStatus{Phase: v1beta1.TransferFailed}
		}, agentwire.Start{}, []string{"Warning BootstrapFinished: Failed"}},
		"it was filled before": {func(was, next *v1beta1.MemcachedStatus) {
			was.Bootstrap, next.Bootstrap = &v1beta1.BootstrapStatus{Phase: v1beta1.TransferComplete}, &v1beta1.BootstrapStatus{Phase: v1beta1.TransferComplete}
		}, agentwire.Start{}, nil},
		"an update is finished": {func(was, next *v1beta1.MemcachedStatus) {
			was.Update = &v1beta1.UpdateStatus{Revision: next.Shards[0].Revision, Items: 900, ItemsBefore: 1000}
			next.LastUpdate = &v1beta1.UpdateCost{Revision: was.Update.Revision, UnavailableMilliseconds: 1500, MaxUnavailableMilliseconds: 1000}
		}, agentwire.Start{}, []string{"Normal UpdateFinished: updated 3 shards to image docker.io/library/memcached:1.6.45; kept 90.0% of 1,000 items; unavailable for 1.5s in total, for 1s at most"}},
		"the misses of an update are measured": {func(was, next *v1beta1.MemcachedStatus) {
			cost(was, nil, nil)
			cost(next, ptr.To[int64](1234), &later)
		}, agentwire.Start{}, []string{
			"Normal HitRatioMeasured: the update caused 1,234 additional misses; the hit ratio recovered 1m30s after the update started"}},
		"the hit ratio has not recovered": {func(was, next *v1beta1.MemcachedStatus) { cost(was, nil, nil); cost(next, ptr.To[int64](1234), nil) }, agentwire.Start{}, []string{
			"Normal HitRatioMeasured: the update caused 1,234 additional misses; the hit ratio had not recovered 30m after the update"}},
		"the misses were measured before": {func(was, next *v1beta1.MemcachedStatus) {
			cost(was, ptr.To[int64](1), nil)
			cost(next, ptr.To[int64](1), nil)
		}, agentwire.Start{}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			obs := plantest.Running(t, 3)
			p := plantest.Plan(obs)
			was := Make(obs, p, plan.Result{}, obs.Now)
			next := *was.DeepCopy()
			c.change(&was, &next)
			p.Scaling.Cold = "set spec.access.hashing to what your clients use"
			obs.Agents["cache-1-x"] = agentwire.Status{Start: c.agent}
			var got []string
			for _, e := range Events(was, next, obs, p, plan.Result{}) {
				got = append(got, strings.TrimSpace(fmt.Sprintf("%s %s %s", e.Type, e.Reason, e.Pod))+": "+e.Message)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// updated returns an observation of a Memcached whose three shards were restarted for an update. Each had 1,000 items before and has 900,
// had a hit ratio of 50%, and was unavailable for half a second. The status doesn't describe these starts yet.
func updated(t *testing.T) *observation.Observation {
	obs := plantest.Running(t, 3)
	for i, name := range obs.Names {
		plantest.Answer(obs, name, agentwire.StartWarm)
		answer := obs.Agents[name+"-x"]
		answer.Start.Items, answer.Start.ItemsBefore, answer.Start.UnavailableSeconds = 900, 1000, 0.5
		answer.Gets, answer.Hits, answer.RecentGets, answer.RecentHits = 2000, 900, 2000, 1000
		obs.Agents[name+"-x"] = answer
		obs.Memcached.Status.Shards[i].Revision = "former"
		shardtest.Annotate(obs.Pods[name][0], annotations.Update, shard.EncodeRecord(shard.UpdateRecord{Revision: obs.UpdateRevision.Hash(), Method: rollout.Restart,
			At: obs.Now.Add(-2 * time.Minute), Items: 1000, Gets: 2000, Hits: 1000}))
	}
	plantest.Read(obs)
	return obs
}

func TestStatusHasTheCostOfAnUpdate(t *testing.T) {
	obs := updated(t)
	next := func() *v1beta1.UpdateCost {
		obs.Memcached.Status = Make(obs, plantest.Plan(obs), plan.Result{}, obs.Now)
		return obs.Memcached.Status.LastUpdate
	}
	last := obs.Pods["cache-2"]
	delete(obs.Agents, "cache-2-x")
	if c := next(); c == nil || c.Shards != 2 || c.Items != 1800 || c.ItemsBefore != 2000 || c.UnavailableMilliseconds != 1000 || c.MaxUnavailableMilliseconds != 500 ||
		c.CompletionTime != nil || !c.StartTime.Time.Equal(obs.Now.Add(-2*time.Minute)) {
		t.Fatalf("after two shards: %+v", c)
	}
	if c := next(); c.Shards != 2 {
		t.Errorf("each start counts once: %+v", c)
	}
	plantest.Answer(obs, "cache-2", agentwire.StartCold)
	obs.Pods["cache-2"] = last
	if c := next(); c.Shards != 3 || c.Items != 1800 || c.ItemsBefore != 3000 || c.CompletionTime == nil || !c.CompletionTime.Time.Equal(obs.Now) {
		t.Fatalf("after all shards: %+v", c)
	}
	obs.Now = obs.Now.Add(time.Minute)
	if c := next(); !c.CompletionTime.Time.Equal(plantest.Now) {
		t.Errorf("a minute later: %+v", c)
	}
}

func TestMissesOfAnUpdateAreCountedUntilTheHitRatioIsBack(t *testing.T) {
	const unknown = -1
	for name, c := range map[string]struct {
		change    func(obs *observation.Observation)
		misses    int64
		recovered bool
	}{
		"it is back on all shards": {func(*observation.Observation) {}, 300, true},
		"a shard still misses":     {func(obs *observation.Observation) { agent(obs, 1, func(a *agentwire.Status) { a.RecentHits = 800 }) }, unknown, false},
		"a shard still misses at the end": {func(obs *observation.Observation) {
			agent(obs, 1, func(a *agentwire.Status) { a.RecentHits = 800 })
			obs.Now = obs.Now.Add(shard.HitRatioTimeout - 2*plan.HitRatioPoll)
		}, 300, false},
		"a shard has too few requests": {func(obs *observation.Observation) {
			agent(obs, 1, func(a *agentwire.Status) { a.RecentGets, a.RecentHits = 999, 999 })
		}, unknown, false},
		"a shard hasn't answered": {func(obs *observation.Observation) { delete(obs.Agents, "cache-1-x") }, unknown, false},
		"no shard counts": {func(obs *observation.Observation) {
			for i := range 3 {
				agent(obs, i, func(a *agentwire.Status) { a.Gets = 0 })
			}
		}, unknown, false},
		"an update without a restart": {func(obs *observation.Observation) {
			shardtest.Annotate(obs.Pods["cache-1"][0], annotations.Update, shard.EncodeRecord(shard.UpdateRecord{Revision: obs.UpdateRevision.Hash(), Method: rollout.Live, Gets: 2000, Hits: 1000}))
			plantest.Read(obs)
		}, 200, true},
		"one shard doesn't count": {func(obs *observation.Observation) { agent(obs, 1, func(a *agentwire.Status) { a.Gets = 0 }) }, 200, true},
	} {
		t.Run(name, func(t *testing.T) {
			obs := updated(t)
			obs.Memcached.Status = Make(obs, plantest.Plan(obs), plan.Result{}, obs.Now)
			if obs.Memcached.Status.LastUpdate.ExtraMisses == nil {
				t.Fatal("with the hit ratio back, they are measured at once")
			}
			obs.Memcached.Status.LastUpdate.ExtraMisses, obs.Memcached.Status.LastUpdate.HitRatioRecoveryTime = nil, nil
			c.change(obs)
			got := Make(obs, plantest.Plan(obs), plan.Result{}, obs.Now).LastUpdate
			if ptr.Deref(got.ExtraMisses, unknown) != c.misses || (got.HitRatioRecoveryTime != nil) != c.recovered {
				t.Errorf("%d misses, recovered at %v; want %d", ptr.Deref(got.ExtraMisses, unknown), got.HitRatioRecoveryTime, c.misses)
			}
		})
	}
}

func agent(obs *observation.Observation, ordinal int, change func(*agentwire.Status)) {
	name := obs.Names[ordinal] + "-x"
	answer := obs.Agents[name]
	change(&answer)
	obs.Agents[name] = answer
}

func TestUpdateReportsItsProgress(t *testing.T) {
	obs := updated(t)
	obs.Memcached.Status.Shards = Make(obs, plantest.Plan(obs), plan.Result{}, obs.Now).Shards
	decision := rollout.Decision{Shard: "cache-1", Step: rollout.StepAwait, Change: rollout.Change{Method: rollout.Replace, Description: "memory"}}
	made := func(d rollout.Decision) *v1beta1.UpdateStatus {
		p := plantest.Plan(obs)
		p.Decision = d
		return Make(obs, p, plan.Result{}, obs.Now).Update
	}
	u := made(decision)
	want := &v1beta1.UpdateStatus{Revision: obs.UpdateRevision.Hash(), Shard: "cache-1", Method: "Replace", Items: 2700, ItemsBefore: 3000,
		LastTransitionTime: metav1.NewTime(obs.Now), Message: "shard 2 of 3: memory; kept 90.0% of 3,000 items"}
	if diff := cmp.Diff(want, u); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	obs.Memcached.Status.Update, obs.Now = u, obs.Now.Add(time.Minute)
	if again := made(decision); !again.LastTransitionTime.Equal(&u.LastTransitionTime) {
		t.Errorf("the same step is since %s", again.LastTransitionTime)
	}
	decision.RollingBack, decision.Message = true, "it crashed"
	if back := made(decision); !back.RollingBack || back.LastTransitionTime.Equal(&u.LastTransitionTime) || back.Message != "shard 2 of 3: rolling back; it crashed; kept 90.0% of 3,000 items" {
		t.Errorf("%+v", back)
	}
	for _, over := range []rollout.Decision{{}, {Shard: "cache-1", Step: rollout.StepRevert}} {
		if u := made(over); u != nil {
			t.Errorf("%+v: %+v", over, u)
		}
	}
	receiving(agentwire.Status{Handover: &agentwire.Progress{Items: 1, Total: 4}})(obs, nil)
	plantest.Read(obs)
	decision = rollout.Decision{Shard: "cache-0", Step: rollout.StepAwait}
	if u := made(decision); !strings.Contains(u.Message, "shard 1 of 3; pod next received 25.0% of 4 items") {
		t.Errorf("%+v", u)
	}
}
