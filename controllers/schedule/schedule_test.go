package schedule

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
)

// scheduled returns a daily schedule that was created a day before now.
func scheduled(now time.Time, edits ...func(*v1beta1.MemcachedScheduledBackup)) *v1beta1.MemcachedScheduledBackup {
	s := &v1beta1.MemcachedScheduledBackup{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "nightly", Generation: 3, CreationTimestamp: metav1.NewTime(now.Add(-24 * time.Hour))}}
	s.Spec = spec("30 2 * * *", "UTC")
	s.Spec.BackupTemplate.Spec.MemcachedRef.Name = "cache"
	for _, edit := range edits {
		edit(s)
	}
	return s
}

// created returns a backup of the schedule, of that age and phase.
func created(now time.Time, ago time.Duration, phase v1beta1.TransferPhase) v1beta1.MemcachedBackup {
	run := now.Add(-ago)
	b := v1beta1.MemcachedBackup{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: backupName("nightly", run), CreationTimestamp: metav1.NewTime(run)}}
	b.Status.Phase = phase
	if phase == v1beta1.TransferComplete || phase == v1beta1.TransferFailed {
		b.Status.CompletionTime = &metav1.Time{Time: run.Add(time.Minute)}
	}
	return b
}

func TestRunCreatesOneBackup(t *testing.T) {
	run := at(t, "2026-05-01T02:30:00Z")
	name := backupName("nightly", run)
	active := created(run, time.Hour, v1beta1.TransferRunning)
	taken := created(run, 0, "")
	retained := func(s *v1beta1.MemcachedScheduledBackup) { s.Spec.Retention = &v1beta1.BackupRetention{} }
	policy := func(p v1beta1.ConcurrencyPolicy) func(*v1beta1.MemcachedScheduledBackup) {
		return func(s *v1beta1.MemcachedScheduledBackup) { s.Spec.ConcurrencyPolicy = p }
	}
	last := func(text string) func(*v1beta1.MemcachedScheduledBackup) {
		return func(s *v1beta1.MemcachedScheduledBackup) {
			s.Status.LastScheduleTime = &metav1.Time{Time: at(t, text)}
		}
	}
	was := func(reason string) func(*v1beta1.MemcachedScheduledBackup) {
		return func(s *v1beta1.MemcachedScheduledBackup) {
			s.Status.Conditions = []metav1.Condition{{Type: v1beta1.ConditionReady, Status: metav1.ConditionFalse, Reason: reason}}
		}
	}
	type edits = []func(*v1beta1.MemcachedScheduledBackup)
	for description, test := range map[string]struct {
		edits    edits
		late     time.Duration
		backups  []v1beta1.MemcachedBackup
		noShards bool
		create   bool
		replaces int
		event    string
		last     bool // LastScheduleTime is the run
	}{
		"on time":                            {create: true, last: true},
		"early":                              {late: -time.Second},
		"late, within the starting deadline": {late: time.Hour, create: true, last: true},
		"too late":                           {late: time.Hour + time.Second, event: v1beta1.EventMissedSchedule, last: true},
		"it ran before":                      {edits: edits{last("2026-05-01T02:30:00Z")}, late: time.Minute, last: true},
		"it ran, but the status lacks it":    {backups: []v1beta1.MemcachedBackup{taken}, last: true},
		"the same, and another is running":   {edits: edits{policy(v1beta1.ConcurrencyReplace)}, backups: []v1beta1.MemcachedBackup{taken, active}, last: true},
		"another is still running":           {backups: []v1beta1.MemcachedBackup{active}, event: v1beta1.EventBackupSkipped, last: true},
		"the Memcached has no shard":         {edits: edits{policy(v1beta1.ConcurrencyReplace)}, backups: []v1beta1.MemcachedBackup{active}, noShards: true, event: v1beta1.EventBackupSkipped, last: true},
		"another may run in parallel":        {edits: edits{policy(v1beta1.ConcurrencyAllow)}, backups: []v1beta1.MemcachedBackup{active}, create: true, last: true},
		"another is replaced":                {edits: edits{policy(v1beta1.ConcurrencyReplace)}, backups: []v1beta1.MemcachedBackup{active}, create: true, replaces: 1, last: true},
		"suspended":                          {edits: edits{func(s *v1beta1.MemcachedScheduledBackup) { s.Spec.Suspend = true }}},
		"due while suspended":                {edits: edits{was(v1beta1.ReasonSuspended)}, late: time.Minute, last: true},
		"due while invalid":                  {edits: edits{was(v1beta1.ReasonScheduleInvalid)}, late: time.Minute, last: true},
		"the last of several missed ones":    {edits: edits{last("2026-04-20T02:30:00Z")}, late: time.Minute, create: true, last: true},
		"created after the run": {edits: edits{func(s *v1beta1.MemcachedScheduledBackup) {
			s.CreationTimestamp = metav1.NewTime(run.Add(time.Second))
		}},
			late: time.Minute},
		"with a retention, Delete is the default": {edits: edits{retained}, create: true, last: true},
	} {
		t.Run(description, func(t *testing.T) {
			now := run.Add(test.late)
			s := scheduled(run, test.edits...)
			p := makePlan(observation{s, test.backups, now, test.noShards})
			if (p.actions.create != nil) != test.create || len(p.actions.replace) != test.replaces {
				t.Fatalf("it creates %+v and replaces %d", p.actions.create, len(p.actions.replace))
			}
			if p.actions.create != nil {
				want := v1beta1.SnapshotDeletionPolicy("")
				if s.Spec.Retention != nil {
					want = v1beta1.SnapshotDelete
				}
				if p.actions.create.Name != name || p.actions.create.Labels[v1beta1.LabelSchedule] != "nightly" || len(p.actions.create.OwnerReferences) != 0 || p.actions.create.Spec.DeletionPolicy != want ||
					p.actions.create.Spec.MemcachedRef.Name != "cache" {
					t.Errorf("it creates %+v", p.actions.create)
				}
				if p.status.LastBackupName != name || !slices.Contains(p.status.Active, name) {
					t.Errorf("the status is %+v", p.status)
				}
			}
			if got := p.status.LastScheduleTime != nil && p.status.LastScheduleTime.Time.Equal(run); got != test.last {
				t.Errorf("the last run is %v", p.status.LastScheduleTime)
			}
			var events []string
			for _, e := range p.events {
				events = append(events, e.Reason)
			}
			if strings.Join(events, " ") != test.event {
				t.Errorf("the events are %q", events)
			}
			switch next := p.status.NextScheduleTime; {
			case s.Spec.Suspend:
				if next != nil || p.requeueAfter != 0 {
					t.Errorf("the next run is %v", next)
				}
			case next == nil || !next.After(now) || p.requeueAfter != next.Sub(now):
				t.Errorf("the next run is %v, and it is requeued after %s", next, p.requeueAfter)
			}
		})
	}
}

