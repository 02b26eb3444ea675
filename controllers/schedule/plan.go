package schedule

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers/apiserver"
	"github.com/memcached-operator/memcached-operator/controllers/event"
)

// maxActive is how many running backups a status names: etcd stores at most 1.5 MiB.
const maxActive = 1000

// plan is what to write, in this order.
type plan struct {
	// replace are running backups that the next one replaces, at most maxDeleting.
	replace []v1alpha1.MemcachedBackup
	// create is the backup of the run that is due, or nil. It waits until replace are the last ones.
	create *v1alpha1.MemcachedBackup
	// prune are backups that the retention doesn't keep.
	prune []v1alpha1.MemcachedBackup
	// status to write, and the events to record after it.
	status v1alpha1.MemcachedScheduledBackupStatus
	events []event.Event
	// requeueAfter is when to reconcile again if nothing changes before; 0 is never.
	requeueAfter time.Duration
}

func makePlan(s *v1alpha1.MemcachedScheduledBackup, backups []v1alpha1.MemcachedBackup, now time.Time) plan {
	p := plan{status: *s.Status.DeepCopy()}
	p.status.ObservedGeneration = s.Generation
	p.status.NextScheduleTime, p.status.Active = nil, nil
	var active []v1alpha1.MemcachedBackup
	for i := range backups {
		b := &backups[i]
		switch b.Status.Phase {
		case v1alpha1.TransferComplete:
			if at := b.Status.CompletionTime; at != nil && (p.status.LastSuccessfulTime == nil || p.status.LastSuccessfulTime.Before(at)) {
				p.status.LastSuccessfulTime = at
			}
		case v1alpha1.TransferFailed:
		default:
			if b.DeletionTimestamp == nil {
				active = append(active, *b)
			}
		}
	}
	slices.SortFunc(active, func(a, b v1alpha1.MemcachedBackup) int { return strings.Compare(a.Name, b.Name) })
	p.status.Active = namesOf(active)
	kept := expired(backups, s.Spec.Retention, now)
	runs, reason, message := parse(s.Spec, now)
	switch {
	case reason != "":
		p.setCondition(s, metav1.ConditionFalse, reason, message, now)
		if before := meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ConditionScheduled); before == nil || before.Message != message {
			p.events = append(p.events, event.Warning(v1alpha1.EventScheduleInvalid, "%s", message))
		}
	case s.Spec.Suspend:
		p.setCondition(s, metav1.ConditionFalse, v1alpha1.ReasonSuspended, "no backups are created while spec.suspend is true", now)
	default:
		p.startDueBackup(s, backups, active, runs, now)
		next := runs.Next(now)
		p.status.NextScheduleTime = &metav1.Time{Time: next}
		p.requeueAfter = next.Sub(now)
		message := "the next run is at " + next.In(runs.Location).Format(time.RFC3339)
		if kept.guard != nil {
			message += fmt.Sprintf(". Backup %s, which spec.retention does not keep, stays because all later ones have less than half of its items. "+
				"Delete it if that is as expected", kept.guard.Name)
		}
		p.setCondition(s, metav1.ConditionTrue, v1alpha1.ReasonWaitingForSchedule, message, now)
	}
	if expires := kept.next; !expires.IsZero() && (p.requeueAfter == 0 || expires.Sub(now) < p.requeueAfter) {
		p.requeueAfter = expires.Sub(now)
	}
	p.prune = batch(kept.prune, backups)
	for _, b := range p.prune {
		p.events = append(p.events, event.Normal(v1alpha1.EventBackupPruned, "deleted backup %s (%s), which spec.retention does not keep", b.Name, b.Status.Phase))
	}
	return p
}

// planRetry returns the plan after the API server rejected the backup of a run, which is
// retried up to the starting deadline.
func planRetry(s *v1alpha1.MemcachedScheduledBackup, rejection error, now time.Time) plan {
	p := plan{status: *s.Status.DeepCopy(), requeueAfter: apiserver.RejectionRecheck}
	p.setCondition(s, metav1.ConditionTrue, v1alpha1.ReasonRetrying, rejection.Error(), now)
	return p
}

