package memcached

import (
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/manifests"
)

// conditions returns Available, Progressing and Degraded.
func conditions(seen *observed, p plan, a applied, s v1alpha1.MemcachedStatus) (available, progressing, degraded metav1.Condition) {
	m := seen.memcached
	want := *m.Spec.Size
	unready := unreadyShards(s, int(want))

	available = metav1.Condition{Type: v1alpha1.ConditionAvailable, Status: metav1.ConditionFalse}
	switch {
	case want == 0:
		available.Reason, available.Message = v1alpha1.ReasonNoShards, "no shard was asked for: spec.size is 0"
	case s.ReadySize == want:
		available.Status, available.Reason = metav1.ConditionTrue, v1alpha1.ReasonAllShardsReady
		available.Message = fmt.Sprintf("%d of %d shards serve", s.ReadySize, want)
	default:
		available.Reason = v1alpha1.ReasonShardsNotReady
		available.Message = fmt.Sprintf("%d of %d shards serve", s.ReadySize, want)
		if len(unready) > 0 {
			available.Message += "; not " + strings.Join(unready, ", ")
		}
	}

	progressing = metav1.Condition{Type: v1alpha1.ConditionProgressing, Status: metav1.ConditionTrue}
	switch {
	case m.DeletionTimestamp != nil && len(a.failures) > 0:
		progressing.Reason, progressing.Message = v1alpha1.ReasonRetrying, a.failures[0].Error()+"; trying again"
	case m.DeletionTimestamp != nil && p.deletion.message != "":
		progressing.Reason, progressing.Message = v1alpha1.ReasonBackingUp, p.deletion.message
	case m.DeletionTimestamp != nil:
		progressing.Reason, progressing.Message = v1alpha1.ReasonDeleting, "Kubernetes ends the shards"
	case m.Spec.Paused:
		progressing.Status, progressing.Reason = metav1.ConditionFalse, v1alpha1.ReasonPaused
		progressing.Message = "nothing is changed until spec.paused is false"
	case len(a.failures) > 0:
		progressing.Reason, progressing.Message = v1alpha1.ReasonRetrying, a.failures[0].Error()+"; trying again"
	case len(p.leftovers) > 0:
		progressing.Reason = v1alpha1.ReasonWaitingForOwner
		progressing.Message = fmt.Sprintf("waiting until Kubernetes has ended %s of a deleted Memcached of this name", joinKeys(p.leftovers))
	case isBootstrapping(s.Bootstrap):
		progressing.Reason, progressing.Message = v1alpha1.ReasonBootstrapping, s.Bootstrap.Message
	case s.Size < want && p.refused == nil:
		progressing.Reason, progressing.Message = v1alpha1.ReasonScalingOut, fmt.Sprintf("from %d to %d shards", s.Size, want)
	case s.Size > want && p.refused == nil:
		progressing.Reason, progressing.Message = v1alpha1.ReasonScalingIn, fmt.Sprintf("from %d to %d shards", s.Size, want)
	case s.Update != nil:
		progressing.Reason, progressing.Message = progressReason(p.decision), s.Update.Message
		if waits(p.decision) {
			progressing.Status = metav1.ConditionFalse
		}
	case len(unready) > 0:
		progressing.Reason, progressing.Message = v1alpha1.ReasonShardsStarting, "waiting for "+strings.Join(unready, ", ")
	default:
		progressing.Status, progressing.Reason = metav1.ConditionFalse, v1alpha1.ReasonSettled
		progressing.Message = "everything is as it was asked for"
	}

	degraded = metav1.Condition{Type: v1alpha1.ConditionDegraded, Status: metav1.ConditionFalse,
		Reason: v1alpha1.ReasonAsExpected, Message: "nothing needs a person"}
	if trouble := worst(seen, p, a, s); trouble != nil {
		degraded.Status, degraded.Reason, degraded.Message = metav1.ConditionTrue, trouble.reason, trouble.message
	}
	return available, progressing, degraded
}

// worst returns the first problem that a person has to look at, in a fixed order:
// of the spec, of objects, of shards by ordinal.
func worst(seen *observed, p plan, a applied, s v1alpha1.MemcachedStatus) *problem {
	switch {
	case p.refused != nil:
		return p.refused
	case p.invalid != nil:
		return p.invalid
	case len(p.conflicts) > 0:
		return &problem{v1alpha1.ReasonNameConflict,
			fmt.Sprintf("%s exists and is not this Memcached's; it is left alone: delete it or choose another name for the Memcached", joinKeys(p.conflicts))}
	case len(a.refusals) > 0:
		return &problem{v1alpha1.ReasonApplyRefused, "the API server refused " + a.refusals[0].Error()}
	}
	for _, err := range a.failures {
		if apierrors.IsForbidden(err) { // tried again too, as a quota or a policy may change
			return &problem{v1alpha1.ReasonApplyRefused, "the API server refused " + err.Error()}
		}
	}
	for _, shard := range s.Shards {
		for _, pod := range seen.pods[shard.Name] {
			if trouble := podTrouble(pod); trouble != nil && !shard.Ready {
				return &problem{trouble.reason, fmt.Sprintf("shard %s: %s", shard.Name, trouble.message)}
			}
		}
	}
	if p.decision.NeedsPerson {
		return p.stopped()
	}
	for _, shard := range s.Shards {
		if shard.Ready && shard.Current && shard.Version != "" && p.image.Version != "" && shard.Version != p.image.Version {
			return &problem{v1alpha1.ReasonVersionMismatch,
				fmt.Sprintf("shard %s: image %s holds memcached %s, not %s as it says", shard.Name, p.image.Reference, shard.Version, p.image.Version)}
		}
	}
	if m := seen.memcached; m.Spec.DeletionPolicy == v1alpha1.DeletionBackup && m.Spec.Backup == nil {
		return &problem{v1alpha1.ReasonDeletionPolicyInvalid, "spec.deletionPolicy Backup needs spec.backup, which says where the backup goes; without it the Memcached would go without a backup"}
	}
	return nil
}

// phase returns the conditions in one word.
func phase(m *v1alpha1.Memcached, progressing, degraded metav1.Condition) v1alpha1.Phase {
	switch {
	case m.DeletionTimestamp != nil:
		return v1alpha1.PhaseDeleting
	case degraded.Status == metav1.ConditionTrue:
		return v1alpha1.PhaseDegraded
	case m.Spec.Paused:
		return v1alpha1.PhasePaused
	case progressing.Status == metav1.ConditionTrue:
		return v1alpha1.PhaseProgressing
	default:
		return v1alpha1.PhaseRunning
	}
}

// unreadyShards returns the names of the shards, of those asked for, that do not
// serve.
func unreadyShards(s v1alpha1.MemcachedStatus, want int) []string {
	var names []string
	for _, shard := range s.Shards[:min(want, len(s.Shards))] {
		if !shard.Ready {
			names = append(names, shard.Name)
		}
	}
	return names
}

func joinKeys(keys []manifests.Key) string {
	words := make([]string, len(keys))
	for i, key := range keys {
		words[i] = key.String()
	}
	return strings.Join(words, ", ")
}

func bounded(message string) string {
	if len(message) <= maxMessage {
		return message
	}
	return strings.ToValidUTF8(message[:maxMessage], "") + "…"
}
