package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/event"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/observation"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/rollout"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/shard"
	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
)

// A shard was lost when its agent reports an empty start that the status doesn't describe
// yet, and the status describes a previous start. The restore is created before the status
// describes the new start, and its name is derived from that start: so each loss has exactly
// one restore, whenever the operator is killed.

// RefillHistoryLimit is how many finished restores of lost shards are kept.
const RefillHistoryLimit = 3

func refillPrefix(m *v1beta1.Memcached) string { return m.Name + "-refill-" }

// refillName returns the name of the restore that follows a start of a shard.
func refillName(m *v1beta1.Memcached, s *shard.State) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %s %s %d", s.Active.UID, s.ContainerID, s.Agent.Restart, s.Agent.Start.At.Unix()))
	return fmt.Sprintf("%s%d-%s", refillPrefix(m), s.Ordinal, hex.EncodeToString(sum[:4]))
}

// planRefill creates restores for the shards that were lost, and deletes finished ones.
func planRefill(obs *observation.Observation, shards []shard.State) Refills {
	m := obs.Memcached
	if obs.Paused || m.DeletionTimestamp != nil {
		return Refills{}
	}
	p := Refills{Actions: planRefillCleanup(obs)}
	if !m.Spec.Backup.Refill.IsEnabled() || m.Status.Bootstrap.IsRunning() {
		return p
	}
	maxAge := v1beta1.Seconds(m.Spec.Backup.Refill.MaxAgeSeconds, v1beta1.DefaultRefillMaxAgeSeconds)
	for i := range shards {
		s := &shards[i]
		if !lostItems(s) {
			continue
		}
		name := refillName(m, s)
		backup := newestBackup(m, obs.Backups, obs.Now.Add(-maxAge), s.Agent.Start.At)
		restore, exists := obs.Restores[name]
		switch {
		case exists && restore.Owner == observation.Ours:
			from := ptr.Deref(restore.APIObject.(*v1beta1.MemcachedRestore).Spec.BackupRef, v1beta1.BackupReference{}).Name
			p.Lost = append(p.Lost, startedRefill(s, name, from))
		case backup == nil:
			p.Lost = append(p.Lost, skippedRefill(s, maxAge))
		default:
			p.Actions.Create = append(p.Actions.Create, refillRestore(obs, s, name, backup.Name))
			p.Lost = append(p.Lost, startedRefill(s, name, backup.Name))
		}
	}
	return p
}

func startedRefill(s *shard.State, restore, backup string) Refill {
	return Refill{s.Name, restore, event.Event{Type: corev1.EventTypeNormal, Reason: v1beta1.EventRefillStarted,
		Message: fmt.Sprintf("refilling shard %s, which started empty, from MemcachedBackup %s with MemcachedRestore %s", s.Name, backup, restore), Pod: s.Active.Name}}
}

func skippedRefill(s *shard.State, maxAge time.Duration) Refill {
	return Refill{s.Name, "", event.Event{Type: corev1.EventTypeWarning, Reason: v1beta1.EventRefillSkipped,
		Message: fmt.Sprintf("shard %s was not refilled: no complete MemcachedBackup was taken in the %s before the loss", s.Name, maxAge), Pod: s.Active.Name}}
}

// lostItems reports whether the shard has started empty since the status described its last
// start, and not as part of an update.
func lostItems(s *shard.State) bool {
	last := s.Last
	if last.StartResult == "" || !s.ReportsLatestStart() || s.Agent.Start.Result != agentwire.StartCold {
		return false
	}
	isSame := last.ContainerID == s.ContainerID && last.RestartAnnotation == shard.RestartInStatus(s.Agent.Restart) &&
		(last.StartTime == nil || last.StartTime.Time.Equal(s.Agent.Start.At.Truncate(time.Second)))
	return !isSame && !wasReplaced(s)
}

