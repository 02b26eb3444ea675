package schedule

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // as in the operator's image, which has no other

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
)

func at(t *testing.T, text string) time.Time {
	t.Helper()
	parsed, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

func spec(schedule, zone string) v1alpha1.MemcachedScheduledBackupSpec {
	return v1alpha1.MemcachedScheduledBackupSpec{Schedule: schedule, TimeZone: zone}
}

func TestTurnsFollowTheClockOfTheirZone(t *testing.T) {
	for name, test := range map[string]struct {
		schedule, zone, after string
		want                  []string
	}{
		"daily":                               {"30 2 * * *", "UTC", "2026-05-01T00:00:00Z", []string{"2026-05-01T02:30:00Z", "2026-05-02T02:30:00Z"}},
		"after a turn comes the next":         {"30 2 * * *", "UTC", "2026-05-01T02:30:00Z", []string{"2026-05-02T02:30:00Z"}},
		"in a zone":                           {"30 2 * * *", "Europe/Berlin", "2026-05-01T00:00:00Z", []string{"2026-05-01T00:30:00Z"}},
		"what the clock skips comes after it": {"30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", []string{"2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"}},
		"several that it skips are one":       {"*/15 2 * * *", "Europe/Berlin", "2026-03-29T00:00:00Z", []string{"2026-03-29T01:00:00Z", "2026-03-30T00:00:00Z"}},
		"what it shows twice comes first":     {"30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", []string{"2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"}},
		"and not again in the hour after":     {"30 2 * * *", "Europe/Berlin", "2026-10-25T00:45:00Z", []string{"2026-10-26T01:30:00Z"}},
		"west of Greenwich, forward":          {"30 2 * * *", "America/New_York", "2026-03-08T00:00:00Z", []string{"2026-03-08T07:00:00Z", "2026-03-09T06:30:00Z"}},
		"west of Greenwich, back":             {"30 1 * * *", "America/New_York", "2026-11-01T00:00:00Z", []string{"2026-11-01T05:30:00Z", "2026-11-02T06:30:00Z"}},
		"half an hour, on Lord Howe, back":    {"45 1 * * *", "Australia/Lord_Howe", "2026-04-04T00:00:00Z", []string{"2026-04-04T14:45:00Z", "2026-04-05T15:15:00Z"}},
		"hourly goes by real time, forward":   {"@hourly", "Europe/Berlin", "2026-03-29T00:00:00Z", []string{"2026-03-29T01:00:00Z", "2026-03-29T02:00:00Z"}},
		"hourly goes by real time, back":      {"0 * * * *", "Europe/Berlin", "2026-10-24T23:30:00Z", []string{"2026-10-25T00:00:00Z", "2026-10-25T01:00:00Z", "2026-10-25T02:00:00Z"}},
		"every second hour goes by the clock": {"0 */2 * * *", "Europe/Berlin", "2026-10-24T23:30:00Z", []string{"2026-10-25T00:00:00Z", "2026-10-25T03:00:00Z"}},
		"midnight that a zone skips":          {"0 0 * * *", "Africa/Cairo", "2026-04-23T12:00:00Z", []string{"2026-04-23T22:00:00Z", "2026-04-24T21:00:00Z"}},
		"the 29th of February":                {"0 0 29 2 *", "UTC", "2026-01-01T00:00:00Z", []string{"2028-02-29T00:00:00Z"}},
		"weekly":                              {"@weekly", "UTC", "2026-05-01T00:00:00Z", []string{"2026-05-03T00:00:00Z"}},
	} {
		t.Run(name, func(t *testing.T) {
			turns, reason, message := parse(spec(test.schedule, test.zone), at(t, test.after))
			if reason != "" {
				t.Fatal(reason, message)
			}
			var got []string
			now := at(t, test.after)
			for range test.want {
				now = turns.next(now)
				got = append(got, now.UTC().Format(time.RFC3339))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("the turns (-want +got):\n%s", diff)
			}
		})
	}
}

// TestThereIsATurnEachDayOfTheYear goes through every zone's days with a change of
// the clock: exactly one turn a day, whatever the hour.
func TestThereIsATurnEachDayOfTheYear(t *testing.T) {
	for _, zone := range []string{"Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Santiago", "Africa/Casablanca", "Asia/Tehran", "UTC"} {
		for hour := range 24 {
			turns, reason, message := parse(spec(fmt.Sprintf("30 %d * * *", hour), zone), at(t, "2026-01-01T00:00:00Z"))
			if reason != "" {
				t.Fatal(reason, message)
			}
			days := map[string]int{}
			end := time.Date(2027, 1, 1, 0, 0, 0, 0, turns.zone)
			for turn := turns.next(time.Date(2025, 12, 31, 23, 59, 0, 0, turns.zone)); turn.Before(end); turn = turns.next(turn) {
				days[turn.In(turns.zone).Format(time.DateOnly)]++
			}
			for day, n := range days {
				if n != 1 {
					t.Errorf("%s at %d:30: %d turns on %s", zone, hour, n, day)
				}
			}
			if len(days) != 365 {
				t.Errorf("%s at %d:30: turns on %d days", zone, hour, len(days))
			}
		}
	}
}

func TestAScheduleThatCannotBeReadSaysWhatToWrite(t *testing.T) {
	for name, test := range map[string]struct{ schedule, zone, reason, words string }{
		"nonsense":             {"every night", "UTC", v1alpha1.ReasonScheduleInvalid, "five fields"},
		"six fields":           {"0 30 2 * * *", "UTC", v1alpha1.ReasonScheduleInvalid, "expected exactly 5 fields"},
		"a minute of 61":       {"61 * * * *", "UTC", v1alpha1.ReasonScheduleInvalid, "above maximum"},
		"from when it starts":  {"@every 1h", "UTC", v1alpha1.ReasonScheduleInvalid, "@hourly"},
		"at a restart":         {"@reboot", "UTC", v1alpha1.ReasonScheduleInvalid, "five fields"},
		"never":                {"0 0 31 2 *", "UTC", v1alpha1.ReasonScheduleInvalid, "no turn"},
		"nowhere":              {"@daily", "Europe/Bielefeld", v1alpha1.ReasonTimeZoneUnknown, "Europe/Berlin"},
		"wherever the node is": {"@daily", "Local", v1alpha1.ReasonTimeZoneUnknown, "UTC"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, reason, message := parse(spec(test.schedule, test.zone), at(t, "2026-01-01T00:00:00Z")); reason != test.reason || !strings.Contains(message, test.words) {
				t.Errorf("%s: %s", reason, message)
			}
		})
	}
}

