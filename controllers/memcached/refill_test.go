package memcached

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/plan"
	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
)

const withRefill = "{size: 2, refill: {maxAgeSeconds: 86400, maxTTLSeconds: 900}}"

// createBackup creates a complete backup of a Memcached that was taken some time ago.
func (cluster *fakeCluster) createBackup(name, memcached string, age time.Duration) *v1alpha1.MemcachedBackup {
	cluster.Helper()
	b := &v1alpha1.MemcachedBackup{
		ObjectMeta: metav1.ObjectMeta{Namespace: cluster.namespace, Name: name},
		Spec: v1alpha1.MemcachedBackupSpec{MemcachedRef: v1alpha1.MemcachedReference{Name: memcached},
			Store: v1alpha1.SnapshotStore{PersistentVolumeClaim: &v1alpha1.PersistentVolumeClaimStore{ClaimName: "store"}}},
	}
	cluster.must(cluster.admin.Create(cluster.ctx, b))
	b.Status.Phase = v1alpha1.TransferComplete
	b.Status.Snapshot = &v1alpha1.SnapshotStatus{Path: name, TakenAt: metav1.NewTime(cluster.clock.Now().Add(-age)), Items: 2000}
	cluster.must(cluster.admin.Status().Update(cluster.ctx, b))
	return b
}

// newRefillCluster returns a cluster whose shards are ready and were backed up an hour ago.
func newRefillCluster(t *testing.T, spec string) *fakeCluster {
	t.Helper()
	cluster := newReadyCluster(t, "cache", spec)
	cluster.clock.Step(time.Minute)
	cluster.createBackup("older", "cache", 2*time.Hour)
	cluster.createBackup("nightly", "cache", time.Hour)
	cluster.finishRestore = completeRestore
	cluster.recorded()
	return cluster
}

func (cluster *fakeCluster) eventsOf(reason string) []string {
	return slices.DeleteFunc(cluster.recorded(), func(e string) bool { return !strings.Contains(e, " "+reason+" ") })
}

func TestLostShardIsRefilledOnceWhenTheOperatorIsKilledAfterAnyWrite(t *testing.T) {
	run := func(t *testing.T, writesLeft int64) (summary string, writes int64, killed bool) {
		cluster := newRefillCluster(t, withRefill)
		before := cluster.writes.Load()
		if writesLeft > 0 {
			cluster.writesLeft.Store(writesLeft)
		}
		cluster.losePod("cache-1")
		m := cluster.converge()
		return cluster.summary(m), cluster.writes.Load() - before, cluster.killed
	}
	want, writes, _ := run(t, 0)
	for _, line := range []string{"cache-refill-1 of shards [1]: Complete", "pods created: 3", "status of cache-1: current true, version 1.6.45, start Cold"} {
		if strings.Count(want, line) != 1 {
			t.Fatalf("want %q once in:\n%s", line, want)
		}
	}
	killAfterEachWrite(t, want, writes, run)
}

func TestLostShardIsRefilledFromTheNewestBackup(t *testing.T) {
	cluster := newRefillCluster(t, withRefill)
	cluster.finishRestore = nil
	cluster.losePod("cache-1")
	m := cluster.converge()
	restores := cluster.listRestores()
	if len(restores) != 1 || !strings.HasPrefix(restores[0].Name, "cache-refill-1-") || !metav1.IsControlledBy(&restores[0], m) {
		t.Fatalf("restores: %+v", restores)
	}
	s := restores[0].Spec
	if s.MemcachedRef.Name != "cache" || s.BackupRef.Name != "nightly" || !slices.Equal(s.Shards, []int32{1}) || s.ExistingItems != v1alpha1.ExistingKeep ||
		*s.MaxAgeSeconds != 86400 || *s.MaxTTLSeconds != 900 || *s.RateLimit.ItemsPerSecond != 20000 {
		t.Errorf("spec %+v", s)
	}
	if events := cluster.eventsOf(v1alpha1.EventRefillStarted); len(events) != 1 || !strings.Contains(events[0], "refilling shard cache-1, which started empty, from MemcachedBackup nightly with MemcachedRestore "+restores[0].Name) {
		t.Errorf("events %q", events)
	}
	if m.Status.ReadySize != 2 {
		t.Errorf("%s ready", m.Status.Ready)
	}
}

