package memcached

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/manifests"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/rollout"
	"github.com/memcached-operator/memcached-operator/internal/agentapi"
	"github.com/memcached-operator/memcached-operator/internal/index"
)

// A shard was lost when its agent tells of an empty start that the status does not
// tell of yet, and the status tells of another one before it. The restore is made
// before the status tells of the new start, and its name comes of that start: so one
// is made for each loss, whenever the operator is killed.

const (
	// rewarmAge is the API's default.
	rewarmAge = 24 * time.Hour
	// keptRewarms is how many restores that have ended stay to be looked at.
	keptRewarms = 3
)

// rewarm fills a shard that was lost, or says why it stays empty.
type rewarm struct {
	shard   string
	restore string
	told    shardEvent
}

func rewarmPrefix(m *v1alpha1.Memcached) string { return m.Name + "-rewarm-" }

// rewarmName returns the name of the restore that follows one start of a shard.
func rewarmName(m *v1alpha1.Memcached, ordinal int, pod *corev1.Pod, agent *agentapi.Status) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %s %s %d", pod.UID, containerID(pod), agent.Restart, agent.Start.At.Unix()))
	return fmt.Sprintf("%s%d-%s", rewarmPrefix(m), ordinal, hex.EncodeToString(sum[:4]))
}

// observeBackups reads the backups of the Memcached when a shard may have been lost.
func (r *Reconciler) observeBackups(ctx context.Context, seen *observed) error {
	m := seen.memcached
	if m.Spec.Rewarm == nil || !startsEmpty(seen) {
		return nil
	}
	var backups v1alpha1.MemcachedBackupList
	if err := r.Client.List(ctx, &backups, client.InNamespace(m.Namespace), index.By(index.Memcached, m.Name)); err != nil {
		return fmt.Errorf("listing backups: %w", err)
	}
	for i := range backups.Items {
		if backups.Items[i].Spec.Memcached.Name == m.Name {
			seen.backups = append(seen.backups, &backups.Items[i])
		}
	}
	return nil
}

// startsEmpty says whether an agent told of an empty start.
func startsEmpty(seen *observed) bool {
	for _, agent := range seen.agents {
		if agent.Start.Result == agentapi.StartCold {
			return true
		}
	}
	return false
}

// planRewarm has the shards filled that were lost, and restores of before ended.
func (p *plan) planRewarm(seen *observed) {
	m := seen.memcached
	if m.Spec.Paused || m.DeletionTimestamp != nil {
		return
	}
	p.planRewarmDeletes(seen)
	if m.Spec.Rewarm == nil || isBootstrapping(m.Status.Bootstrap) {
		return
	}
	for i := range p.shards {
		s := &p.shards[i]
		ordinal, _ := manifests.Ordinal(m.Name, s.Name)
		if !s.isLost(&m.Status) {
			continue
		}
		age := ptr.Deref(m.Spec.Rewarm.MaxAge, metav1.Duration{Duration: rewarmAge}).Duration
		backup := newestBackup(seen.backups, seen.now.Add(-age), s.agent.Start.At)
		name := rewarmName(m, ordinal, s.pod, s.agent)
		restore, exists := seen.restores[name]
		switch {
		case exists && restore.owner == ours:
			backup := restore.Object.(*v1alpha1.MemcachedRestore).Spec.Backup.Name
			p.rewarms = append(p.rewarms, rewarm{s.Name, name, rewarmEvent(s, name, backup)})
		case backup == nil:
			p.rewarms = append(p.rewarms, rewarm{shard: s.Name, told: shardEvent{event{corev1.EventTypeWarning, v1alpha1.EventNotRewarmed,
				fmt.Sprintf("shard %s stays empty: there is no complete MemcachedBackup from before it was lost that is younger than %s", s.Name, age)}, s.pod.Name}})
		default:
			p.creates = append(p.creates, rewarmRestore(m, ordinal, name, backup.Name, s.pod))
			p.rewarms = append(p.rewarms, rewarm{s.Name, name, rewarmEvent(s, name, backup.Name)})
		}
	}
}

func rewarmEvent(s *shard, restore, backup string) shardEvent {
	return shardEvent{event{corev1.EventTypeNormal, v1alpha1.EventRewarmStarted,
		fmt.Sprintf("shard %s, which started empty, is filled from MemcachedBackup %s by MemcachedRestore %s", s.Name, backup, restore)}, s.pod.Name}
}

// isLost says whether the shard has started empty since the status told of it last, and
// was not meant to.
func (s *shard) isLost(status *v1alpha1.MemcachedStatus) bool {
	last, known := shardNamed(status.Shards, s.Name)
	if !known || last.Start == "" || !s.tellsStart() || s.agent.Start.Result != agentapi.StartCold {
		return false
	}
	isSame := last.ContainerID == containerID(s.pod) && last.Restart == s.agent.Restart &&
		(last.StartedAt == nil || last.StartedAt.Time.Equal(s.agent.Start.At.Truncate(time.Second)))
	return !isSame && !s.isReplaced(status)
}

