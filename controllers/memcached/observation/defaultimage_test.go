package observation

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
)

const (
	formerDefault  = "docker.io/library/memcached:1.6.38"
	currentDefault = "docker.io/library/memcached:1.6.45"
)

func TestFewMemcachedsFollowTheDefaultImageAtATime(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC) // a Sunday
	with := func(name, image string, edits ...func(*v1beta1.Memcached)) v1beta1.Memcached {
		m := v1beta1.Memcached{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name}}
		m.Status.Image, m.Status.DefaultImage, m.Status.Size, m.Status.UpdatedShards = image, image, 3, 3
		for _, edit := range edits {
			edit(&m)
		}
		return m
	}
	behind := func(name string, edits ...func(*v1beta1.Memcached)) v1beta1.Memcached {
		return with(name, formerDefault, edits...)
	}
	updating := func(m *v1beta1.Memcached) { m.Status.Update = &v1beta1.UpdateStatus{} }
	scalesOut := func(m *v1beta1.Memcached) { m.Status.UpdatedShards = 1 }
	waitsFor := func(gate v1beta1.Gate) func(*v1beta1.Memcached) {
		return func(m *v1beta1.Memcached) { m.Status.Update = &v1beta1.UpdateStatus{Gate: gate} }
	}
	degraded := func(m *v1beta1.Memcached) {
		m.Status.Conditions = []metav1.Condition{{Type: v1beta1.ConditionDegraded, Status: metav1.ConditionTrue}}
	}
	paused := func(m *v1beta1.Memcached) { m.Spec.Paused = true }
	deleted := func(m *v1beta1.Memcached) { m.DeletionTimestamp = &metav1.Time{Time: now} }
	pinned := func(m *v1beta1.Memcached) { m.Spec.Version = "9.9.9" }
	mirrored := func(m *v1beta1.Memcached) { m.Spec.Pod.Image = "example.com/memcached" }
	closed := func(m *v1beta1.Memcached) {
		m.Spec.UpdateStrategy = v1beta1.UpdateStrategy{MaintenanceWindows: []v1beta1.MaintenanceWindow{{Start: "13:00", DurationSeconds: 3600}}}
	}
	elsewhere := func(m *v1beta1.Memcached) { m.Namespace = "a-team" }
	const inOrder, stopped = "in the order of namespaces and names", "another Memcached to it is Degraded"
	for name, c := range map[string]struct {
		m       v1beta1.Memcached
		others  []v1beta1.Memcached
		atOnce  int
		message string // a part of it; empty when it follows
		recheck time.Duration
	}{
		"it is alone":                         {behind("b"), nil, 1, "", 0},
		"it is the first":                     {behind("b"), []v1beta1.Memcached{behind("c")}, 1, "", 0},
		"one is before it":                    {behind("b"), []v1beta1.Memcached{behind("a")}, 1, inOrder, followPoll},
		"one of another namespace is before":  {behind("b"), []v1beta1.Memcached{behind("z", elsewhere)}, 1, inOrder, followPoll},
		"three are before it":                 {behind("d"), []v1beta1.Memcached{behind("a"), behind("b"), behind("c")}, 1, inOrder, 3 * followPoll},
		"two follow at a time":                {behind("b"), []v1beta1.Memcached{behind("a")}, 2, "", 0},
		"one after it is being updated":       {behind("b"), []v1beta1.Memcached{with("c", currentDefault, updating)}, 1, inOrder, followPoll},
		"one after it scales out":             {behind("b"), []v1beta1.Memcached{with("c", currentDefault, scalesOut, degraded)}, 1, "", 0},
		"one is up to date":                   {behind("b"), []v1beta1.Memcached{with("a", currentDefault)}, 1, "", 0},
		"an updated one waits for its window": {behind("b"), []v1beta1.Memcached{with("a", currentDefault, waitsFor(v1beta1.GateOutsideMaintenanceWindow))}, 1, "", 0},
		"one waits for its minimum interval":  {behind("b"), []v1beta1.Memcached{with("a", currentDefault, waitsFor(v1beta1.GateMinPeriodNotElapsed))}, 1, "", 0},
		"one waits for its hit ratio":         {behind("b"), []v1beta1.Memcached{with("a", currentDefault, waitsFor(v1beta1.GateHitRatioNotRecovered))}, 1, "", 0},
		"the hit ratio of one is lost":        {behind("b"), []v1beta1.Memcached{with("a", currentDefault, waitsFor(v1beta1.GateHitRatioNotRecovered), degraded)}, 9, stopped, maxFollowPoll},
		"one waits for a restore":             {behind("b"), []v1beta1.Memcached{with("a", currentDefault, waitsFor(v1beta1.GateRestoreRunning))}, 1, "", 0},
		"one has an invalid strategy":         {behind("b"), []v1beta1.Memcached{with("a", currentDefault, waitsFor(v1beta1.GateUpdateStrategyInvalid), degraded)}, 1, "", 0},
		"one has an invalid Secret":           {behind("b"), []v1beta1.Memcached{with("a", currentDefault, waitsFor(v1beta1.GateSecretInvalid), degraded)}, 1, "", 0},
		"one waits, and is Degraded":          {behind("b"), []v1beta1.Memcached{with("a", currentDefault, waitsFor(v1beta1.GateMinPeriodNotElapsed), degraded)}, 1, "", 0},
		"a shard of one starts":               {behind("b"), []v1beta1.Memcached{with("a", currentDefault, waitsFor(v1beta1.GateShardInTransition))}, 1, inOrder, followPoll},
		"the update of one failed":            {behind("b"), []v1beta1.Memcached{with("a", currentDefault, waitsFor(v1beta1.GateUpdateFailed), degraded, paused)}, 9, stopped, maxFollowPoll},
		"an updated one was paused":           {behind("b"), []v1beta1.Memcached{with("a", currentDefault, updating, paused)}, 1, "", 0},
		"the update of one is Degraded":       {behind("b"), []v1beta1.Memcached{with("a", currentDefault, updating, degraded)}, 9, stopped, maxFollowPoll},
		"one is Degraded after its update":    {behind("b"), []v1beta1.Memcached{with("a", currentDefault, degraded)}, 1, "", 0},
		"a pinned one is being updated":       {behind("b"), []v1beta1.Memcached{with("a", currentDefault, pinned, updating)}, 1, "", 0},
		"a pinned one is Degraded":            {behind("b"), []v1beta1.Memcached{with("a", currentDefault, pinned, updating, degraded)}, 1, "", 0},
		"a pinned image is Degraded":          {behind("b"), []v1beta1.Memcached{with("a", currentDefault, pinned, mirrored, updating, degraded)}, 1, "", 0},
		"one of another registry is Degraded": {behind("b"), []v1beta1.Memcached{with("a", currentDefault, mirrored, updating, degraded)}, 1, "", 0},
		"one of another registry is updated":  {behind("b"), []v1beta1.Memcached{with("a", currentDefault, mirrored, updating)}, 1, inOrder, followPoll},
		"the one before can't follow now":     {behind("b"), []v1beta1.Memcached{behind("a", degraded), behind("a", paused), behind("a", closed), behind("a", deleted)}, 1, "", 0},
		"a new one is before it":              {behind("b"), []v1beta1.Memcached{with("a", "")}, 1, "", 0},
		"none is to follow":                   {behind("b"), nil, 0, "set to update none", 0},
		"it is paused":                        {behind("b", paused), nil, 1, "neither paused nor Degraded", 0},
		"its update to a former one failed":   {behind("b", waitsFor(v1beta1.GateUpdateFailed), degraded, func(m *v1beta1.Memcached) { m.Status.TargetVersion = "1.6.38" }), nil, 1, "", 0},
		"another update of it failed":         {behind("b", waitsFor(v1beta1.GateUpdateFailed), degraded), nil, 1, "neither paused nor Degraded", 0},
		"it is Degraded":                      {behind("b", degraded), nil, 1, "neither paused nor Degraded", 0},
		"its maintenance window is closed":    {behind("b", closed), nil, 1, "in a maintenance window", time.Hour},
		"it is behind a thousand":             {behind("b"), slices.Repeat([]v1beta1.Memcached{behind("a")}, 1000), 1, inOrder, maxFollowPoll},
	} {
		t.Run(name, func(t *testing.T) {
			got := HoldDefaultImage(&c.m, append(c.others, c.m), currentDefault, c.atOnce, now)
			if (got.Message == "") != (c.message == "") || !strings.Contains(got.Message, c.message) || got.RecheckAfter != c.recheck {
				t.Errorf("message %q, recheck after %s; want %q, %s", got.Message, got.RecheckAfter, c.message, c.recheck)
			}
			if got.Message != "" && !strings.Contains(got.Message, "spec.version") {
				t.Errorf("the message doesn't say what to do: %q", got.Message)
			}
		})
	}
}

