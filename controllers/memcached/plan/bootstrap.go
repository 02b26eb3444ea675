package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/observation"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/shard"
	"github.com/memcached-operator/memcached-operator/internal/text"
)

// How a new Memcached is filled while its shards serve:
//
//	the status says so                             Ready is False until the end
//	the operator creates a MemcachedRestore        once all shards are ready
//	the status has the result                      when the restore has finished

// planBootstrap decides how filling the first shards starts and continues.
func planBootstrap(obs *observation.Observation, shards []shard.State) Bootstrap {
	m := obs.Memcached
	p := Bootstrap{Status: m.Status.Bootstrap.DeepCopy()}
	switch {
	case m.DeletionTimestamp != nil:
	case p.Status.IsRunning():
		p.Actions = trackRestore(obs, shards, p.Status)
		p.Status.Message = text.Truncate(p.Status.Message, v1beta1.MaxMessage)
	case p.Status == nil && m.Spec.Backup.Bootstrap != nil && !m.Spec.Paused && resources.Size(m) > 0 && isNew(obs):
		p.Status = &v1beta1.BootstrapStatus{RestoreName: m.Name + "-bootstrap", Phase: v1beta1.TransferRunning, Message: "creating the shards that a restore will fill"}
	}
	return p
}

// isNew reports whether no status has described a shard of the Memcached yet. A shard that is older
// was adopted from a deleted Memcached of the same name, and has items.
func isNew(obs *observation.Observation) bool {
	for key, o := range obs.Objects {
		created := o.GetCreationTimestamp()
		if key.Kind == resources.KindReplicaSet && o.IsManaged() && created.Before(&obs.Memcached.CreationTimestamp) {
			return false
		}
	}
	return len(obs.Memcached.Status.Shards) == 0
}

// trackRestore creates the restore, or updates b with its result.
func trackRestore(obs *observation.Observation, shards []shard.State, b *v1beta1.BootstrapStatus) Actions {
	m := obs.Memcached
	finish := func(to v1beta1.TransferPhase, message string) { b.Phase, b.Message = to, message }
	var actions Actions
	found, exists := obs.Restores[b.RestoreName]
	var restore *v1beta1.MemcachedRestore
	if exists {
		restore = found.APIObject.(*v1beta1.MemcachedRestore)
	}
	isOurs := exists && found.Owner == observation.Ours
	unready := withoutReadyPod(obs, shards)
	switch {
	case isOurs && restore.Status.Phase == v1beta1.TransferComplete:
		finish(v1beta1.TransferComplete, "the shards got "+restoreSummary(restore))
	case isOurs && restore.Status.Phase == v1beta1.TransferFailed:
		finish(v1beta1.TransferFailed, fmt.Sprintf("the shards got %s: MemcachedRestore %s failed: %s", restoreSummary(restore), b.RestoreName, restore.Status.Message()))
	case exists && found.Owner != observation.Ours && found.Owner != observation.Predecessors:
		finish(v1beta1.TransferFailed, fmt.Sprintf("the shards started empty: MemcachedRestore %s exists and isn't managed by this Memcached; "+
			"to fill the shards, create a MemcachedRestore with another name", b.RestoreName))
	case !exists && m.Spec.Backup.Bootstrap == nil:
		finish(v1beta1.TransferFailed, fmt.Sprintf("the shards started empty: spec.backup.bootstrap was removed, and MemcachedRestore %s doesn't exist", b.RestoreName))
	case !exists && obs.Paused:
		b.Message = "waiting until spec.paused is false"
	case !exists && len(unready) > 0:
		b.Message = "waiting for all shards to become ready before filling them: " + strings.Join(unready, ", ")
	case !exists:
		b.Message = "starting the restore"
		actions.Create = append(actions.Create, bootstrapRestore(obs, b.RestoreName))
	case !isOurs:
		b.Message = fmt.Sprintf("waiting for garbage collection of MemcachedRestore %s of a deleted Memcached with the same name", b.RestoreName)
	default:
		b.Message = restoreProgress(restore)
	}
	return actions
}

// withoutReadyPod returns the names of the shards that have no ready pod yet.
func withoutReadyPod(obs *observation.Observation, shards []shard.State) []string {
	return slices.DeleteFunc(slices.Clone(obs.Names), func(name string) bool { return isReady(shards, name) })
}

func isReady(shards []shard.State, name string) bool {
	s := shard.Named(shards, name)
	return s != nil && s.IsReady
}

// restoreProgress describes how far a restore is.
func restoreProgress(restore *v1beta1.MemcachedRestore) string {
	progress := restore.Status.Progress
	switch {
	case restore.Status.Phase == v1beta1.TransferPending && restore.Status.Message() != "":
		return restore.Status.Message()
	case progress == nil || progress.TotalItems == 0:
		return "restored no items yet"
	}
	return fmt.Sprintf("restored %d%% of %s items", progress.Percent, text.Thousands(progress.TotalItems))
}

// restoreSummary describes the result of a restore that has finished.
func restoreSummary(restore *v1beta1.MemcachedRestore) string {
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

// bootstrapRestore returns the restore that fills the shards while they serve, with the default
// rate limit.
func bootstrapRestore(obs *observation.Observation, name string) *v1beta1.MemcachedRestore {
	from := obs.Memcached.Spec.Backup.Bootstrap.DeepCopy()
	restore := &v1beta1.MemcachedRestore{
		ObjectMeta: *obs.Owned.DeepCopy(),
		Spec: v1beta1.MemcachedRestoreSpec{
			MemcachedRef: v1beta1.MemcachedReference{Name: obs.Memcached.Name},
			BackupRef:    from.BackupRef, Snapshot: from.Snapshot,
			MaxAgeSeconds: from.MaxAgeSeconds, MaxTTLSeconds: from.MaxTTLSeconds, DeadlineSeconds: from.DeadlineSeconds,
		},
	}
	restore.Name = name
	return restore
}

// Bootstrap is how filling the first shards continues.
type Bootstrap struct {
	// Status to report; nil without a bootstrap.
	Status  *v1beta1.BootstrapStatus
	Actions Actions
}
