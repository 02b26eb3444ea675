package metrics

import (
	"context"
	"fmt"
	"math"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
)

// objects is a cache with these objects.
type objects struct {
	client.Reader
	memcacheds []v1beta1.Memcached
	schedules  []v1beta1.MemcachedScheduledBackup
}

func (o *objects) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	switch list := list.(type) {
	case *v1beta1.MemcachedList:
		list.Items = o.memcacheds
	case *v1beta1.MemcachedScheduledBackupList:
		list.Items = o.schedules
	}
	return nil
}

func closed() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

// scrape returns the lines of a collector in the text format, without comments and buckets.
func scrape(t testing.TB, collectors ...prometheus.Collector) []string {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(collectors...)
	recorder := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(recorder, httptest.NewRequest("GET", "/metrics", nil))
	var lines []string
	for line := range strings.Lines(recorder.Body.String()) {
		if !strings.HasPrefix(line, "#") && !strings.Contains(line, "_bucket{") {
			lines = append(lines, strings.TrimPrefix(strings.TrimSpace(line), "memcached_operator_"))
		}
	}
	return lines
}

func exampleMemcached(name string) *v1beta1.Memcached {
	m := &v1beta1.Memcached{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, UID: types.UID(name), ResourceVersion: "1"}}
	m.Spec.Size = new(int32(3))
	m.Status = v1beta1.MemcachedStatus{Size: 3, ReadyShards: 3, UpdatedShards: 3, Version: "1.6.45"}
	for i := range 3 {
		m.Status.Shards = append(m.Status.Shards, v1beta1.ShardStatus{Name: fmt.Sprintf("%s-%d", name, i), Ready: true, UpToDate: true,
			StartResult: v1beta1.StartCold, ContainerID: "one", Items: 100})
	}
	for _, c := range []struct{ name, reason string }{{"Ready", "AllShardsReady"}, {"Available", "AllShardsReady"}, {"Progressing", "UpToDate"}, {"Degraded", "AsExpected"}} {
		status := metav1.ConditionFalse
		if c.name == "Ready" || c.name == "Available" {
			status = metav1.ConditionTrue
		}
		m.Status.Conditions = append(m.Status.Conditions, metav1.Condition{Type: c.name, Status: status, Reason: c.reason})
	}
	return m
}

func TestMetricsOfMemcachedFollowItsStatus(t *testing.T) {
	m := exampleMemcached("cache")
	m.Status.ReadyShards, m.Status.UpdatedShards = 2, 1
	m.Status.Update = &v1beta1.UpdateStatus{Method: v1beta1.UpdateRestart, Gate: v1beta1.GateShardUnavailable, LastTransitionTime: metav1.Unix(1700000000, 0)}
	m.Status.Scaling = &v1beta1.ScalingStatus{From: 6, To: 3, Step: v1beta1.ScalingWaiting, StartTime: metav1.Unix(1600000000, 0)}
	cache := &objects{memcacheds: []v1beta1.Memcached{*m}}
	collector := &Memcacheds{Source: Source{Cache: cache, Elected: closed()}, Changes: NewChanges(testclock.NewFakeClock(time.Unix(1500000000, 0)), closed())}
	former := m.DeepCopy()
	former.ResourceVersion, former.Status.Shards[0].ContainerID = "0", "zero"
	collector.Changes.OnUpdate(former, m)
	want := []string{
		`condition{condition="Available",memcached="cache",namespace="team",reason="AllShardsReady"} 1`,
		`condition{condition="Degraded",memcached="cache",namespace="team",reason="AsExpected"} 0`,
		`condition{condition="Progressing",memcached="cache",namespace="team",reason="UpToDate"} 0`,
		`info{memcached="cache",namespace="team",version="1.6.45"} 1`,
		`scaling_start_timestamp_seconds{memcached="cache",namespace="team",step="Waiting"} 1.6e+09`,
		`shard_last_loss_timestamp_seconds{memcached="cache",namespace="team"} 1.5e+09`,
		`shard_losses_total{memcached="cache",namespace="team"} 1`,
		`shards_current{memcached="cache",namespace="team"} 1`,
		`shards_desired{memcached="cache",namespace="team"} 3`,
		`shards_ready{memcached="cache",namespace="team"} 2`,
		`update_step_timestamp_seconds{gate="ShardUnavailable",memcached="cache",namespace="team",step="Restart"} 1.7e+09`,
	}
	got := scrape(t, collector)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the metrics (-want +got):\n%s", diff)
	}
	if len(got) > 11 {
		t.Errorf("%d series for a Memcached, more than 11", len(got))
	}
	cache.memcacheds = nil
	if got := scrape(t, collector); len(got) != 0 {
		t.Errorf("after the deletion of the Memcached: %v", got)
	}
	collector.Elected = make(chan struct{})
	cache.memcacheds = []v1beta1.Memcached{*m}
	if got := scrape(t, collector); len(got) != 0 {
		t.Errorf("an operator that waits for the lease exports %v", got)
	}
}