// A change of the spec waits for no other Memcached.
func TestMemcachedIsBehindWhenTheDefaultImageAloneChanges(t *testing.T) {
	for name, c := range map[string]struct {
		image, version, has string
		selectedWith        string // the default image of the status
		want                bool
	}{
		"the default image changed":                {"", "", formerDefault, formerDefault, true},
		"its repository has the default's version": {"example.com/memcached", "", "example.com/memcached:1.6.38", formerDefault, true},
		"it has the default image":                 {"", "", currentDefault, currentDefault, false},
		"it has a version now":                     {"", "1.6.45", formerDefault, formerDefault, false},
		"it returns to the default image":          {"", "", "example.com/other:1.6.44", formerDefault, false},
		"it returns to the default's version":      {"", "", "docker.io/library/memcached:1.6.44", formerDefault, false},
		"it is new":                                {"", "", "", "", false},
	} {
		m := &v1beta1.Memcached{Spec: v1beta1.MemcachedSpec{Pod: v1beta1.MemcachedPod{Image: c.image}, Version: c.version}}
		m.Status.Image, m.Status.DefaultImage = c.has, c.selectedWith
		if got := IsBehindDefaultImage(m, currentDefault); got != c.want {
			t.Errorf("%s: behind: %t", name, got)
		}
	}
}