// wasReplaced reports whether the pod took over from one of another revision, as an update
// requires.
func wasReplaced(s *shard.State) bool {
	return s.OnSet != nil && s.OnSet.Method == rollout.Replace && s.OnSet.Revision == s.Rollout.Pod.Revision &&
		s.Last.Revision != s.Rollout.Pod.Revision
}

// newestBackup returns the newest backup of a Memcached that was started and completed in a
// period, or nil. A backup that was completed after the loss can lack the lost items, and one that is
// older than the Memcached is of a deleted one of its name.
func newestBackup(m *v1beta1.Memcached, backups []*v1beta1.MemcachedBackup, from, until time.Time) *v1beta1.MemcachedBackup {
	var newest *v1beta1.MemcachedBackup
	for _, b := range backups {
		snapshot := b.Status.Snapshot
		if b.Status.Phase != v1beta1.TransferComplete || b.DeletionTimestamp != nil || snapshot == nil || b.CreationTimestamp.Before(&m.CreationTimestamp) ||
			snapshot.SnapshotTime.Time.Before(from) || b.Status.CompletionTime == nil || !b.Status.CompletionTime.Time.Before(until) {
			continue
		}
		if newest == nil || newest.Status.Snapshot.SnapshotTime.Before(&snapshot.SnapshotTime) {
			newest = b
		}
	}
	return newest
}

// refillRestore returns the restore that fills one shard while it serves, with the default
// rate limit.
func refillRestore(obs *observation.Observation, s *shard.State, name, backup string) *v1beta1.MemcachedRestore {
	spec, meta := obs.Memcached.Spec.Backup.Refill.DeepCopy(), *obs.Owned.DeepCopy()
	meta.Name = name
	meta.Labels[v1beta1.LabelShard] = strconv.Itoa(s.Ordinal)
	meta.Annotations = map[string]string{annotations.Refills: string(s.Active.UID)}
	return &v1beta1.MemcachedRestore{
		ObjectMeta: meta,
		Spec: v1beta1.MemcachedRestoreSpec{
			MemcachedRef:  v1beta1.MemcachedReference{Name: obs.Memcached.Name},
			BackupRef:     &v1beta1.BackupReference{Name: backup},
			MaxAgeSeconds: spec.MaxAgeSeconds, MaxTTLSeconds: spec.MaxTTLSeconds,
			Shards: []int32{int32(s.Ordinal)}, //nolint:gosec // at most 128 by the CRD
		},
	}
}

// planRefillCleanup deletes the finished restores of lost shards whose pod is deleted, and
// all but the newest few.
func planRefillCleanup(obs *observation.Observation) Actions {
	exists := map[string]bool{}
	for _, pods := range obs.Pods {
		for _, pod := range pods {
			exists[string(pod.UID)] = true
		}
	}
	var finished []*v1beta1.MemcachedRestore
	for name, o := range obs.Restores {
		restore := o.APIObject.(*v1beta1.MemcachedRestore)
		isOver := restore.Status.IsFinished()
		if strings.HasPrefix(name, refillPrefix(obs.Memcached)) && o.Owner == observation.Ours && isOver && restore.DeletionTimestamp == nil {
			finished = append(finished, restore)
		}
	}
	slices.SortFunc(finished, func(a, b *v1beta1.MemcachedRestore) int {
		if d := b.CreationTimestamp.Compare(a.CreationTimestamp.Time); d != 0 {
			return d // the newest first
		}
		return strings.Compare(a.Name, b.Name)
	})
	var a Actions
	kept := 0
	for _, restore := range finished {
		if exists[restore.Annotations[annotations.Refills]] && kept < RefillHistoryLimit {
			kept++
			continue
		}
		a.Delete = append(a.Delete, restore)
	}
	return a
}

// Refills is how lost shards are filled.
type Refills struct {
	Lost    []Refill
	Actions Actions
}

// Refill is a lost shard with the restore that fills it, or none when it stays empty.
type Refill struct {
	Shard   string
	Restore string
	Event   event.Event
}