func TestOnlyShardsThatLostTheirItemsUnexpectedlyAreRefilled(t *testing.T) {
	change := func(edit func(*v1alpha1.MemcachedSpec)) func(*fakeCluster) {
		return func(cluster *fakeCluster) { cluster.change("cache", func(m *v1alpha1.Memcached) { edit(&m.Spec) }) }
	}
	for name, c := range map[string]struct {
		spec  string
		act   func(*fakeCluster)
		wants []string
	}{
		"its pod is deleted":                 {withRefill, func(cluster *fakeCluster) { cluster.losePod("cache-0") }, []string{"cache-refill-0"}},
		"both pods are deleted":              {withRefill, func(cluster *fakeCluster) { cluster.losePod("cache-0"); cluster.losePod("cache-1") }, []string{"cache-refill-0", "cache-refill-1"}},
		"memcached crashes":                  {withRefill, func(cluster *fakeCluster) { cluster.restartMemcached("cache-1", agentwire.StartCold) }, []string{"cache-refill-1"}},
		"memcached restarts with its items":  {withRefill, func(cluster *fakeCluster) { cluster.restartMemcached("cache-1", agentwire.StartWarm) }, nil},
		"an argument changes":                {withRefill, change(func(s *v1alpha1.MemcachedSpec) { s.Threads = ptr.To[int32](2) }), nil},
		"the shard is replaced for the spec": {withRefill, change(func(s *v1alpha1.MemcachedSpec) { s.Memory = ptr.To(resource.MustParse("80Mi")) }), nil},
		"the shard is lost after a replacement": {withRefill, func(cluster *fakeCluster) {
			change(func(s *v1alpha1.MemcachedSpec) { s.Memory = ptr.To(resource.MustParse("80Mi")) })(cluster)
			cluster.converge()
			cluster.losePod("cache-1")
		}, []string{"cache-refill-1"}},
		"the shard is new": {withRefill, change(func(s *v1alpha1.MemcachedSpec) { s.Size = ptr.To[int32](3) }), nil},
		"refill isn't set": {"size: 2", func(cluster *fakeCluster) { cluster.losePod("cache-1") }, nil},
		"refill wasn't set at the time": {"size: 2", func(cluster *fakeCluster) {
			cluster.losePod("cache-1")
			cluster.converge()
			change(func(s *v1alpha1.MemcachedSpec) { s.Refill = &v1alpha1.Refill{} })(cluster)
		}, nil},
		"the Memcached is paused": {"{size: 2, paused: false, refill: {}}", func(cluster *fakeCluster) {
			change(func(s *v1alpha1.MemcachedSpec) { s.Paused = true })(cluster)
			cluster.converge()
			cluster.losePod("cache-1")
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := newRefillCluster(t, c.spec)
			c.act(cluster)
			if m := cluster.converge(); int(m.Status.ReadySize) != int(*m.Spec.Size) {
				t.Fatalf("%s ready", m.Status.Ready)
			}
			var got []string
			for _, restore := range cluster.listRestores() {
				got = append(got, restore.Name[:strings.LastIndex(restore.Name, "-")])
			}
			if !slices.Equal(got, c.wants) {
				t.Errorf("restores %v, want %v", got, c.wants)
			}
			if events := cluster.eventsOf(v1alpha1.EventRefillStarted); len(events) != len(c.wants) {
				t.Errorf("events %q", events)
			}
		})
	}
}

// podRecorder records which pods the events are related to.
type podRecorder struct {
	events.EventRecorder
	pods map[string][]string
}

