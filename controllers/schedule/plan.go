package schedule

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/apiserver"
	"github.com/memcached-operator/memcached-operator/controllers/condition"
	"github.com/memcached-operator/memcached-operator/controllers/event"
)

// plan is what a reconcile does.
type plan struct {
	actions actions
	// status to write after the actions, and the events to record after it.
	status v1beta1.MemcachedScheduledBackupStatus
	events []event.Event
	// requeueAfter is when to reconcile again if nothing changes before; 0 is never.
	requeueAfter time.Duration
}

// actions are the writes before that of the status, in this order.
type actions struct {
	// replace are running backups that the next one replaces, at most maxDeleting.
	replace []v1beta1.MemcachedBackup
	// create is the backup of the run that is due, or nil. It waits until replace are the last ones.
	create *v1beta1.MemcachedBackup
	// prune are backups that the retention doesn't keep.
	prune []v1beta1.MemcachedBackup
}

// startRun reports whether the actions are about a run.
func (a actions) startRun() bool { return a.create != nil || len(a.replace) > 0 }

// makePlan returns what to do about a schedule.
func makePlan(obs observation) plan {
	s, active := obs.schedule, activeOf(obs.backups)
	kept := expired(obs.backups, s.Spec.Retention, obs.now)
	p := planRuns(obs, active, kept.guard)
	if expires := kept.next.Sub(obs.now); !kept.next.IsZero() && (p.requeueAfter == 0 || expires < p.requeueAfter) {
		p.requeueAfter = expires
	}
	p.actions.prune = firstToDelete(kept.prune, obs.backups)
	for _, b := range p.actions.prune {
		p.events = append(p.events, event.Normal(v1beta1.EventBackupPruned, "deleted backup %s (%s), which spec.retention does not keep", b.Name, b.Status.Phase))
	}
	return p
}

// planRuns plans the run that is due, and the next one. guard is the backup that stays in spite of the retention, or nil.
func planRuns(obs observation, active []v1beta1.MemcachedBackup, guard *v1beta1.MemcachedBackup) plan {
	s, status := obs.schedule, makeStatus(obs, active)
	runs, reason, message := parse(s.Spec, obs.now)
	switch {
	case reason != "":
		p := plan{status: withHealth(status, obs, condition.Stalled, reason, message)}
		if before := readyCondition(s.Status); before == nil || before.Message != message {
			p.events = []event.Event{event.Warning(reason, "%s", message)}
		}
		return p
	case s.Spec.Suspend:
		return plan{status: withHealth(status, obs, condition.Ready, v1beta1.ReasonSuspended, "no backups are created while spec.suspend is true")}
	}
	p, next := planDueRun(obs, status, active, runs), runs.Next(obs.now)
	message = "the next run is at " + next.In(runs.Location).Format(time.RFC3339)
	if guard != nil {
		message += fmt.Sprintf(". Backup %s, which spec.retention does not keep, stays because all later ones have less than half of its items. "+
			"Delete it if that is as expected", guard.Name)
	}
	p.status = withHealth(p.status, obs, condition.Ready, v1beta1.ReasonWaitingForSchedule, message)
	p.status.NextScheduleTime, p.requeueAfter = &metav1.Time{Time: next}, next.Sub(obs.now)
	return p
}