// Shards that clients don't use yet, or any more, are neither ready nor missing.
func TestDesiredShardsAreThoseThatClientsShouldUse(t *testing.T) {
	copying := func(from, to int32) *v1beta1.Memcached {
		m := exampleMemcached("cache")
		m.Spec.Size = new(to)
		m.Status.Scaling = &v1beta1.ScalingStatus{From: from, To: to, Step: v1beta1.ScalingCopying}
		return m
	}
	paused := exampleMemcached("cache")
	paused.Spec.Size, paused.Spec.Paused, paused.Status.Servers = new(int32(6)), true, []string{"cache-0.team", "cache-1.team", "cache-2.team"}
	created := exampleMemcached("cache")
	created.Spec.Paused, created.Status = true, v1beta1.MemcachedStatus{ObservedGeneration: 1}
	for want, m := range map[string]*v1beta1.Memcached{"2": copying(2, 4), "4": copying(4, 2), "3": paused, "0": created} {
		collector := &Memcacheds{Source: Source{Cache: &objects{memcacheds: []v1beta1.Memcached{*m}}, Elected: closed()}, Changes: NewChanges(testclock.NewFakeClock(time.Now()), closed())}
		if got, line := scrape(t, collector), `shards_desired{memcached="cache",namespace="team"} `+want; !slices.Contains(got, line) {
			t.Errorf("no %s in %q", line, got)
		}
	}
}

func TestMetricsOfScheduleFollowItsStatus(t *testing.T) {
	s := v1beta1.MemcachedScheduledBackup{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "nightly", CreationTimestamp: metav1.Unix(1000, 0)}}
	s.Spec.BackupTemplate.Spec.MemcachedRef.Name = "cache"
	cache := &objects{schedules: []v1beta1.MemcachedScheduledBackup{s}}
	collector := &Schedules{Source{Cache: cache, Elected: closed()}}
	labels := `{memcached="cache",namespace="team",schedule="nightly"} `
	if diff := cmp.Diff([]string{"schedule_last_success_timestamp_seconds" + labels + "1000"}, scrape(t, collector)); diff != "" {
		t.Errorf("a suspended schedule (-want +got):\n%s", diff)
	}
	at := func(seconds int64) *metav1.Time { return new(metav1.Unix(seconds, 0)) }
	cache.schedules[0].Status = v1beta1.MemcachedScheduledBackupStatus{LastScheduleTime: at(5000), NextScheduleTime: at(8600), LastSuccessfulTime: at(5100)}
	want := []string{"schedule_last_success_timestamp_seconds" + labels + "5100", "schedule_next_timestamp_seconds" + labels + "8600", "schedule_period_seconds" + labels + "3600"}
	if diff := cmp.Diff(want, scrape(t, collector)); diff != "" {
		t.Errorf("the metrics (-want +got):\n%s", diff)
	}
}

// story is a sequence of statuses of one Memcached.
type story struct {
	changes *Changes
	clock   *testclock.FakeClock
	last    *v1beta1.Memcached
}

func newStory() *story {
	clock := testclock.NewFakeClock(time.Unix(0, 0))
	return &story{changes: NewChanges(clock, closed()), clock: clock, last: exampleMemcached("cache")}
}