func (r *podRecorder) Eventf(regarding, related runtime.Object, kind, reason, action, note string, args ...any) {
	if pod, ok := related.(*corev1.ObjectReference); ok {
		r.pods[reason] = append(r.pods[reason], pod.Name)
	}
	r.EventRecorder.Eventf(regarding, related, kind, reason, action, note, args...)
}

// Of events that differ only in their message, Kubernetes keeps the first.
func TestEventsOfRefillsAreRelatedToTheirPods(t *testing.T) {
	cluster := newRefillCluster(t, withRefill)
	recorder := &podRecorder{cluster.reconciler.Recorder, map[string][]string{}}
	cluster.reconciler.Recorder = recorder
	cluster.losePod("cache-0")
	cluster.losePod("cache-1")
	cluster.converge()
	if pods := recorder.pods[v1alpha1.EventRefillStarted]; len(pods) != 2 || pods[0] == pods[1] || pods[0] == "" {
		t.Errorf("related pods %q", pods)
	}
}

func TestBootstrappingShardIsNotRefilled(t *testing.T) {
	cluster := newCluster(t, "cache", "{size: 2, refill: {}, bootstrap: {backupRef: {name: nightly}}}")
	cluster.createBackup("nightly", "cache", time.Hour)
	cluster.waitForBootstrap("restored 43%")
	cluster.losePod("cache-1") // the bootstrap fills it again
	cluster.converge()
	cluster.finishRestore = completeRestore
	if m := cluster.converge(); m.Status.ReadySize != 2 || len(cluster.listRestores()) != 1 {
		t.Errorf("%s ready, restores %+v", m.Status.Ready, cluster.listRestores())
	}
}

func TestShardWithoutUsableBackupIsNotRefilledAndHasOneEvent(t *testing.T) {
	for name, prepare := range map[string]func(*fakeCluster){
		"no backup":            func(*fakeCluster) {},
		"of another Memcached": func(cluster *fakeCluster) { cluster.createBackup("b", "other", time.Hour) },
		"too old":              func(cluster *fakeCluster) { cluster.createBackup("b", "cache", 25*time.Hour) },
		"taken after the loss": func(cluster *fakeCluster) {
			cluster.createBackup("b", "cache", -time.Hour) // later than the next start
		},
		"still running": func(cluster *fakeCluster) {
			b := cluster.createBackup("b", "cache", time.Hour)
			b.Status.Phase = v1alpha1.TransferRunning
			cluster.must(cluster.admin.Status().Update(cluster.ctx, b))
		},
		"being deleted": func(cluster *fakeCluster) {
			b := cluster.createBackup("b", "cache", time.Hour)
			before := b.DeepCopy()
			b.Finalizers = []string{v1alpha1.FinalizerSnapshot}
			cluster.must(cluster.admin.Patch(cluster.ctx, b, client.MergeFrom(before)))
			cluster.must(cluster.admin.Delete(cluster.ctx, b))
		},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := newReadyCluster(t, "cache", withRefill)
			prepare(cluster)
			cluster.recorded()
			cluster.losePod("cache-1")
			cluster.converge()
			if events := cluster.eventsOf(v1alpha1.EventRefillSkipped); len(events) != 1 || !strings.Contains(events[0], "shard cache-1 was not refilled: no complete MemcachedBackup was taken in the 24h0m0s before the loss") {
				t.Errorf("events %q", events)
			}
			if restores := cluster.listRestores(); len(restores) > 0 {
				t.Errorf("restores: %+v", restores)
			}
		})
	}
}

// failingClient fails to create restores a number of times.
type failingClient struct {
	client.Client
	times  int
	failed *v1alpha1.MemcachedRestore // the last one
}

