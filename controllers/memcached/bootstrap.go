package memcached

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/manifests"
)

// How a new Memcached is filled before it serves:
//
//	the status tells of it, with the deadline      before there is a shard
//	the shards' templates hold their pods until then
//	a MemcachedRestore is made                     once every shard's memcached answers
//	the templates and the pods hold no more        when it has ended, either way
//
// An agent ends its hold at the deadline by itself, with the operator there or not.

// bootstrapDeadline is the API's default.
const bootstrapDeadline = 10 * time.Minute

func bootstrapName(m *v1alpha1.Memcached) string { return m.Name + "-bootstrap" }

// isBootstrapping says whether the shards are held while they are filled.
func isBootstrapping(b *v1alpha1.BootstrapStatus) bool {
	return b != nil && b.Phase == v1alpha1.RunRunning
}

// planBootstrap decides how the filling of the first shards begins and goes on.
func (p *plan) planBootstrap(seen *observed) {
	m := seen.memcached
	p.bootstrap = m.Status.Bootstrap.DeepCopy()
	switch {
	case m.DeletionTimestamp != nil:
	case isBootstrapping(p.bootstrap):
		p.fill(seen)
	case p.bootstrap == nil && m.Spec.Bootstrap != nil && *m.Spec.Size > 0 && isNew(seen):
		// Were a pod made before the status tells of it, an operator that comes after a
		// crash would take the Memcached for one that serves already.
		p.awaitsBootstrap = true
		if p.refused == nil && !m.Spec.Paused {
			deadline := seen.now.Add(ptr.Deref(m.Spec.Bootstrap.Deadline, metav1.Duration{Duration: bootstrapDeadline}).Duration)
			p.bootstrap = &v1alpha1.BootstrapStatus{
				Restore: bootstrapName(m), Phase: v1alpha1.RunRunning,
				Deadline: metav1.NewTime(deadline.Truncate(time.Second)), // the API keeps seconds
			}
			p.bootstrap.Message = "the shards are made, and filled before they serve" + p.latest()
		}
	}
	p.release(seen)
}

// isNew says whether the Memcached has had no shard yet.
func isNew(seen *observed) bool {
	for key, o := range seen.objects {
		if key.Kind == manifests.KindReplicaSet && (o.owner == ours || o.owner == orphaned) {
			return false
		}
	}
	return len(seen.memcached.Status.Shards) == 0
}

// fill has the restore made, or takes what came of it.
func (p *plan) fill(seen *observed) {
	m, b := seen.memcached, p.bootstrap
	end := func(phase v1alpha1.RunPhase, message string) { b.Phase, b.Message = phase, bounded(message) }
	found, exists := seen.restores[b.Restore]
	var restore *v1alpha1.MemcachedRestore
	if exists {
		restore = found.Object.(*v1alpha1.MemcachedRestore)
	}
	isOurs := exists && found.owner == ours
	silent := p.silentShards(seen)
	switch {
	case isOurs && restore.Status.Phase == v1alpha1.RunComplete:
		end(v1alpha1.RunComplete, fmt.Sprintf("the shards serve with %s", restored(restore)))
	case isOurs && restore.Status.Phase == v1alpha1.RunFailed:
		end(v1alpha1.RunFailed, fmt.Sprintf("the shards serve with %s: MemcachedRestore %s failed: %s", restored(restore), b.Restore, restore.Status.Message))
	case exists && found.owner != ours && found.owner != predecessors:
		end(v1alpha1.RunFailed, fmt.Sprintf("the shards serve empty: MemcachedRestore %s exists and is not this Memcached's, so it was left alone; "+
			"a MemcachedRestore of another name fills them while they serve", b.Restore))
	case !seen.now.Before(b.Deadline.Time):
		end(v1alpha1.RunFailed, "the shards were not filled in time and serve: "+p.late(isOurs, restore, silent))
	case !exists && m.Spec.Bootstrap == nil:
		end(v1alpha1.RunFailed, fmt.Sprintf("the shards serve empty: spec.bootstrap was taken away, and MemcachedRestore %s does not exist", b.Restore))
	case !exists && len(silent) > 0:
		b.Message = bounded("waiting until all shards run, to fill them: " + strings.Join(silent, ", ") + p.latest())
	case !exists:
		if b.Message = "the restore begins" + p.latest(); !m.Spec.Paused {
			p.creates = append(p.creates, bootstrapRestore(m))
		}
	case !isOurs:
		b.Message = fmt.Sprintf("waiting until Kubernetes has ended MemcachedRestore %s of a deleted Memcached of this name%s", b.Restore, p.latest())
	default:
		b.Message = restoring(restore) + p.latest()
	}
	if isBootstrapping(b) {
		p.lookAfter(b.Deadline.Sub(seen.now))
	}
}

// silentShards returns the shards whose memcached has not answered in its pod yet, or
// has another pod beside it, into which the items would go: one that ends is asked by
// nobody but the restore.
func (p *plan) silentShards(seen *observed) []string {
	var silent []string
	for ordinal := range int(*seen.memcached.Spec.Size) {
		name := manifests.ShardName(seen.memcached.Name, ordinal)
		s := p.shardNamed(name)
		if s == nil || s.pod == nil || s.pod.DeletionTimestamp != nil || !runs(s.pod) || s.Leaving || seen.strays[name] ||
			s.agent == nil && !startIsKnown(&seen.memcached.Status, name, s.pod) {
			silent = append(silent, name)
		}
	}
	return silent
}