func TestTheLastTurnIsFoundHoweverLongAgo(t *testing.T) {
	now := at(t, "2026-05-01T12:00:30Z")
	for name, test := range map[string]struct {
		schedule, after, want string
	}{
		"a minute ago":               {"* * * * *", "2024-01-01T00:00:00Z", "2026-05-01T12:00:00Z"},
		"yesterday":                  {"0 13 * * *", "2026-01-01T00:00:00Z", "2026-04-30T13:00:00Z"},
		"last year":                  {"0 0 1 6 *", "2020-01-01T00:00:00Z", "2025-06-01T00:00:00Z"},
		"none since":                 {"0 13 * * *", "2026-04-30T13:00:00Z", ""},
		"not the one that it was at": {"0 * * * *", "2026-05-01T12:00:00Z", ""},
	} {
		turns, _, _ := parse(spec(test.schedule, "UTC"), now)
		got := ""
		if last := turns.last(at(t, test.after), now); !last.IsZero() {
			got = last.UTC().Format(time.RFC3339)
		}
		if got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

// scheduled returns a daily schedule that was made a day before now.
func scheduled(now time.Time, edits ...func(*v1alpha1.MemcachedScheduledBackup)) *v1alpha1.MemcachedScheduledBackup {
	s := &v1alpha1.MemcachedScheduledBackup{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "nightly", Generation: 3, CreationTimestamp: metav1.NewTime(now.Add(-24 * time.Hour))}}
	s.Spec = spec("30 2 * * *", "UTC")
	s.Spec.BackupTemplate.Spec.Memcached.Name = "cache"
	for _, edit := range edits {
		edit(s)
	}
	return s
}

// made returns a backup of the schedule, made so long before now, and in that phase.
func made(now time.Time, ago time.Duration, phase v1alpha1.RunPhase) v1alpha1.MemcachedBackup {
	turn := now.Add(-ago)
	b := v1alpha1.MemcachedBackup{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: nameOf("nightly", turn), CreationTimestamp: metav1.NewTime(turn)}}
	b.Status.Phase = phase
	if phase == v1alpha1.RunComplete || phase == v1alpha1.RunFailed {
		b.Status.CompletionTime = &metav1.Time{Time: turn.Add(time.Minute)}
	}
	return b
}

