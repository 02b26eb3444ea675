package schedule

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
)

// defaultDeadline is that of the API server's default.
const defaultDeadline = time.Hour

// plan is what to write, in this order.
type plan struct {
	// deletes are backups that make room for the next one.
	deletes []v1alpha1.MemcachedBackup
	// create is the backup of the turn that is due, or nil.
	create *v1alpha1.MemcachedBackup
	// prune are backups that are not kept.
	prune []v1alpha1.MemcachedBackup
	// status to tell, and the events of what it tells.
	status v1alpha1.MemcachedScheduledBackupStatus
	events []event
	// requeueAfter is when to look again, if nothing changes before; 0 is never.
	requeueAfter time.Duration
}

// event is one to record.
type event struct{ kind, reason, message string }

// makePlan decides what to do for a schedule that has these backups.
func makePlan(s *v1alpha1.MemcachedScheduledBackup, backups []v1alpha1.MemcachedBackup, now time.Time) plan {
	p := plan{status: *s.Status.DeepCopy()}
	p.status.ObservedGeneration = s.Generation
	p.status.NextScheduleTime, p.status.Active = nil, nil
	for i := range backups {
		b := &backups[i]
		switch b.Status.Phase {
		case v1alpha1.RunComplete:
			if at := b.Status.CompletionTime; at != nil && (p.status.LastSuccessfulTime == nil || p.status.LastSuccessfulTime.Before(at)) {
				p.status.LastSuccessfulTime = at
			}
		case v1alpha1.RunFailed:
		default:
			if b.DeletionTimestamp == nil {
				p.status.Active = append(p.status.Active, b.Name)
			}
		}
	}
	slices.Sort(p.status.Active)
	turns, reason, message := parse(s.Spec, now)
	switch {
	case reason != "":
		p.tell(s, metav1.ConditionFalse, reason, message, now)
		if before := meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ConditionScheduled); before == nil || before.Message != message {
			p.events = append(p.events, event{corev1.EventTypeWarning, v1alpha1.EventScheduleInvalid, message})
		}
	case s.Spec.Suspend:
		p.tell(s, metav1.ConditionFalse, v1alpha1.ReasonSuspended, "spec.suspend is true: no backup is made", now)
	default:
		p.takeTurn(s, backups, turns, now)
		next := turns.next(now)
		p.status.NextScheduleTime = &metav1.Time{Time: next}
		p.requeueAfter = next.Sub(now)
		p.tell(s, metav1.ConditionTrue, v1alpha1.ReasonWaitingForTurn, "the next turn is at "+next.In(turns.zone).Format(time.RFC3339), now)
	}
	var expires time.Time
	if p.prune, expires = unkept(backups, s.Spec.Retention, now); !expires.IsZero() && (p.requeueAfter == 0 || expires.Sub(now) < p.requeueAfter) {
		p.requeueAfter = expires.Sub(now)
	}
	for _, b := range p.prune {
		p.events = append(p.events, event{corev1.EventTypeNormal, v1alpha1.EventBackupPruned, fmt.Sprintf("backup %s (%s) is not kept any more", b.Name, b.Status.Phase)})
	}
	return p
}

// takeTurn decides about the last turn that has come.
func (p *plan) takeTurn(s *v1alpha1.MemcachedScheduledBackup, backups []v1alpha1.MemcachedBackup, turns turns, now time.Time) {
	since := s.CreationTimestamp.Time
	if last := s.Status.LastScheduleTime; last != nil {
		since = last.Time
	}
	turn := turns.last(since, now)
	if turn.IsZero() {
		return
	}
	p.status.LastScheduleTime = &metav1.Time{Time: turn}
	if meta.IsStatusConditionFalse(s.Status.Conditions, v1alpha1.ConditionScheduled) {
		return // it came while none did
	}
	name := nameOf(s.Name, turn)
	switch late := now.Sub(turn); {
	case slices.ContainsFunc(backups, func(b v1alpha1.MemcachedBackup) bool { return b.Name == name }):
		p.status.LastBackup = name // it was taken, and the operator killed before it could tell
		return
	case late > startingDeadline(s):
		p.events = append(p.events, event{corev1.EventTypeWarning, v1alpha1.EventTurnMissed,
			fmt.Sprintf("the turn of %s was missed by %s, more than spec.startingDeadline", turn.In(turns.zone).Format(time.RFC3339), late.Truncate(time.Second))})
		return
	}
	if len(p.status.Active) > 0 {
		switch s.Spec.ConcurrencyPolicy {
		case v1alpha1.ConcurrencyAllow:
		case v1alpha1.ConcurrencyReplace:
			for _, b := range backups {
				if slices.Contains(p.status.Active, b.Name) {
					p.deletes = append(p.deletes, b)
				}
			}
			p.status.Active = nil
		default:
			p.events = append(p.events, event{corev1.EventTypeNormal, v1alpha1.EventTurnLeftOut,
				fmt.Sprintf("the turn of %s is left out, as backup %s has not ended", turn.In(turns.zone).Format(time.RFC3339), strings.Join(p.status.Active, ", "))})
			return
		}
	}
	p.create = backupOf(s, name)
	p.status.LastBackup = name
	p.status.Active = append(p.status.Active, name)
}

// startingDeadline returns how late a turn may begin.
func startingDeadline(s *v1alpha1.MemcachedScheduledBackup) time.Duration {
	if s.Spec.StartingDeadline == nil {
		return defaultDeadline
	}
	return s.Spec.StartingDeadline.Duration
}

// tell sets the condition.
func (p *plan) tell(s *v1alpha1.MemcachedScheduledBackup, status metav1.ConditionStatus, reason, message string, now time.Time) {
	meta.SetStatusCondition(&p.status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionScheduled, Status: status, Reason: reason, Message: message,
		ObservedGeneration: s.Generation, LastTransitionTime: metav1.NewTime(now.Truncate(time.Second)),
	})
}

// nameOf returns the name of a turn's backup.
func nameOf(schedule string, turn time.Time) string {
	return schedule + "-" + strconv.FormatInt(turn.Unix()/60, 10)
}

// isOf says whether a backup was made by a schedule of this name.
func isOf(b *v1alpha1.MemcachedBackup, schedule string) bool {
	digits, ok := strings.CutPrefix(b.Name, schedule+"-")
	_, err := strconv.ParseUint(digits, 10, 63)
	return ok && err == nil && b.Labels[v1alpha1.LabelSchedule] == schedule
}

// backupOf returns the backup of a turn. A schedule that says which backups to keep
// means their snapshots.
func backupOf(s *v1alpha1.MemcachedScheduledBackup, name string) *v1alpha1.MemcachedBackup {
	b := &v1alpha1.MemcachedBackup{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: name, Labels: map[string]string{v1alpha1.LabelSchedule: s.Name}},
		Spec:       *s.Spec.BackupTemplate.Spec.DeepCopy(),
	}
	if b.Spec.DeletionPolicy == "" && s.Spec.Retention != nil {
		b.Spec.DeletionPolicy = v1alpha1.SnapshotDelete
	}
	return b
}
