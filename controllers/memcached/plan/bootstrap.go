package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/shard"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
	"github.com/memcached-operator/memcached-operator/internal/text"
)

// How a new Memcached is filled before its shards become ready:
//
//	the status says so, with the deadline          before the first shard exists
//	the shards' templates delay readiness until then
//	the operator creates a MemcachedRestore        once memcached answers in every shard
//	templates and pods delay readiness no more     when the restore has finished or failed
//
// An agent stops delaying at the deadline by itself, even if the operator is down.

// planBootstrap decides how filling the first shards starts and continues.
func planBootstrap(obs *Observation, shards []shard.State, specIsValid bool) Bootstrap {
	m := obs.Memcached
	p := Bootstrap{Status: m.Status.Bootstrap.DeepCopy()}
	switch {
	case m.DeletionTimestamp != nil:
		return p
	case p.Status.IsRunning():
		p.Actions = trackRestore(obs, shards, p.Status)
		p.Status.Message = text.Truncate(p.Status.Message, v1alpha1.MaxMessage)
	case p.Status == nil && m.Spec.Bootstrap != nil && *m.Spec.Size > 0 && isNew(obs):
		// If a pod were created before the status reports the bootstrap, an operator that
		// starts after a crash would take the Memcached for one that is ready already.
		p.DelaysShards = true
		if specIsValid && !m.Spec.Paused {
			p.Status = newBootstrap(obs)
		}
	}
	p.HoldUntil = readinessDeadline(p.Status)
	p.Actions = merge(p.Actions, releaseReadiness(obs, p.Status))
	return p
}

// newBootstrap returns the status of a bootstrap that starts now.
func newBootstrap(obs *Observation) *v1alpha1.BootstrapStatus {
	limit := v1alpha1.Seconds(obs.Memcached.Spec.Bootstrap.DeadlineSeconds, v1alpha1.DefaultBootstrapDeadlineSeconds)
	b := &v1alpha1.BootstrapStatus{
		RestoreName: obs.Memcached.Name + "-bootstrap", Phase: v1alpha1.TransferRunning,
		Deadline: metav1.NewTime(obs.Now.Add(limit).Truncate(time.Second)), // the API stores seconds
	}
	b.Message = "creating the shards; a restore fills them before they become ready" + deadlineSuffix(b)
	return b
}

// isNew reports whether the Memcached has had no shard yet.
func isNew(obs *Observation) bool {
	for key, o := range obs.Objects {
		if key.Kind == resources.KindReplicaSet && o.IsShards() {
			return false
		}
	}
	return len(obs.Memcached.Status.Shards) == 0
}

// trackRestore creates the restore, or updates b with its result.
func trackRestore(obs *Observation, shards []shard.State, b *v1alpha1.BootstrapStatus) Actions {
	m := obs.Memcached
	finish := func(to v1alpha1.TransferPhase, message string) { b.Phase, b.Message = to, message }
	var actions Actions
	found, exists := obs.Restores[b.RestoreName]
	var restore *v1alpha1.MemcachedRestore
	if exists {
		restore = found.APIObject.(*v1alpha1.MemcachedRestore)
	}
	isOurs := exists && found.Owner == Ours
	missing := shardsNotRunning(obs, shards)
	switch {
	case isOurs && restore.Status.Phase == v1alpha1.TransferComplete:
		finish(v1alpha1.TransferComplete, "the shards started with "+restoreSummary(restore))
	case isOurs && restore.Status.Phase == v1alpha1.TransferFailed:
		finish(v1alpha1.TransferFailed, fmt.Sprintf("the shards started with %s: MemcachedRestore %s failed: %s", restoreSummary(restore), b.RestoreName, restore.Status.Message))
	case exists && found.Owner != Ours && found.Owner != Predecessors:
		finish(v1alpha1.TransferFailed, fmt.Sprintf("the shards started empty: MemcachedRestore %s exists and isn't managed by this Memcached; "+
			"to fill the shards while they serve, create a MemcachedRestore with another name", b.RestoreName))
	case !obs.Now.Before(b.Deadline.Time):
		finish(v1alpha1.TransferFailed, "the shards weren't filled before the deadline and became ready: "+timeoutMessage(b, isOurs, restore, missing))
	case !exists && m.Spec.Bootstrap == nil:
		finish(v1alpha1.TransferFailed, fmt.Sprintf("the shards started empty: spec.bootstrap was removed, and MemcachedRestore %s doesn't exist", b.RestoreName))
	case !exists && len(missing) > 0:
		b.Message = "waiting for all shards to run before filling them: " + strings.Join(missing, ", ") + deadlineSuffix(b)
	case !exists:
		b.Message = "starting the restore" + deadlineSuffix(b)
		if !m.Spec.Paused {
			actions.Create = append(actions.Create, bootstrapRestore(obs, b.RestoreName))
		}
	case !isOurs:
		b.Message = fmt.Sprintf("waiting for garbage collection of MemcachedRestore %s of a deleted Memcached with the same name%s", b.RestoreName, deadlineSuffix(b))
	default:
		b.Message = restoreProgress(restore) + deadlineSuffix(b)
	}
	if b.IsRunning() {
		actions.RequeueAfter = b.Deadline.Sub(obs.Now)
	}
	return actions
}

