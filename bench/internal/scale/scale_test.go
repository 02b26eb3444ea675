package scale

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/test/internal/audit"
)

func TestGaugesAreThoseOfTheControllerOfMemcacheds(t *testing.T) {
	const text = `# HELP controller_runtime_reconcile_total Total number of reconciliations per controller
controller_runtime_reconcile_total{controller="memcached",result="error"} 2
controller_runtime_reconcile_total{controller="memcached",result="success"} 1.5e+01
controller_runtime_reconcile_total{controller="memcachedbackup",result="success"} 100
controller_runtime_active_workers{controller="memcached"} 3
controller_runtime_max_concurrent_reconciles{controller="memcached"} 4
workqueue_depth{controller="memcached",name="memcached",priority="0"} 5
workqueue_depth{controller="memcached",name="memcached",priority="-100"} 6
go_goroutines 70
`
	got, err := parse(strings.NewReader(text))
	if want := (Gauges{Reconciles: 17, Queued: 14, Workers: 4}); err != nil || got != want {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	if _, err := parse(strings.NewReader(`workqueue_depth{controller="memcached"} many`)); err == nil {
		t.Error("a value that is not a number: no error")
	}
	if workers, err := got.StartedWorkers(); err != nil || workers != 4 {
		t.Errorf("%d workers, %v", workers, err)
	}
}

// Before a controller starts, controller-runtime has no metric of its workers or one that is 0. As the number of requests
// that must be in flight it would make every bottleneck wrong.
func TestWorkersAreUnknownBeforeTheControllerStarts(t *testing.T) {
	for _, text := range []string{"", "controller_runtime_max_concurrent_reconciles{controller=\"memcached\"} 0\n"} {
		g, err := parse(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if n, err := g.StartedWorkers(); err == nil {
			t.Errorf("%q: %d workers and no error", text, n)
		}
	}
}

func TestObjectsHaveTheNameOfTheirMemcached(t *testing.T) {
	for _, name := range []string{"m00017", "m00017-2", "m00017-preflight-0123456789", "m00017-1-abcde", "m00017.18a0b1c2d3e4f506"} {
		if got := MemcachedOf(audit.Request{Name: name}); got != NameOf(17) {
			t.Errorf("%s belongs to %s", name, got)
		}
	}
}

func TestMemcachedIsUpToDateWhenNothingIsLeftToDo(t *testing.T) {
	upToDate := func() *v1beta1.Memcached {
		m := &v1beta1.Memcached{ObjectMeta: metav1.ObjectMeta{Generation: 2}}
		m.Status = v1beta1.MemcachedStatus{ObservedGeneration: 2, ReadyShards: Shards, Version: "1.6.45", Conditions: []metav1.Condition{
			{Type: v1beta1.ConditionAvailable, Status: metav1.ConditionTrue}, {Type: v1beta1.ConditionProgressing, Status: metav1.ConditionFalse}}}
		for range Shards {
			m.Status.Shards = append(m.Status.Shards, v1beta1.ShardStatus{Version: "1.6.45", UpToDate: true})
		}
		return m
	}
	if m := upToDate(); !IsAvailable(m) || !IsUpToDate("1.6.45")(m) || IsUpToDate("1.6.38")(m) {
		t.Error("it is not up to date")
	}
	for name, change := range map[string]func(*v1beta1.Memcached){
		"the spec is newer":        func(m *v1beta1.Memcached) { m.Generation++ },
		"a shard is unavailable":   func(m *v1beta1.Memcached) { m.Status.ReadyShards-- },
		"an update is in progress": func(m *v1beta1.Memcached) { m.Status.Update = &v1beta1.UpdateStatus{} },
		"it is progressing":        func(m *v1beta1.Memcached) { m.Status.Conditions[1].Status = metav1.ConditionTrue },
		"it is not available":      func(m *v1beta1.Memcached) { m.Status.Conditions[0].Status = metav1.ConditionFalse },
		"a shard is not current":   func(m *v1beta1.Memcached) { m.Status.Shards[1].UpToDate = false },
		"a shard is older":         func(m *v1beta1.Memcached) { m.Status.Shards[2].Version = "1.6.38" },
	} {
		m := upToDate()
		if change(m); IsUpToDate("1.6.45")(m) {
			t.Errorf("%s, and it is up to date", name)
		}
	}
}