func TestInvalidScheduleRecordsOneEvent(t *testing.T) {
	now := at(t, "2026-05-01T12:00:00Z")
	s := scheduled(now, func(s *v1beta1.MemcachedScheduledBackup) { s.Spec.Schedule = "at night" })
	p := makePlan(observation{s, nil, now, false})
	c := meta.FindStatusCondition(p.status.Conditions, v1beta1.ConditionReady)
	if c == nil || c.Status != metav1.ConditionFalse || c.Reason != v1beta1.ReasonScheduleInvalid || len(p.events) != 1 || p.requeueAfter != 0 || p.actions.create != nil {
		t.Errorf("the plan is %+v", p)
	}
	s.Status = p.status
	if again := makePlan(observation{s, nil, now, false}); len(again.events) != 0 {
		t.Errorf("another event: %+v", again.events)
	}
}

func TestStatusSummarizesBackups(t *testing.T) {
	now := at(t, "2026-05-01T12:00:00Z")
	finished := created(now, 9*time.Hour, v1beta1.TransferComplete)
	p := makePlan(observation{scheduled(now), []v1beta1.MemcachedBackup{created(now, 33*time.Hour, v1beta1.TransferComplete), finished,
		created(now, time.Hour, v1beta1.TransferFailed), created(now, time.Minute, v1beta1.TransferRunning)}, now, false})
	if !p.status.LastSuccessfulTime.Equal(finished.Status.CompletionTime) || len(p.status.Active) != 1 || p.status.ObservedGeneration != 3 {
		t.Errorf("the status is %+v", p.status)
	}
	s := scheduled(now)
	s.Status = p.status
	if later := makePlan(observation{s, nil, now, false}); !later.status.LastSuccessfulTime.Equal(finished.Status.CompletionTime) {
		t.Errorf("after its backups were deleted, its last success is %v", later.status.LastSuccessfulTime)
	}
}