// namesOf returns the names of backups, at most maxActive.
func namesOf(backups []v1alpha1.MemcachedBackup) (names []string) {
	for i := range min(len(backups), maxActive) {
		names = append(names, backups[i].Name)
	}
	return names
}

// startDueBackup decides about the last run that is due. active are the backups that haven't finished.
func (p *plan) startDueBackup(s *v1alpha1.MemcachedScheduledBackup, backups, active []v1alpha1.MemcachedBackup, runs *cron.SpecSchedule, now time.Time) {
	since := s.CreationTimestamp.Time
	if last := s.Status.LastScheduleTime; last != nil {
		since = last.Time
	}
	if since.After(now) { // the clock was ahead
		since = now
		p.status.LastScheduleTime = &metav1.Time{Time: now.Truncate(time.Second)}
	}
	run, before := lastRun(runs, since, now), p.status.LastScheduleTime
	if run.IsZero() {
		return
	}
	p.status.LastScheduleTime = &metav1.Time{Time: run}
	if meta.IsStatusConditionFalse(s.Status.Conditions, v1alpha1.ConditionScheduled) {
		return // it was due while the schedule was suspended or invalid
	}
	name, at := backupName(s.Name, run), run.In(runs.Location).Format(time.RFC3339)
	switch late := now.Sub(run); {
	case slices.ContainsFunc(backups, func(b v1alpha1.MemcachedBackup) bool { return b.Name == name }):
		p.status.LastBackupName = name // it was created, but the operator was killed before it wrote the status
		return
	case late > startingDeadline(s):
		p.events = append(p.events, event.Warning(v1alpha1.EventMissedSchedule,
			"missed the run at %s: it is %s late, which exceeds spec.startingDeadlineSeconds", at, late.Truncate(time.Second)))
		return
	}
	if len(active) > 0 {
		switch s.Spec.ConcurrencyPolicy {
		case v1alpha1.ConcurrencyAllow:
		case v1alpha1.ConcurrencyReplace:
			n := min(len(active), maxDeleting)
			p.replace, p.status.Active = active[:n], namesOf(active[n:])
			if n < len(active) { // the run remains due, and the deletions trigger the next reconcile
				p.status.LastScheduleTime = before
				return
			}
		default:
			p.events = append(p.events, event.Normal(v1alpha1.EventBackupSkipped,
				"skipped the run at %s because backup %s is still running", at, strings.Join(p.status.Active, ", ")))
			return
		}
	}
	p.create = backupOf(s, name)
	p.status.LastBackupName = name
	p.status.Active = append(p.status.Active, name)
}

func startingDeadline(s *v1alpha1.MemcachedScheduledBackup) time.Duration {
	return v1alpha1.Seconds(s.Spec.StartingDeadlineSeconds, v1alpha1.DefaultStartingDeadlineSeconds)
}

func (p *plan) setCondition(s *v1alpha1.MemcachedScheduledBackup, status metav1.ConditionStatus, reason, message string, now time.Time) {
	meta.SetStatusCondition(&p.status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionScheduled, Status: status, Reason: reason, Message: message,
		ObservedGeneration: s.Generation, LastTransitionTime: metav1.NewTime(now.Truncate(time.Second)),
	})
}

func backupName(schedule string, run time.Time) string {
	return schedule + "-" + strconv.FormatInt(run.Unix()/60, 10)
}

func belongsTo(b *v1alpha1.MemcachedBackup, schedule string) bool {
	digits, ok := strings.CutPrefix(b.Name, schedule+"-")
	_, err := strconv.ParseUint(digits, 10, 63)
	return ok && err == nil && b.Labels[v1alpha1.LabelSchedule] == schedule
}

// backupOf returns the backup of a run. The retention of a schedule applies to the
// snapshots as well.
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
