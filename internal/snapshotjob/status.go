package snapshotjob

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/internal/snapshotapi"
)

// maxMessage bounds a message, in bytes: an event takes 1 KiB.
const maxMessage = 1000

// HasEnded says whether something that runs once has come to its end, which does
// not change any more.
func HasEnded(s v1alpha1.RunStatus) bool {
	return s.Phase == v1alpha1.RunComplete || s.Phase == v1alpha1.RunFailed
}

// Wait returns the status of what has not begun, and why not.
func Wait(s v1alpha1.RunStatus, generation int64, reason, message string, now time.Time) v1alpha1.RunStatus {
	return told(s, generation, "", reason, message, now)
}

// Begin returns the status that stands before there is a Job.
func Begin(s v1alpha1.RunStatus, generation int64, job, message string, now time.Time) v1alpha1.RunStatus {
	s = told(s, generation, v1alpha1.RunRunning, v1alpha1.ReasonStarting, message, now)
	s.Job, s.StartTime = job, &metav1.Time{Time: now.Truncate(time.Second)}
	return s
}

// End returns the status of what has ended.
func End(s v1alpha1.RunStatus, generation int64, phase v1alpha1.RunPhase, reason, message string, now time.Time) v1alpha1.RunStatus {
	s = told(s, generation, phase, reason, message, now)
	s.CompletionTime = &metav1.Time{Time: now.Truncate(time.Second)}
	return s
}

// Hold returns the status of what has begun and gets no Job, and why not.
func Hold(s v1alpha1.RunStatus, generation int64, reason, message string, now time.Time) v1alpha1.RunStatus {
	return told(s, generation, v1alpha1.RunRunning, reason, message, now)
}

// Note returns the status with another message. What it tells of is not the run: the
// conditions stay.
func Note(s v1alpha1.RunStatus, message string) v1alpha1.RunStatus {
	s.Message = bounded(message)
	return s
}

// Next returns the status of what runs, after its Job was judged.
func Next(s v1alpha1.RunStatus, generation int64, v Verdict, jobUID string, now time.Time) v1alpha1.RunStatus {
	seenBefore := s.JobUID != ""
	if jobUID != "" {
		s.JobUID = jobUID
	}
	switch v.Stage {
	case Absent:
		switch {
		case !seenBefore && s.Reason == v1alpha1.ReasonJobCannotStart && s.StartTime != nil && now.Sub(s.StartTime.Time) >= StuckBound:
			return End(s, generation, v1alpha1.RunFailed, s.Reason, s.Message, now)
		case !seenBefore: // it is to be made
			return s
		case s.Reason == v1alpha1.ReasonJobCannotStart: // it was given up
			return End(s, generation, v1alpha1.RunFailed, s.Reason, s.Message, now)
		}
		return End(s, generation, v1alpha1.RunFailed, v1alpha1.ReasonJobDeleted, fmt.Sprintf("Job %s was deleted before it ended: make another one", s.Job), now)
	case Ending: // the reason stays, which may be why it is deleted
		return s
	case Foreign, Failed:
		s.Progress = progressOf(s.Progress, v, false)
		return End(s, generation, v1alpha1.RunFailed, v.Reason, v.Message, now)
	case Succeeded:
		s.Progress = progressOf(s.Progress, v, true)
		return End(s, generation, v1alpha1.RunComplete, v.Reason, v.Message, now)
	default:
		s.Progress = progressOf(s.Progress, v, false)
		return told(s, generation, v1alpha1.RunRunning, v.Reason, v.Message, now)
	}
}

// progressOf returns how far it is, or was when that was last heard.
func progressOf(was *v1alpha1.RunProgress, v Verdict, whole bool) *v1alpha1.RunProgress {
	var p v1alpha1.RunProgress
	switch {
	case v.Outcome != nil:
		p = v1alpha1.RunProgress{Items: v.Outcome.Items, TotalItems: v.Outcome.TotalItems, Bytes: v.Outcome.Bytes, ItemsPerSecond: v.Outcome.ItemsPerSecond}
	case v.Stage == Copying && v.Progress == nil && was == nil: // it has begun, however far
	case v.Progress != nil:
		p = v1alpha1.RunProgress{Items: v.Progress.Items, TotalItems: v.Progress.TotalItems, Bytes: v.Progress.Bytes, ItemsPerSecond: v.Progress.ItemsPerSecond}
	default:
		return was
	}
	p.Percent = percent(p.Items, p.TotalItems)
	if whole {
		p.Percent = 100
	}
	return &p
}

// percent returns how much of the whole is done. All of it is only said once it has
// ended: the whole may still grow.
func percent(items, total int64) int32 {
	if total <= 0 {
		return 0
	}
	return int32(min(99, max(0, float64(items)*100/float64(total)))) //nolint:gosec // 0 to 99
}

// told returns a status with its two conditions, which are always both there.
func told(s v1alpha1.RunStatus, generation int64, phase v1alpha1.RunPhase, reason, message string, now time.Time) v1alpha1.RunStatus {
	s.ObservedGeneration, s.Phase, s.Reason, s.Message = generation, phase, reason, bounded(message)
	s.Conditions = slices.Clone(s.Conditions)
	for kind, holds := range map[string]bool{
		v1alpha1.ConditionComplete: phase == v1alpha1.RunComplete,
		v1alpha1.ConditionFailed:   phase == v1alpha1.RunFailed,
	} {
		status := metav1.ConditionFalse
		if holds {
			status = metav1.ConditionTrue
		}
		meta.SetStatusCondition(&s.Conditions, metav1.Condition{Type: kind, Status: status, Reason: reason, Message: s.Message,
			ObservedGeneration: generation, LastTransitionTime: metav1.NewTime(now.Truncate(time.Second))})
	}
	slices.SortFunc(s.Conditions, func(a, b metav1.Condition) int { return strings.Compare(a.Type, b.Type) })
	return s
}

// bounded returns a message that is not too long for a person or an event.
func bounded(message string) string {
	if len(message) <= maxMessage {
		return message
	}
	cut := maxMessage
	for cut > 0 && message[cut]&0xC0 == 0x80 { // not within a character
		cut--
	}
	return message[:cut] + "…"
}

// SnapshotOf returns a snapshot as the status describes it; nil when there is none.
func SnapshotOf(s *snapshotapi.Snapshot, path string) *v1alpha1.SnapshotStatus {
	if s == nil {
		return nil
	}
	return &v1alpha1.SnapshotStatus{
		Path:          path,
		TakenAt:       metav1.NewTime(s.TakenAt.Truncate(time.Second)),
		Shards:        int32(s.Shards), //nolint:gosec // at most 1000
		Items:         s.Items,
		Bytes:         s.Bytes,
		StoredBytes:   s.StoredBytes,
		FormatVersion: int32(s.FormatVersion), //nolint:gosec // counted from 1
	}
}