func (r *failingClient) Create(ctx context.Context, o client.Object, options ...client.CreateOption) error {
	if restore, is := o.(*v1alpha1.MemcachedRestore); is && r.times > 0 {
		r.times, r.failed = r.times-1, restore
		return errors.New("the API server is overloaded")
	}
	return r.Client.Create(ctx, o, options...)
}

func TestLostShardIsRefilledWhenItsRestoreIsCreatedLate(t *testing.T) {
	cluster := newRefillCluster(t, withRefill)
	cluster.reconciler.Client = &failingClient{Client: cluster.reconciler.Client, times: 2}
	was := cluster.get("cache").Status.Shards[1]
	cluster.losePod("cache-1")
	cluster.tick()
	for try := range 2 {
		m := cluster.step("cache")
		if shard := m.Status.Shards[1]; !shard.Ready || shard.ContainerID != was.ContainerID {
			t.Errorf("after try %d: shard %+v", try, shard)
		}
	}
	if events := cluster.eventsOf(v1alpha1.EventRefillStarted); len(events) > 0 {
		t.Errorf("events too early: %q", events)
	}
	m := cluster.converge()
	if len(cluster.listRestores()) != 1 || m.Status.Shards[1].ContainerID == was.ContainerID || len(cluster.eventsOf(v1alpha1.EventRefillStarted)) != 1 {
		t.Errorf("restores %+v, shard %+v", cluster.listRestores(), m.Status.Shards[1])
	}
}

// A user can create what the operator is about to create, with other contents.
func TestRestoreOfASnapshotWithTheNameOfARefillIsTakenForIt(t *testing.T) {
	cluster := newRefillCluster(t, withRefill)
	creates := &failingClient{Client: cluster.reconciler.Client, times: 1}
	cluster.reconciler.Client = creates
	was := cluster.get("cache").Status.Shards[1]
	cluster.losePod("cache-1")
	cluster.tick()
	cluster.step("cache")
	if creates.failed == nil {
		t.Fatal("no restore was created")
	}
	creates.failed.Spec.BackupRef = nil
	creates.failed.Spec.Snapshot = &v1alpha1.SnapshotSource{Path: "other", Store: v1alpha1.SnapshotStore{PersistentVolumeClaim: &v1alpha1.PersistentVolumeClaimStore{ClaimName: "store"}}}
	cluster.must(cluster.admin.Create(cluster.ctx, creates.failed))
	m := cluster.converge()
	if restores := cluster.listRestores(); len(restores) != 1 || restores[0].Spec.Snapshot == nil || m.Status.Shards[1].ContainerID == was.ContainerID || m.Status.ReadySize != 2 {
		t.Errorf("restores %+v, shard %+v", restores, m.Status.Shards[1])
	}
}

func TestFinishedRefillsAreDeleted(t *testing.T) {
	cluster := newRefillCluster(t, withRefill)
	for round := range 5 {
		cluster.restartMemcached("cache-0", agentwire.StartCold)
		cluster.converge()
		cluster.converge() // until the restore has finished
		if n := len(cluster.listRestores()); n != min(round+1, plan.RefillHistoryLimit) {
			t.Fatalf("%d restores after %d losses in one pod", n, round+1)
		}
		cluster.clock.Step(time.Minute)
	}
	cluster.finishRestore = nil
	cluster.restartMemcached("cache-0", agentwire.StartCold)
	cluster.converge()
	cluster.losePod("cache-0")
	cluster.converge()
	phases := map[v1alpha1.TransferPhase]int{}
	for _, restore := range cluster.listRestores() {
		phases[restore.Status.Phase]++
	}
	if want := fmt.Sprint(map[v1alpha1.TransferPhase]int{v1alpha1.TransferRunning: 2}); fmt.Sprint(phases) != want {
		t.Errorf("remaining %v, want the running ones of the deleted pod and of its successor", phases)
	}
	cluster.finishRestore = completeRestore
	cluster.converge()
	if restores := cluster.listRestores(); len(restores) != 1 {
		t.Errorf("remaining %+v", restores)
	}
}