// planDueRun decides about the last run that is due. active are the backups that haven't finished.
func planDueRun(obs observation, status v1beta1.MemcachedScheduledBackupStatus, active []v1beta1.MemcachedBackup, runs *cron.SpecSchedule) plan {
	s, since := obs.schedule, obs.schedule.CreationTimestamp.Time
	if last := s.Status.LastScheduleTime; last != nil {
		since = last.Time
	}
	if since.After(obs.now) { // the clock was ahead
		since = obs.now
		status.LastScheduleTime = &metav1.Time{Time: obs.now.Truncate(time.Second)}
	}
	run := lastRun(runs, since, obs.now)
	if run.IsZero() {
		return plan{status: status}
	}
	unfinished := status // the run remains due
	status.LastScheduleTime = &metav1.Time{Time: run}
	name, at, late := backupName(s.Name, run), run.In(runs.Location).Format(time.RFC3339), obs.now.Sub(run)
	was := readyCondition(s.Status)
	switch {
	case was != nil && (was.Reason == v1beta1.ReasonSuspended || was.Status == metav1.ConditionFalse && was.Reason != v1beta1.ReasonRetrying): // it was due while the schedule was suspended or invalid
		return plan{status: status}
	case slices.ContainsFunc(obs.backups, func(b v1beta1.MemcachedBackup) bool { return b.Name == name }):
		status.LastBackupName = name // it was created, but the operator was killed before it wrote the status
		return plan{status: status}
	case late > startingDeadline(s):
		message := fmt.Sprintf("missed the run at %s: it is %s late, which exceeds spec.startingDeadlineSeconds", at, late.Truncate(time.Second))
		if was != nil && was.Reason == v1beta1.ReasonRetrying && strings.Contains(was.Message, name) {
			message += "; the API server rejected its backup: " + was.Message
		}
		return plan{status: status, events: []event.Event{event.Warning(v1beta1.EventMissedSchedule, "%s", message)}}
	case obs.noShards: // a Failed backup would be the last one when the Memcached has shards again
		return plan{status: status, events: []event.Event{event.Normal(v1beta1.EventBackupSkipped,
			"skipped the run at %s because Memcached %s has no shard", at, s.Spec.BackupTemplate.Spec.MemcachedRef.Name)}}
	}
	var replace []v1beta1.MemcachedBackup
	switch policy := s.Spec.ConcurrencyPolicy; {
	case len(active) == 0 || policy == v1beta1.ConcurrencyAllow:
	case policy != v1beta1.ConcurrencyReplace:
		return plan{status: status, events: []event.Event{event.Normal(v1beta1.EventBackupSkipped,
			"skipped the run at %s because backup %s is still running", at, strings.Join(status.Active, ", "))}}
	case len(active) > maxDeleting: // the deletions trigger the next reconcile
		unfinished.Active = namesOf(active[maxDeleting:])
		return plan{status: unfinished, actions: actions{replace: active[:maxDeleting]}}
	default:
		replace, status.Active = active, nil
	}
	status.LastBackupName = name
	status.Active = append(slices.Clip(status.Active), name)
	return plan{status: status, actions: actions{replace: replace, create: backupOf(s, name)}}
}

// retried returns a plan after the API server rejected the backup of a run, which is
// retried up to the starting deadline.
func (p plan) retried(obs observation, rejection error) plan {
	p.status = withHealth(obs.schedule.Status, obs, condition.Reconciling, v1beta1.ReasonRetrying, rejection.Error())
	p.requeueAfter = apiserver.RejectionRecheck
	return p
}

// activeOf returns the backups that haven't finished, by name.
func activeOf(backups []v1beta1.MemcachedBackup) (active []v1beta1.MemcachedBackup) {
	for _, b := range backups {
		if !b.Status.IsFinished() && b.DeletionTimestamp == nil {
			active = append(active, b)
		}
	}
	slices.SortFunc(active, func(a, b v1beta1.MemcachedBackup) int { return strings.Compare(a.Name, b.Name) })
	return active
}

func startingDeadline(s *v1beta1.MemcachedScheduledBackup) time.Duration {
	return v1beta1.Seconds(s.Spec.StartingDeadlineSeconds, v1beta1.DefaultStartingDeadlineSeconds)
}

func backupName(schedule string, run time.Time) string {
	return schedule + "-" + strconv.FormatInt(run.Unix()/60, 10)
}

func belongsTo(b *v1beta1.MemcachedBackup, schedule string) bool {
	digits, ok := strings.CutPrefix(b.Name, schedule+"-")
	_, err := strconv.ParseUint(digits, 10, 63)
	return ok && err == nil && b.Labels[v1beta1.LabelSchedule] == schedule
}

// backupOf returns the backup of a run.
func backupOf(s *v1beta1.MemcachedScheduledBackup, name string) *v1beta1.MemcachedBackup {
	return &v1beta1.MemcachedBackup{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: name, Labels: map[string]string{v1beta1.LabelSchedule: s.Name}},
		Spec:       s.BackupSpec(),
	}
}