// then changes the status after so many seconds.
func (s *story) then(seconds int, edit func(*v1beta1.MemcachedStatus)) {
	s.clock.Step(time.Duration(seconds) * time.Second)
	next := s.last.DeepCopy()
	next.ResourceVersion += "1"
	edit(&next.Status)
	s.changes.OnUpdate(s.last, next)
	s.last = next
}

// counts are the counters and sums that are not 0.
func (s *story) counts(t *testing.T) []string {
	lines := scrape(t, s.changes, &Memcacheds{Source: Source{Cache: &objects{memcacheds: []v1beta1.Memcached{*s.last}}, Elected: closed()}, Changes: s.changes})
	return slices.DeleteFunc(lines, func(line string) bool {
		name := line[:strings.IndexAny(line, "{ ")]
		return strings.HasSuffix(line, " 0") || !strings.HasSuffix(name, "_total") && !strings.Contains(line, "_seconds_")
	})
}

func restart(s *v1beta1.ShardStatus, start v1beta1.StartResult, items, before int64) {
	s.ContainerID += "x"
	s.StartResult, s.Items, s.ItemsBefore, s.Ready = start, items, before, true
}

func TestMetricsCountUpdatesAndTheirCost(t *testing.T) {
	replaced := func(shard string, gate v1beta1.Gate) func(*v1beta1.MemcachedStatus) {
		return func(s *v1beta1.MemcachedStatus) {
			s.Update = &v1beta1.UpdateStatus{Revision: "r", Shard: shard, Method: v1beta1.UpdateReplace, Gate: gate}
			s.UpdatedShards = 0
		}
	}
	for _, test := range []struct {
		name string
		run  func(*story)
		want []string
	}{
		{"a replacement that was announced is no loss, even when the status already names the next shard", func(s *story) {
			s.then(0, replaced("cache-0", ""))
			s.then(2, func(m *v1beta1.MemcachedStatus) { m.Shards[0].Ready = false })
			s.then(0, replaced("cache-1", v1beta1.GateShardInTransition))
			s.then(8, func(m *v1beta1.MemcachedStatus) { restart(&m.Shards[0], v1beta1.StartCold, 0, 0) })
			s.then(0, func(m *v1beta1.MemcachedStatus) { m.Update, m.UpdatedShards, m.Shards[0].Revision = nil, 3, "r" })
		}, []string{`items_total{fate="lost"} 100`, `shard_unavailable_seconds_sum{method="Replace"} 8`, `shard_unavailable_seconds_count{method="Replace"} 1`,
			`update_duration_seconds_sum 10`, `update_duration_seconds_count 1`, `updates_total{outcome="Finished"} 1`}},
		{"a handover has the gap that the pods measured", func(s *story) {
			s.then(0, replaced("cache-0", ""))
			s.then(1, func(m *v1beta1.MemcachedStatus) { m.Shards[0].Ready = false })
			s.then(5, func(m *v1beta1.MemcachedStatus) {
				restart(&m.Shards[0], v1beta1.StartHandedOver, 90, 100)
				m.Shards[0].GapMilliseconds = 500
			})
		}, []string{`items_total{fate="kept"} 90`, `items_total{fate="lost"} 10`, `shard_unavailable_seconds_sum{method="Replace"} 0.5`, `shard_unavailable_seconds_count{method="Replace"} 1`}},
		{"a shard that is lost counts, once", func(s *story) {
			s.then(0, func(m *v1beta1.MemcachedStatus) { m.Shards[2].Ready = false })
			s.then(40, func(m *v1beta1.MemcachedStatus) { restart(&m.Shards[2], v1beta1.StartCold, 0, 0) })
			s.then(1, func(m *v1beta1.MemcachedStatus) { m.Shards[2].Items = 5 })
		}, []string{`items_total{fate="lost"} 100`, `shard_losses_total{memcached="cache",namespace="team"} 1`, `shard_unavailable_seconds_sum{method="None"} 40`, `shard_unavailable_seconds_count{method="None"} 1`}},
		{"a rollback counts when it begins, and not when it finishes", func(s *story) {
			s.then(0, replaced("cache-0", ""))
			s.then(1, func(m *v1beta1.MemcachedStatus) { m.Update.RollingBack = true })
			s.then(1, func(m *v1beta1.MemcachedStatus) {
				m.Update.RollingBack, m.Update.Gate = false, v1beta1.GateUpdateFailed
			})
			s.then(1, func(m *v1beta1.MemcachedStatus) { m.Update = nil })
		}, []string{`updates_total{outcome="RolledBack"} 1`}},
		{"an update that failed with its new pod isn't rolled back", func(s *story) {
			s.then(0, replaced("cache-0", ""))
			s.then(1, func(m *v1beta1.MemcachedStatus) { m.Update.Gate, m.Update.Method = v1beta1.GateUpdateFailed, "" })
			s.then(1, func(m *v1beta1.MemcachedStatus) { m.Update.Revision = "other" })
		}, []string{`updates_total{outcome="Superseded"} 1`}},
		{"a change during an update supersedes it", func(s *story) {
			s.then(0, replaced("cache-0", ""))
			s.then(1, func(m *v1beta1.MemcachedStatus) { m.Update.Revision = "other" })
		}, []string{`updates_total{outcome="Superseded"} 1`}},
		{"an update that is reverted while it waits isn't finished", func(s *story) {
			s.then(0, replaced("cache-0", v1beta1.GateOutsideMaintenanceWindow))
			s.then(1, func(m *v1beta1.MemcachedStatus) { m.Update, m.UpdatedShards = nil, 3 })
		}, []string{`updates_total{outcome="Superseded"} 1`}},
		{"the cost of an update counts what was added", func(s *story) {
			cost := v1beta1.UpdateCost{Revision: "r", UnavailableMilliseconds: 400}
			s.then(0, func(m *v1beta1.MemcachedStatus) { m.LastUpdate = cost.DeepCopy() })
			s.then(1, func(m *v1beta1.MemcachedStatus) { m.LastUpdate.UnavailableMilliseconds = 900 })
			s.then(60, func(m *v1beta1.MemcachedStatus) {
				m.LastUpdate.ExtraMisses, m.LastUpdate.HitRatioRecoveryTime = new(int64(70)), new(metav1.NewTime(cost.StartTime.Add(45*time.Second)))
			})
			s.then(600, func(m *v1beta1.MemcachedStatus) {
				m.LastUpdate = &v1beta1.UpdateCost{Revision: "next", UnavailableMilliseconds: 100}
			})
		}, []string{`update_extra_misses_total 70`, `update_hit_ratio_recovery_seconds_sum 45`, `update_hit_ratio_recovery_seconds_count 1`, `update_unavailable_seconds_total 1`}},
		{"negative numbers count as 0, and don't end the operator", func(s *story) {
			for _, start := range []v1beta1.StartResult{v1beta1.StartCold, v1beta1.StartWarm, v1beta1.StartHandedOver} {
				for _, n := range [][2]int64{{-5, 0}, {0, -5}, {-5, -5}, {-5, 5}, {math.MinInt64, math.MinInt64}} {
					s.then(1, func(m *v1beta1.MemcachedStatus) {
						restart(&m.Shards[0], start, n[0], n[1])
						m.Shards[0].GapMilliseconds = n[0]
					})
				}
			}
			s.then(1, func(m *v1beta1.MemcachedStatus) {
				m.LastUpdate = &v1beta1.UpdateCost{Revision: "r", StartTime: metav1.Unix(0, 0), UnavailableMilliseconds: math.MinInt64,
					ExtraMisses: new(int64(-5)), HitRatioRecoveryTime: new(metav1.Unix(-9, 0))}
			})
			s.then(1, func(m *v1beta1.MemcachedStatus) { m.LastUpdate.UnavailableMilliseconds = -4000 })
			s.then(1, func(m *v1beta1.MemcachedStatus) { m.Shards[1].Ready = false })
			s.then(-5, func(m *v1beta1.MemcachedStatus) { m.Shards[1].Ready = true })
		}, []string{`items_total{fate="lost"} 115`, `shard_losses_total{memcached="cache",namespace="team"} 5`, `shard_unavailable_seconds_count{method="None"} 6`,
			`update_hit_ratio_recovery_seconds_count 1`}},
		{"each change of the number of shards counts once, by whether items moved", func(s *story) {
			last := v1beta1.ScalingStatus{ID: "one", PublishTime: new(metav1.Unix(9, 0)), Moved: 100, Deleted: 2, Purged: 90, StaleMilliseconds: 1500}
			s.then(0, func(m *v1beta1.MemcachedStatus) { m.LastScaling = last.DeepCopy() })
			s.then(1, func(m *v1beta1.MemcachedStatus) { m.Phase = v1beta1.PhaseRunning })
			s.then(1, func(m *v1beta1.MemcachedStatus) {
				m.LastScaling = &v1beta1.ScalingStatus{ID: "two", Problem: "another ring", Moved: -5}
			})
		}, []string{`scaling_items_total{fate="copied"} 100`, `scaling_items_total{fate="deleted"} 2`, `scaling_items_total{fate="purged"} 90`,
			`scaling_stale_seconds_sum 1.5`, `scaling_stale_seconds_count 1`, `scalings_total{outcome="Cold"} 1`, `scalings_total{outcome="Warm"} 1`}},
		{"scaling in and out is neither", func(s *story) {
			last := s.last.Status.Shards[2]
			s.then(0, func(m *v1beta1.MemcachedStatus) { m.Shards[2].Ready = false })
			s.then(1, func(m *v1beta1.MemcachedStatus) { m.Shards = m.Shards[:2] })
			last.ContainerID = "two"
			s.then(9, func(m *v1beta1.MemcachedStatus) { m.Shards = append(m.Shards, last) })
		}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newStory()
			test.run(s)
			got := s.counts(t)
			slices.Sort(got)
			slices.Sort(test.want)
			if diff := cmp.Diff(test.want, append([]string(nil), got...)); diff != "" {
				t.Errorf("the counters (-want +got):\n%s", diff)
			}
			s.changes.OnDelete(s.last)
			if n := len(s.changes.memcacheds); n != 0 {
				t.Errorf("after the deletion, %d Memcacheds are remembered", n)
			}
		})
	}
}