func TestRetentionKeepsLatestBackups(t *testing.T) {
	now := at(t, "2026-05-01T12:00:00Z")
	const day = 24 * time.Hour
	all := map[string]v1beta1.MemcachedBackup{
		"complete 1d": created(now, day, v1beta1.TransferComplete), "complete 2d": created(now, 2*day, v1beta1.TransferComplete), "complete 9d": created(now, 9*day, v1beta1.TransferComplete),
		"failed 1h": created(now, time.Hour, v1beta1.TransferFailed), "failed 3d": created(now, 3*day, v1beta1.TransferFailed), "failed 4d": created(now, 4*day, v1beta1.TransferFailed),
		"failed 5d": created(now, 5*day, v1beta1.TransferFailed), "running 20d": created(now, 20*day, v1beta1.TransferRunning), "new": created(now, 0, ""),
	}
	for name, test := range map[string]struct {
		keep *v1beta1.BackupRetention
		want []string
		next time.Duration
	}{
		"none given":                   {nil, nil, 0},
		"failed ones, by default":      {&v1beta1.BackupRetention{}, []string{"failed 5d"}, 0},
		"no failed ones":               {&v1beta1.BackupRetention{FailedBackupsHistoryLimit: ptr.To[int32](0)}, []string{"failed 5d", "failed 4d", "failed 3d", "failed 1h"}, 0},
		"a count":                      {&v1beta1.BackupRetention{SuccessfulBackupsHistoryLimit: ptr.To[int32](2), FailedBackupsHistoryLimit: ptr.To[int32](9)}, []string{"complete 9d"}, 0},
		"an age":                       {&v1beta1.BackupRetention{MaxAgeSeconds: ptr.To(int32((36 * time.Hour).Seconds())), FailedBackupsHistoryLimit: ptr.To[int32](9)}, []string{"complete 9d", "failed 5d", "failed 4d", "failed 3d", "complete 2d"}, 35 * time.Hour},
		"an age that none has":         {&v1beta1.BackupRetention{MaxAgeSeconds: ptr.To(int32(time.Minute.Seconds()))}, []string{"complete 9d", "failed 5d", "failed 4d", "failed 3d", "complete 2d", "failed 1h"}, 0},
		"an age, and the next to come": {&v1beta1.BackupRetention{MaxAgeSeconds: ptr.To(int32((10 * day).Seconds())), FailedBackupsHistoryLimit: ptr.To[int32](9)}, nil, day},
		"a count and an age":           {&v1beta1.BackupRetention{SuccessfulBackupsHistoryLimit: ptr.To[int32](1), MaxAgeSeconds: ptr.To(int32((100 * day).Seconds())), FailedBackupsHistoryLimit: ptr.To[int32](1)}, []string{"complete 9d", "failed 5d", "failed 4d", "failed 3d", "complete 2d"}, 100*day - time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			var backups []v1beta1.MemcachedBackup
			names := map[string]string{}
			for name, b := range all { // in any order
				backups = append(backups, b)
				names[b.Name] = name
			}
			p := expired(backups, test.keep, now)
			var got []string
			for _, b := range p.prune {
				got = append(got, names[b.Name])
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("it deletes (-want +got):\n%s", diff)
			}
			if test.next == 0 != p.next.IsZero() || test.next != 0 && p.next.Sub(now) != test.next {
				t.Errorf("the next one expires at %s", p.next)
			}
		})
	}
}

func TestRetentionIgnoresTerminatingBackups(t *testing.T) {
	now := at(t, "2026-05-01T12:00:00Z")
	going := created(now, time.Hour, v1beta1.TransferComplete)
	going.DeletionTimestamp = &metav1.Time{Time: now}
	left := created(now, 2*time.Hour, v1beta1.TransferComplete)
	p := expired([]v1beta1.MemcachedBackup{going, left}, &v1beta1.BackupRetention{SuccessfulBackupsHistoryLimit: ptr.To[int32](1), MaxAgeSeconds: ptr.To(int32(time.Minute.Seconds()))}, now)
	if len(p.prune) != 0 {
		t.Errorf("it deletes %s, the latest one that stays", p.prune[0].Name)
	}
}