func TestATurnIsTakenOnce(t *testing.T) {
	turn := at(t, "2026-05-01T02:30:00Z")
	name := nameOf("nightly", turn)
	active := made(turn, time.Hour, v1alpha1.RunRunning)
	taken := made(turn, 0, "")
	retained := func(s *v1alpha1.MemcachedScheduledBackup) { s.Spec.Retention = &v1alpha1.BackupRetention{} }
	policy := func(p v1alpha1.ConcurrencyPolicy) func(*v1alpha1.MemcachedScheduledBackup) {
		return func(s *v1alpha1.MemcachedScheduledBackup) { s.Spec.ConcurrencyPolicy = p }
	}
	last := func(text string) func(*v1alpha1.MemcachedScheduledBackup) {
		return func(s *v1alpha1.MemcachedScheduledBackup) {
			s.Status.LastScheduleTime = &metav1.Time{Time: at(t, text)}
		}
	}
	was := func(reason string) func(*v1alpha1.MemcachedScheduledBackup) {
		return func(s *v1alpha1.MemcachedScheduledBackup) {
			s.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionScheduled, Status: metav1.ConditionFalse, Reason: reason}}
		}
	}
	type edits = []func(*v1alpha1.MemcachedScheduledBackup)
	for description, test := range map[string]struct {
		edits   edits
		late    time.Duration
		backups []v1alpha1.MemcachedBackup
		create  bool
		deletes int
		event   string
		last    bool // LastScheduleTime is the turn
	}{
		"at its time":                         {create: true, last: true},
		"before its time":                     {late: -time.Second},
		"late, but not too late":              {late: time.Hour, create: true, last: true},
		"too late":                            {late: time.Hour + time.Second, event: v1alpha1.EventTurnMissed, last: true},
		"it was taken before":                 {edits: edits{last("2026-05-01T02:30:00Z")}, late: time.Minute, last: true},
		"it was taken, which was not told":    {backups: []v1alpha1.MemcachedBackup{taken}, last: true},
		"the same, and one before still runs": {edits: edits{policy(v1alpha1.ConcurrencyReplace)}, backups: []v1alpha1.MemcachedBackup{taken, active}, last: true},
		"one before still runs":               {backups: []v1alpha1.MemcachedBackup{active}, event: v1alpha1.EventTurnLeftOut, last: true},
		"one before runs and may":             {edits: edits{policy(v1alpha1.ConcurrencyAllow)}, backups: []v1alpha1.MemcachedBackup{active}, create: true, last: true},
		"one before is replaced":              {edits: edits{policy(v1alpha1.ConcurrencyReplace)}, backups: []v1alpha1.MemcachedBackup{active}, create: true, deletes: 1, last: true},
		"suspended":                           {edits: edits{func(s *v1alpha1.MemcachedScheduledBackup) { s.Spec.Suspend = true }}},
		"it came while suspended":             {edits: edits{was(v1alpha1.ReasonSuspended)}, late: time.Minute, last: true},
		"it came while it could not be read":  {edits: edits{was(v1alpha1.ReasonScheduleInvalid)}, late: time.Minute, last: true},
		"of several missed the newest":        {edits: edits{last("2026-04-20T02:30:00Z")}, late: time.Minute, create: true, last: true},
		"made after the turn": {edits: edits{func(s *v1alpha1.MemcachedScheduledBackup) {
			s.CreationTimestamp = metav1.NewTime(turn.Add(time.Second))
		}},
			late: time.Minute},
		"with a retention the snapshots go too": {edits: edits{retained}, create: true, last: true},
	} {
		t.Run(description, func(t *testing.T) {
			now := turn.Add(test.late)
			s := scheduled(turn, test.edits...)
			p := makePlan(s, test.backups, now)
			if (p.create != nil) != test.create || len(p.deletes) != test.deletes {
				t.Fatalf("it makes %+v and deletes %d", p.create, len(p.deletes))
			}
			if p.create != nil {
				want := v1alpha1.SnapshotDeletionPolicy("")
				if s.Spec.Retention != nil {
					want = v1alpha1.SnapshotDelete
				}
				if p.create.Name != name || p.create.Labels[v1alpha1.LabelSchedule] != "nightly" || len(p.create.OwnerReferences) != 0 || p.create.Spec.DeletionPolicy != want ||
					p.create.Spec.Memcached.Name != "cache" {
					t.Errorf("it makes %+v", p.create)
				}
				if p.status.LastBackup != name || !slices.Contains(p.status.Active, name) {
					t.Errorf("the status is %+v", p.status)
				}
			}
			if got := p.status.LastScheduleTime != nil && p.status.LastScheduleTime.Time.Equal(turn); got != test.last {
				t.Errorf("the last turn is %v", p.status.LastScheduleTime)
			}
			var events []string
			for _, e := range p.events {
				events = append(events, e.reason)
			}
			if strings.Join(events, " ") != test.event {
				t.Errorf("the events are %q", events)
			}
			switch next := p.status.NextScheduleTime; {
			case s.Spec.Suspend:
				if next != nil || p.requeueAfter != 0 {
					t.Errorf("the next turn is %v", next)
				}
			case next == nil || !next.After(now) || p.requeueAfter != next.Sub(now):
				t.Errorf("the next turn is %v, and it looks again in %s", next, p.requeueAfter)
			}
		})
	}
}