// tellsStart says whether the agent's answer is of the newest start. While a restart
// is to come, it is of the one before.
func (s *shard) tellsStart() bool {
	return s.agent != nil && !(s.Pod.State == rollout.Serving && s.Pod.Outcome == rollout.Pending)
}

// isReplaced says whether the pod took over from one of another revision, as a change
// of the spec would have it.
func (s *shard) isReplaced(status *v1alpha1.MemcachedStatus) bool {
	replaced := readNote[step](s.set.Annotations, v1alpha1.AnnotationStep)
	return replaced != nil && replaced.Class == rollout.Replace && replaced.Revision == s.Pod.Revision &&
		status.Revisions[s.Name] != s.Pod.Revision
}

// newestBackup returns the newest complete backup whose copy began within a time, or
// nil. A younger one than the loss lacks what was lost.
func newestBackup(backups []*v1alpha1.MemcachedBackup, from, until time.Time) *v1alpha1.MemcachedBackup {
	var newest *v1alpha1.MemcachedBackup
	for _, b := range backups {
		snapshot := b.Status.Snapshot
		if b.Status.Phase != v1alpha1.RunComplete || b.DeletionTimestamp != nil || snapshot == nil ||
			snapshot.TakenAt.Time.Before(from) || !snapshot.TakenAt.Time.Before(until) {
			continue
		}
		if newest == nil || newest.Status.Snapshot.TakenAt.Before(&snapshot.TakenAt) {
			newest = b
		}
	}
	return newest
}

// rewarmRestore returns the restore that fills one shard, gently and while it serves.
func rewarmRestore(m *v1alpha1.Memcached, ordinal int, name, backup string, pod *corev1.Pod) *v1alpha1.MemcachedRestore {
	how := m.Spec.Rewarm.DeepCopy()
	meta := ownedMeta(m, name)
	meta.Labels[v1alpha1.LabelShard] = strconv.Itoa(ordinal)
	meta.Annotations = map[string]string{v1alpha1.AnnotationRewarms: string(pod.UID)}
	return &v1alpha1.MemcachedRestore{
		ObjectMeta: meta,
		Spec: v1alpha1.MemcachedRestoreSpec{
			Memcached: v1alpha1.MemcachedReference{Name: m.Name},
			Backup:    &v1alpha1.BackupReference{Name: backup},
			MaxAge:    how.MaxAge, MaxTTL: how.MaxTTL,
			Shards: []int32{int32(ordinal)}, //nolint:gosec // below the CRD's 1000
		},
	}
}

// planRewarmDeletes ends those restores of lost shards that have ended and whose pod
// is gone, and all but the newest few.
func (p *plan) planRewarmDeletes(seen *observed) {
	m := seen.memcached
	there := map[string]bool{}
	for _, pods := range seen.pods {
		for _, pod := range pods {
			there[string(pod.UID)] = true
		}
	}
	var ended []*v1alpha1.MemcachedRestore
	for name, o := range seen.restores {
		restore := o.Object.(*v1alpha1.MemcachedRestore)
		hasEnded := restore.Status.Phase == v1alpha1.RunComplete || restore.Status.Phase == v1alpha1.RunFailed
		if strings.HasPrefix(name, rewarmPrefix(m)) && o.owner == ours && hasEnded && restore.DeletionTimestamp == nil {
			ended = append(ended, restore)
		}
	}
	slices.SortFunc(ended, func(a, b *v1alpha1.MemcachedRestore) int {
		if d := b.CreationTimestamp.Compare(a.CreationTimestamp.Time); d != 0 {
			return d // the newest first
		}
		return strings.Compare(a.Name, b.Name)
	})
	kept := 0
	for _, restore := range ended {
		if there[restore.Annotations[v1alpha1.AnnotationRewarms]] && kept < keptRewarms {
			kept++
			continue
		}
		p.deletes = append(p.deletes, restore)
	}
}

// unmade says whether a shard's restore was to be made and could not be yet: then the
// status does not tell of the loss, so that it is tried again.
func (p *plan) unmade(shard string, a applied) bool {
	return slices.ContainsFunc(p.rewarms, func(w rewarm) bool { return w.shard == shard && w.restore != "" && a.unmade[w.restore] })
}

// rewarmEvents returns what a person wants to hear of the shards that were lost.
func (p *plan) rewarmEvents(a applied) []shardEvent {
	var events []shardEvent
	for _, w := range p.rewarms {
		if !p.unmade(w.shard, a) {
			events = append(events, w.told)
		}
	}
	return events
}