func TestRetentionKeepsLatestBackupWithMostItems(t *testing.T) {
	now := at(t, "2026-05-01T12:00:00Z")
	minute := ptr.To(int32(time.Minute.Seconds()))
	one := ptr.To[int32](1)
	for name, test := range map[string]struct {
		keep  v1beta1.BackupRetention
		items []int64 // of Complete backups, one an hour, the newest first
		guard int     // its place; -1 is none
		prune int
	}{
		"equal ones":                         {v1beta1.BackupRetention{SuccessfulBackupsHistoryLimit: one}, []int64{100, 100, 100}, -1, 2},
		"an empty one":                       {v1beta1.BackupRetention{SuccessfulBackupsHistoryLimit: one}, []int64{0, 100, 90}, 1, 1},
		"several empty ones":                 {v1beta1.BackupRetention{SuccessfulBackupsHistoryLimit: one}, []int64{0, 0, 0, 100, 90}, 3, 3},
		"an empty one, by age":               {v1beta1.BackupRetention{MaxAgeSeconds: minute}, []int64{0, 100, 90}, 1, 1},
		"half of the items":                  {v1beta1.BackupRetention{SuccessfulBackupsHistoryLimit: one}, []int64{50, 100}, -1, 1},
		"less than half":                     {v1beta1.BackupRetention{SuccessfulBackupsHistoryLimit: one}, []int64{49, 100}, 1, 0},
		"one that refills":                   {v1beta1.BackupRetention{SuccessfulBackupsHistoryLimit: one}, []int64{60, 0, 100}, -1, 2},
		"the retention keeps it":             {v1beta1.BackupRetention{SuccessfulBackupsHistoryLimit: ptr.To[int32](2)}, []int64{0, 100, 90}, -1, 1},
		"no backup has any items":            {v1beta1.BackupRetention{SuccessfulBackupsHistoryLimit: one}, []int64{0, 0}, -1, 1},
		"the latest is not the guard's peer": {v1beta1.BackupRetention{SuccessfulBackupsHistoryLimit: one}, []int64{10, 60, 100}, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			var backups []v1beta1.MemcachedBackup
			for i, items := range test.items {
				b := created(now, time.Duration(i+1)*time.Hour, v1beta1.TransferComplete)
				b.Status.Snapshot = &v1beta1.SnapshotStatus{Items: items}
				backups = append(backups, b)
			}
			p := makePlan(observation{scheduled(now, func(s *v1beta1.MemcachedScheduledBackup) { s.Spec.Retention = &test.keep }), backups, now, false})
			if len(p.actions.prune) != test.prune {
				t.Errorf("it deletes %d backups, want %d", len(p.actions.prune), test.prune)
			}
			message := meta.FindStatusCondition(p.status.Conditions, v1beta1.ConditionReady).Message
			if test.guard < 0 {
				if strings.Contains(message, "stays") {
					t.Errorf("the condition says %q", message)
				}
				return
			}
			if name := backups[test.guard].Name; !strings.Contains(message, name) {
				t.Errorf("the condition does not name %s: %q", name, message)
			}
			for _, b := range p.actions.prune {
				if b.Name == backups[test.guard].Name {
					t.Errorf("it deletes %s", b.Name)
				}
			}
		})
	}
}

func TestFewBackupsAreDeletedAtATime(t *testing.T) {
	now := at(t, "2026-05-01T12:00:00Z")
	var backups []v1beta1.MemcachedBackup
	for i := range 30 {
		b := created(now, time.Duration(i+1)*time.Hour, v1beta1.TransferComplete)
		b.Status.Snapshot = &v1beta1.SnapshotStatus{Items: 1}
		backups = append(backups, b)
	}
	s := scheduled(now, func(s *v1beta1.MemcachedScheduledBackup) {
		s.Spec.Retention = &v1beta1.BackupRetention{SuccessfulBackupsHistoryLimit: ptr.To[int32](1)}
	})
	p := makePlan(observation{s, backups, now, false})
	if len(p.actions.prune) != maxDeleting || p.actions.prune[0].Name != backups[29].Name {
		t.Fatalf("it deletes %d backups, first %s", len(p.actions.prune), p.actions.prune[0].Name)
	}
	for i := range 3 {
		backups[29-i].DeletionTimestamp = &metav1.Time{Time: now}
	}
	if p := makePlan(observation{s, backups, now, false}); len(p.actions.prune) != maxDeleting-3 {
		t.Errorf("with three in deletion, it deletes %d", len(p.actions.prune))
	}
	for i := range 8 {
		backups[29-i].DeletionTimestamp = &metav1.Time{Time: now}
	}
	if p := makePlan(observation{s, backups, now, false}); len(p.actions.prune) != 0 {
		t.Errorf("with eight in deletion, it deletes %d", len(p.actions.prune))
	}
}