func TestAScheduleThatCannotBeReadIsToldOfOnce(t *testing.T) {
	now := at(t, "2026-05-01T12:00:00Z")
	s := scheduled(now, func(s *v1alpha1.MemcachedScheduledBackup) { s.Spec.Schedule = "at night" })
	p := makePlan(s, nil, now)
	c := meta.FindStatusCondition(p.status.Conditions, v1alpha1.ConditionScheduled)
	if c == nil || c.Status != metav1.ConditionFalse || c.Reason != v1alpha1.ReasonScheduleInvalid || len(p.events) != 1 || p.requeueAfter != 0 || p.create != nil {
		t.Errorf("the plan is %+v", p)
	}
	s.Status = p.status
	if again := makePlan(s, nil, now); len(again.events) != 0 {
		t.Errorf("it is told again: %+v", again.events)
	}
}

func TestTheStatusTellsOfTheBackups(t *testing.T) {
	now := at(t, "2026-05-01T12:00:00Z")
	ended := made(now, 9*time.Hour, v1alpha1.RunComplete)
	p := makePlan(scheduled(now), []v1alpha1.MemcachedBackup{made(now, 33*time.Hour, v1alpha1.RunComplete), ended,
		made(now, time.Hour, v1alpha1.RunFailed), made(now, time.Minute, v1alpha1.RunRunning)}, now)
	if !p.status.LastSuccessfulTime.Equal(ended.Status.CompletionTime) || len(p.status.Active) != 1 || p.status.ObservedGeneration != 3 {
		t.Errorf("the status is %+v", p.status)
	}
	s := scheduled(now)
	s.Status = p.status
	if later := makePlan(s, nil, now); !later.status.LastSuccessfulTime.Equal(ended.Status.CompletionTime) {
		t.Errorf("with its backups gone, its last success is %v", later.status.LastSuccessfulTime)
	}
}