// shardsNotRunning returns the shards whose memcached hasn't answered in its pod yet, or
// which have another pod that would receive the items. Nothing else queries a terminating
// pod.
func shardsNotRunning(obs *Observation, shards []shard.State) []string {
	running := map[string]bool{}
	for _, s := range shards {
		running[s.Name] = s.IsRunning && s.Active.DeletionTimestamp == nil && !s.Rollout.PredecessorTerminating &&
			!obs.UnownedPods[s.Name] && (s.Agent != nil || s.StartRecorded)
	}
	return slices.DeleteFunc(slices.Clone(obs.Names), func(name string) bool { return running[name] })
}

// deadlineSuffix says when the shards become ready at the latest, as the end of a message.
func deadlineSuffix(b *v1alpha1.BootstrapStatus) string {
	return "; the shards become ready when the restore is done, or at " + b.Deadline.UTC().Format("15:04 MST")
}

// timeoutMessage describes a restore that wasn't complete at the deadline.
func timeoutMessage(b *v1alpha1.BootstrapStatus, isOurs bool, restore *v1alpha1.MemcachedRestore, missing []string) string {
	switch {
	case isOurs:
		return fmt.Sprintf("MemcachedRestore %s, which continues, had %s", b.RestoreName, restoreProgress(restore))
	case len(missing) > 0:
		return "they are empty, because the restore waited for " + strings.Join(missing, ", ")
	default:
		return "they are empty, because the restore did not start"
	}
}

// restoreProgress describes how far a restore is.
func restoreProgress(restore *v1alpha1.MemcachedRestore) string {
	progress := restore.Status.Progress
	if progress == nil || progress.TotalItems == 0 {
		return "restored no items yet"
	}
	return fmt.Sprintf("restored %d%% of %s items", progress.Percent, text.Thousands(progress.TotalItems))
}

// restoreSummary describes the result of a restore that has finished.
func restoreSummary(restore *v1alpha1.MemcachedRestore) string {
	s := restore.Status
	summary := text.Thousands(s.Restored) + " restored items"
	if s.Restored == 0 {
		summary = "no restored items"
	}
	if s.Expired > 0 {
		summary += fmt.Sprintf(", without %s that had expired", text.Thousands(s.Expired))
	}
	if s.Rejected > 0 {
		summary += fmt.Sprintf(", without %s that memcached rejected", text.Thousands(s.Rejected))
	}
	return summary
}

// bootstrapRestore returns the restore that fills the shards. Its rate isn't limited: the
// shards don't serve clients yet.
func bootstrapRestore(obs *Observation, name string) *v1alpha1.MemcachedRestore {
	from := obs.Memcached.Spec.Bootstrap.DeepCopy()
	restore := &v1alpha1.MemcachedRestore{
		ObjectMeta: *obs.Owned.DeepCopy(),
		Spec: v1alpha1.MemcachedRestoreSpec{
			MemcachedRef: v1alpha1.MemcachedReference{Name: obs.Memcached.Name},
			BackupRef:    from.BackupRef, Snapshot: from.Snapshot,
			MaxAgeSeconds: from.MaxAgeSeconds, MaxTTLSeconds: from.MaxTTLSeconds, DeadlineSeconds: from.DeadlineSeconds,
			RateLimit: &v1alpha1.RateLimit{ItemsPerSecond: ptr.To[int32](0), MebibytesPerSecond: ptr.To[int32](0)},
		},
	}
	restore.Name = name
	return restore
}

// readinessDeadline returns until when new pods delay their readiness, as an annotation's value;
// empty when they don't.
func readinessDeadline(b *v1alpha1.BootstrapStatus) string {
	if !b.IsRunning() {
		return ""
	}
	return b.Deadline.UTC().Format(time.RFC3339)
}

// releaseReadiness makes delayed pods ready. The annotation is set to the present first and
// removed once they are ready: the kubelet can miss a change of an annotation until the pod
// changes again, so the operator repeats it for a pod that isn't ready until the deadline,
// when the agents stop delaying by themselves.
func releaseReadiness(obs *Observation, b *v1alpha1.BootstrapStatus) Actions {
	var a Actions
	m := obs.Memcached
	if b == nil || b.IsRunning() || m.Spec.Paused {
		return a
	}
	for _, name := range obs.Names {
		for _, pod := range obs.Pods[name] {
			value, delayed := pod.Annotations[annotations.HoldUntil]
			if !delayed || pod.DeletionTimestamp != nil {
				continue
			}
			at, err := time.Parse(time.RFC3339, value)
			since := obs.Now.Sub(at)
			switch {
			case shard.IsReady(pod) || err != nil || !obs.Now.Before(b.Deadline.Time):
				a.Patch = append(a.Patch, Annotate(pod, annotations.HoldUntil, nil))
			case since < 0 || since >= shard.AnnounceRetry:
				a.Patch = append(a.Patch, Annotate(pod, annotations.HoldUntil, obs.Now.UTC().Format(time.RFC3339)))
				a.RequeueAfter = Soonest(a.RequeueAfter, shard.AnnounceRetry)
			default:
				a.RequeueAfter = Soonest(a.RequeueAfter, shard.AnnounceRetry-since)
			}
		}
	}
	return a
}

// Bootstrap is how filling the first shards continues.
type Bootstrap struct {
	// Status to report; nil without a bootstrap.
	Status *v1alpha1.BootstrapStatus
	// delaysShards: no shard is created before the status reports the bootstrap.
	DelaysShards bool
	// HoldUntil is until when new pods delay their readiness; empty when they don't.
	HoldUntil string
	Actions   Actions
}