// Users can label any number of backups as those of a schedule. A reconcile that deletes them all delays those of others.
func TestFewRunningBackupsAreReplacedAtATime(t *testing.T) {
	run := at(t, "2026-05-01T02:30:00Z")
	var active []v1beta1.MemcachedBackup
	for i := range 2*maxDeleting + 2 {
		active = append(active, created(run, time.Duration(i+1)*time.Hour, v1beta1.TransferRunning))
	}
	s := scheduled(run, func(s *v1beta1.MemcachedScheduledBackup) { s.Spec.ConcurrencyPolicy = v1beta1.ConcurrencyReplace })
	deleted := map[string]bool{}
	for _, want := range []int{maxDeleting, maxDeleting, 2} {
		backups := slices.Clone(active)
		for i := range backups {
			if deleted[backups[i].Name] {
				backups[i].DeletionTimestamp = &metav1.Time{Time: run}
			}
		}
		p := makePlan(observation{s, backups, run, false})
		for _, b := range p.actions.replace {
			if deleted[b.Name] {
				t.Errorf("it deletes %s twice", b.Name)
			}
			deleted[b.Name] = true
		}
		left, isLast := len(active)-len(deleted), want < maxDeleting
		if len(p.actions.replace) != want || (p.actions.create != nil) != isLast || (p.status.LastScheduleTime != nil) != isLast {
			t.Errorf("it deletes %d backups, want %d, while %d are left, creates %v, and the last run is at %v", len(p.actions.replace), want, left, p.actions.create, p.status.LastScheduleTime)
		}
		if n := len(p.status.Active); isLast && n != 1 || !isLast && n != left {
			t.Errorf("the status names %d backups while %d are left", n, left)
		}
		s.Status = p.status
	}
	if p := makePlan(observation{scheduled(run), slices.Repeat(active, maxActive), run, false}); len(p.status.Active) != maxActive {
		t.Errorf("the status names %d backups", len(p.status.Active))
	}
}

// A clock that was ahead once must not stop a schedule until that time.
func TestScheduleContinuesAfterClockWasAhead(t *testing.T) {
	now := at(t, "2026-05-01T02:00:00Z")
	s := scheduled(now, func(s *v1beta1.MemcachedScheduledBackup) {
		s.Status.LastScheduleTime = &metav1.Time{Time: now.Add(9000 * time.Hour)}
	})
	p := makePlan(observation{s, nil, now, false})
	if p.actions.create != nil || !p.status.LastScheduleTime.Time.Equal(now) {
		t.Fatalf("it creates %v, and the last run is %v", p.actions.create, p.status.LastScheduleTime)
	}
	s.Status = p.status
	if p = makePlan(observation{s, nil, now.Add(31 * time.Minute), false}); p.actions.create == nil {
		t.Error("it does not create the next backup")
	}
}

func TestBelongsToChecksLabelAndName(t *testing.T) {
	labelled := func(name, schedule string) *v1beta1.MemcachedBackup {
		return &v1beta1.MemcachedBackup{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1beta1.LabelSchedule: schedule}}}
	}
	for name, test := range map[string]struct {
		backup *v1beta1.MemcachedBackup
		want   bool
	}{
		"its own":                       {labelled("nightly-29623110", "nightly"), true},
		"a copy under another name":     {labelled("keep-this", "nightly"), false},
		"a copy with a suffix":          {labelled("nightly-29623110-copy", "nightly"), false},
		"another schedule's":            {labelled("nightly-29623110", "weekly"), false},
		"a manual one of the same form": {&v1beta1.MemcachedBackup{ObjectMeta: metav1.ObjectMeta{Name: "nightly-1"}}, false},
	} {
		if got := belongsTo(test.backup, "nightly"); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