// What the leader finds right after its election happens before it is scraped, so that no counter rises then.
func TestFirstScrapeOfALeaderHasTheTimeOfALoss(t *testing.T) {
	clock := testclock.NewFakeClock(time.Unix(1000, 0))
	elected := make(chan struct{})
	changes := NewChanges(clock, elected)
	before, other := exampleMemcached("cache"), exampleMemcached("new")
	changes.OnAdd(before, true)
	changes.OnAdd(other, true)
	after, started := before.DeepCopy(), other.DeepCopy()
	after.ResourceVersion, started.ResourceVersion = "2", "2"
	restart(&after.Status.Shards[0], v1beta1.StartCold, 0, 0)
	other.Status.Shards[0].StartResult, other.Status.Shards[0].ContainerID = "", "" // its first start
	changes.OnUpdate(before, after)
	changes.OnUpdate(other, started)
	clock.Step(time.Hour)
	close(elected)
	got := slices.DeleteFunc(scrape(t, &Memcacheds{Source: Source{Cache: &objects{memcacheds: []v1beta1.Memcached{*after, *started}}, Elected: elected}, Changes: changes}),
		func(line string) bool { return !strings.HasPrefix(line, "shard_last_loss_") })
	if diff := cmp.Diff([]string{`shard_last_loss_timestamp_seconds{memcached="cache",namespace="team"} 1000`}, got); diff != "" {
		t.Errorf("the times of losses (-want +got):\n%s", diff)
	}
}

func TestOperatorExportsWhetherItLeads(t *testing.T) {
	elected := make(chan struct{})
	leads := func() string { return scrape(t, Operator("1.1.0", elected)...)[1] }
	if got := leads(); got != "leader 0" {
		t.Errorf("before the election: %s", got)
	}
	close(elected)
	if got := leads(); got != "leader 1" {
		t.Errorf("after the election: %s", got)
	}
}