// latest says until when the shards are held, as the end of a sentence.
func (p *plan) latest() string {
	return "; they serve when it is done, at " + p.bootstrap.Deadline.UTC().Format("15:04 MST") + " at the latest"
}

// late says what there was of a restore that was not in time.
func (p *plan) late(isOurs bool, restore *v1alpha1.MemcachedRestore, silent []string) string {
	switch {
	case isOurs:
		return fmt.Sprintf("MemcachedRestore %s, which may go on meanwhile, had %s", p.bootstrap.Restore, restoring(restore))
	case len(silent) > 0:
		return "empty, as the restore waited until these run: " + strings.Join(silent, ", ")
	default:
		return "empty, as the restore did not begin"
	}
}

// restoring says how far a restore is.
func restoring(restore *v1alpha1.MemcachedRestore) string {
	progress := restore.Status.Progress
	if progress == nil || progress.TotalItems == 0 {
		return "restored nothing yet"
	}
	return fmt.Sprintf("restored %d %% of %s items", progress.Percent, thousands(progress.TotalItems))
}

// restored says what a restore that has ended brought.
func restored(restore *v1alpha1.MemcachedRestore) string {
	s := restore.Status
	text := thousands(s.Restored) + " restored items"
	if s.Restored == 0 {
		text = "no restored item"
	}
	if s.Expired > 0 {
		text += fmt.Sprintf(", without %s whose time was over", thousands(s.Expired))
	}
	if s.Refused > 0 {
		text += fmt.Sprintf(", without %s that memcached did not take", thousands(s.Refused))
	}
	return text
}

// bootstrapRestore returns the restore that fills the shards. It is not limited:
// nobody is served yet.
func bootstrapRestore(m *v1alpha1.Memcached) *v1alpha1.MemcachedRestore {
	from := m.Spec.Bootstrap.DeepCopy()
	return &v1alpha1.MemcachedRestore{
		ObjectMeta: ownedMeta(m, bootstrapName(m)),
		Spec: v1alpha1.MemcachedRestoreSpec{
			Memcached: v1alpha1.MemcachedReference{Name: m.Name},
			Backup:    from.Backup, Snapshot: from.Snapshot, MaxAge: from.MaxAge, MaxTTL: from.MaxTTL,
			RateLimit: &v1alpha1.RateLimit{ItemsPerSecond: ptr.To[int32](0), MebibytesPerSecond: ptr.To[int32](0)},
			Deadline:  from.Deadline,
		},
	}
}

// holdUntil returns until when new pods are held, as an annotation's value; empty:
// they are not.
func (p *plan) holdUntil() string {
	if !isBootstrapping(p.bootstrap) {
		return ""
	}
	return p.bootstrap.Deadline.UTC().Format(time.RFC3339)
}

// release has pods serve that were held. They get the present time first, and nothing once
// they serve: the kubelet can miss a change of an annotation until the pod changes
// again, so that to one that does not serve it is said again, until the deadline by
// which agents go.
func (p *plan) release(seen *observed) {
	m, b := seen.memcached, p.bootstrap
	if b == nil || isBootstrapping(b) || m.Spec.Paused || m.DeletionTimestamp != nil {
		return
	}
	for ordinal := range int(*m.Spec.Size) {
		for _, pod := range seen.pods[manifests.ShardName(m.Name, ordinal)] {
			text, held := pod.Annotations[v1alpha1.AnnotationHoldUntil]
			if !held || pod.DeletionTimestamp != nil {
				continue
			}
			at, err := time.Parse(time.RFC3339, text)
			since := seen.now.Sub(at)
			switch {
			case isReady(pod) || err != nil || !seen.now.Before(b.Deadline.Time):
				p.patches = append(p.patches, annotate(pod, v1alpha1.AnnotationHoldUntil, nil))
			case since < 0 || since >= sayAgain:
				p.patches = append(p.patches, annotate(pod, v1alpha1.AnnotationHoldUntil, seen.now.UTC().Format(time.RFC3339)))
				p.lookAfter(sayAgain)
			default:
				p.lookAfter(sayAgain - since)
			}
		}
	}
}

// isHeld says whether a pod runs and is to be filled before it serves.
func isHeld(pod *corev1.Pod, now time.Time) bool {
	until, err := time.Parse(time.RFC3339, pod.Annotations[v1alpha1.AnnotationHoldUntil])
	return err == nil && now.Before(until) && runs(pod)
}

// bootstrapEvents returns what a person wants to hear of the filling.
func bootstrapEvents(was, now *v1alpha1.BootstrapStatus) []event {
	if !isBootstrapping(was) || now == nil || isBootstrapping(now) {
		return nil
	}
	kind := corev1.EventTypeNormal
	if now.Phase == v1alpha1.RunFailed {
		kind = corev1.EventTypeWarning
	}
	return []event{{kind, v1alpha1.EventBootstrapEnded, cmp.Or(now.Message, string(now.Phase))}}
}