func TestRetentionKeepsTheNewest(t *testing.T) {
	now := at(t, "2026-05-01T12:00:00Z")
	const day = 24 * time.Hour
	all := map[string]v1alpha1.MemcachedBackup{
		"complete 1d": made(now, day, v1alpha1.RunComplete), "complete 2d": made(now, 2*day, v1alpha1.RunComplete), "complete 9d": made(now, 9*day, v1alpha1.RunComplete),
		"failed 1h": made(now, time.Hour, v1alpha1.RunFailed), "failed 3d": made(now, 3*day, v1alpha1.RunFailed), "failed 4d": made(now, 4*day, v1alpha1.RunFailed),
		"failed 5d": made(now, 5*day, v1alpha1.RunFailed), "running 20d": made(now, 20*day, v1alpha1.RunRunning), "new": made(now, 0, ""),
	}
	for name, test := range map[string]struct {
		keep *v1alpha1.BackupRetention
		want []string
		next time.Duration
	}{
		"none given":                   {nil, nil, 0},
		"failed ones, by default":      {&v1alpha1.BackupRetention{}, []string{"failed 5d"}, 0},
		"no failed ones":               {&v1alpha1.BackupRetention{FailedCount: ptr.To[int32](0)}, []string{"failed 5d", "failed 4d", "failed 3d", "failed 1h"}, 0},
		"a count":                      {&v1alpha1.BackupRetention{Count: ptr.To[int32](2), FailedCount: ptr.To[int32](9)}, []string{"complete 9d"}, 0},
		"an age":                       {&v1alpha1.BackupRetention{MaxAge: &metav1.Duration{Duration: 36 * time.Hour}, FailedCount: ptr.To[int32](9)}, []string{"complete 9d", "failed 5d", "failed 4d", "failed 3d", "complete 2d"}, 35 * time.Hour},
		"an age that none has":         {&v1alpha1.BackupRetention{MaxAge: &metav1.Duration{Duration: time.Minute}}, []string{"complete 9d", "failed 5d", "failed 4d", "failed 3d", "complete 2d", "failed 1h"}, 0},
		"an age, and the next to come": {&v1alpha1.BackupRetention{MaxAge: &metav1.Duration{Duration: 10 * day}, FailedCount: ptr.To[int32](9)}, nil, day},
		"a count and an age":           {&v1alpha1.BackupRetention{Count: ptr.To[int32](1), MaxAge: &metav1.Duration{Duration: 100 * day}, FailedCount: ptr.To[int32](1)}, []string{"complete 9d", "failed 5d", "failed 4d", "failed 3d", "complete 2d"}, 100*day - time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			var backups []v1alpha1.MemcachedBackup
			names := map[string]string{}
			for name, b := range all { // in any order
				backups = append(backups, b)
				names[b.Name] = name
			}
			prune, next := unkept(backups, test.keep, now)
			var got []string
			for _, b := range prune {
				got = append(got, names[b.Name])
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("it deletes (-want +got):\n%s", diff)
			}
			if test.next == 0 != next.IsZero() || test.next != 0 && next.Sub(now) != test.next {
				t.Errorf("the next one goes at %s", next)
			}
		})
	}
}

func TestABackupThatIsBeingDeletedDoesNotCount(t *testing.T) {
	now := at(t, "2026-05-01T12:00:00Z")
	going := made(now, time.Hour, v1alpha1.RunComplete)
	going.DeletionTimestamp = &metav1.Time{Time: now}
	left := made(now, 2*time.Hour, v1alpha1.RunComplete)
	prune, _ := unkept([]v1alpha1.MemcachedBackup{going, left}, &v1alpha1.BackupRetention{Count: ptr.To[int32](1), MaxAge: &metav1.Duration{Duration: time.Minute}}, now)
	if len(prune) != 0 {
		t.Errorf("it deletes %s, the newest that is left", prune[0].Name)
	}
}

func TestWhoseABackupIs(t *testing.T) {
	labelled := func(name, schedule string) *v1alpha1.MemcachedBackup {
		return &v1alpha1.MemcachedBackup{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1alpha1.LabelSchedule: schedule}}}
	}
	for name, test := range map[string]struct {
		backup *v1alpha1.MemcachedBackup
		want   bool
	}{
		"its own":                      {labelled("nightly-29623110", "nightly"), true},
		"a copy under another name":    {labelled("keep-this", "nightly"), false},
		"a copy with a suffix":         {labelled("nightly-29623110-copy", "nightly"), false},
		"another schedule's":           {labelled("nightly-29623110", "weekly"), false},
		"a person's of the same shape": {&v1alpha1.MemcachedBackup{ObjectMeta: metav1.ObjectMeta{Name: "nightly-1"}}, false},
	} {
		if got := isOf(test.backup, "nightly"); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
