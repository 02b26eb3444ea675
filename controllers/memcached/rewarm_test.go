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
	"github.com/memcached-operator/memcached-operator/internal/agentapi"
)

const toBeRewarmed = "{size: 2, rewarm: {maxAge: 24h, maxTTL: 15m}}"

// backup makes one that is complete and as old as that.
func (k *kubelet) backup(name, memcached string, age time.Duration) *v1alpha1.MemcachedBackup {
	k.Helper()
	b := &v1alpha1.MemcachedBackup{
		ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: name},
		Spec: v1alpha1.MemcachedBackupSpec{Memcached: v1alpha1.MemcachedReference{Name: memcached},
			Store: v1alpha1.SnapshotStore{PersistentVolumeClaim: &v1alpha1.PersistentVolumeClaimStore{ClaimName: "store"}}},
	}
	k.must(admin.Create(k.ctx, b))
	b.Status.Phase = v1alpha1.RunComplete
	b.Status.Snapshot = &v1alpha1.SnapshotStatus{Path: name, TakenAt: metav1.NewTime(k.clock.Now().Add(-age)), Items: 2000}
	k.must(admin.Status().Update(k.ctx, b))
	return b
}

// newRewarmed returns one whose shards serve and were backed up an hour ago.
func newRewarmed(t *testing.T, spec string) *kubelet {
	t.Helper()
	k := newSettledKubelet(t, "cache", spec)
	k.clock.Step(time.Minute)
	k.backup("older", "cache", 2*time.Hour)
	k.backup("nightly", "cache", time.Hour)
	k.restores = completes
	k.recorded()
	return k
}

func (k *kubelet) told(reason string) []string {
	return slices.DeleteFunc(k.recorded(), func(e string) bool { return !strings.Contains(e, " "+reason+" ") })
}

func TestALostShardIsFilledOnceWhereverTheOperatorIsKilled(t *testing.T) {
	run := func(t *testing.T, lives int64) (end string, writes int64, killed bool) {
		k := newRewarmed(t, toBeRewarmed)
		before := k.writes.Load()
		if lives > 0 {
			k.lives.Store(lives)
		}
		k.lose("cache-1")
		m := k.settle()
		return k.end(m), k.writes.Load() - before, k.killed
	}
	want, writes, _ := run(t, 0)
	for _, line := range []string{"cache-rewarm-1 of shards [1]: Complete", "pods made: 3", "status of cache-1: current true, version 1.6.45, start Cold"} {
		if strings.Count(want, line) != 1 {
			t.Fatalf("not one %q in:\n%s", line, want)
		}
	}
	killedAfterEach(t, want, writes, run)
}

func TestALostShardIsFilledFromTheNewestBackup(t *testing.T) {
	k := newRewarmed(t, toBeRewarmed)
	k.restores = nil
	k.lose("cache-1")
	m := k.settle()
	restores := k.listRestores()
	if len(restores) != 1 || !strings.HasPrefix(restores[0].Name, "cache-rewarm-1-") || !metav1.IsControlledBy(&restores[0], m) {
		t.Fatalf("restores: %+v", restores)
	}
	s := restores[0].Spec
	if s.Memcached.Name != "cache" || s.Backup.Name != "nightly" || !slices.Equal(s.Shards, []int32{1}) || s.ExistingItems != v1alpha1.ExistingKeep ||
		s.MaxAge.Duration != 24*time.Hour || s.MaxTTL.Duration != 15*time.Minute || *s.RateLimit.ItemsPerSecond != 20000 {
		t.Errorf("it asks for %+v", s)
	}
	if told := k.told(v1alpha1.EventRewarmStarted); len(told) != 1 || !strings.Contains(told[0], "shard cache-1, which started empty, is filled from MemcachedBackup nightly by MemcachedRestore "+restores[0].Name) {
		t.Errorf("told: %q", told)
	}
	if m.Status.ReadySize != 2 {
		t.Errorf("%s serve", m.Status.Ready)
	}
}

// Each way in which a shard comes to be empty, or does not.
func TestWhichShardsAreFilledAgain(t *testing.T) {
	change := func(edit func(*v1alpha1.MemcachedSpec)) func(*kubelet) {
		return func(k *kubelet) { k.change("cache", func(m *v1alpha1.Memcached) { edit(&m.Spec) }) }
	}
	for name, c := range map[string]struct {
		spec  string
		what  func(*kubelet)
		wants []string
	}{
		"its pod is gone":                      {toBeRewarmed, func(k *kubelet) { k.lose("cache-0") }, []string{"cache-rewarm-0"}},
		"both pods are gone":                   {toBeRewarmed, func(k *kubelet) { k.lose("cache-0"); k.lose("cache-1") }, []string{"cache-rewarm-0", "cache-rewarm-1"}},
		"memcached crashed":                    {toBeRewarmed, func(k *kubelet) { k.again("cache-1", agentapi.StartCold) }, []string{"cache-rewarm-1"}},
		"memcached came back with its items":   {toBeRewarmed, func(k *kubelet) { k.again("cache-1", agentapi.StartWarm) }, nil},
		"it is restarted for an argument":      {toBeRewarmed, change(func(s *v1alpha1.MemcachedSpec) { s.Threads = ptr.To[int32](2) }), nil},
		"it is replaced, as the spec asks for": {toBeRewarmed, change(func(s *v1alpha1.MemcachedSpec) { s.Memory = ptr.To(resource.MustParse("80Mi")) }), nil},
		"it was replaced, and is lost then": {toBeRewarmed, func(k *kubelet) {
			change(func(s *v1alpha1.MemcachedSpec) { s.Memory = ptr.To(resource.MustParse("80Mi")) })(k)
			k.settle()
			k.lose("cache-1")
		}, []string{"cache-rewarm-1"}},
		"it is new":           {toBeRewarmed, change(func(s *v1alpha1.MemcachedSpec) { s.Size = ptr.To[int32](3) }), nil},
		"nobody asked for it": {"size: 2", func(k *kubelet) { k.lose("cache-1") }, nil},
		"nobody asked for it then": {"size: 2", func(k *kubelet) {
			k.lose("cache-1")
			k.settle()
			change(func(s *v1alpha1.MemcachedSpec) { s.Rewarm = &v1alpha1.Rewarm{} })(k)
		}, nil},
		"it is paused": {"{size: 2, paused: false, rewarm: {}}", func(k *kubelet) {
			change(func(s *v1alpha1.MemcachedSpec) { s.Paused = true })(k)
			k.settle()
			k.lose("cache-1")
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			k := newRewarmed(t, c.spec)
			c.what(k)
			if m := k.settle(); int(m.Status.ReadySize) != int(*m.Spec.Size) {
				t.Fatalf("%s serve", m.Status.Ready)
			}
			var got []string
			for _, restore := range k.listRestores() {
				got = append(got, restore.Name[:strings.LastIndex(restore.Name, "-")])
			}
			if !slices.Equal(got, c.wants) {
				t.Errorf("restores %v, want %v", got, c.wants)
			}
			if told := k.told(v1alpha1.EventRewarmStarted); len(told) != len(c.wants) {
				t.Errorf("told: %q", told)
			}
		})
	}
}

// relations notes to which pods events are related.
type relations struct {
	events.EventRecorder
	pods map[string][]string
}

func (r *relations) Eventf(regarding, related runtime.Object, kind, reason, action, note string, args ...any) {
	if pod, ok := related.(*corev1.ObjectReference); ok {
		r.pods[reason] = append(r.pods[reason], pod.Name)
	}
	r.EventRecorder.Eventf(regarding, related, kind, reason, action, note, args...)
}

// Of events that differ in their message alone only the first would be kept.
func TestThatShardsAreFilledIsToldOfTheirPods(t *testing.T) {
	k := newRewarmed(t, toBeRewarmed)
	told := &relations{k.reconciler.Recorder, map[string][]string{}}
	k.reconciler.Recorder = told
	k.lose("cache-0")
	k.lose("cache-1")
	k.settle()
	if pods := told.pods[v1alpha1.EventRewarmStarted]; len(pods) != 2 || pods[0] == pods[1] || pods[0] == "" {
		t.Errorf("it is told of pods %q", pods)
	}
}

func TestAFilledMemcachedIsNotFilledAgain(t *testing.T) {
	k := newKubelet(t, "cache", "{size: 2, rewarm: {}, bootstrap: {backup: {name: nightly}}}")
	k.backup("nightly", "cache", time.Hour)
	k.held()
	k.lose("cache-1") // what fills it fills it again
	k.settle()
	k.restores = completes
	if m := k.settle(); m.Status.ReadySize != 2 || len(k.listRestores()) != 1 {
		t.Errorf("%s serve, restores %+v", m.Status.Ready, k.listRestores())
	}
}

func TestWithoutAUsableBackupAShardStaysEmptyAndThatIsToldOnce(t *testing.T) {
	for name, prepare := range map[string]func(*kubelet){
		"none":           func(*kubelet) {},
		"of another one": func(k *kubelet) { k.backup("b", "other", time.Hour) },
		"too old":        func(k *kubelet) { k.backup("b", "cache", 25*time.Hour) },
		"taken after it was lost": func(k *kubelet) {
			k.backup("b", "cache", -time.Hour) // its start is told in a moment
		},
		"that runs still": func(k *kubelet) {
			b := k.backup("b", "cache", time.Hour)
			b.Status.Phase = v1alpha1.RunRunning
			k.must(admin.Status().Update(k.ctx, b))
		},
		"that is being deleted": func(k *kubelet) {
			b := k.backup("b", "cache", time.Hour)
			before := b.DeepCopy()
			b.Finalizers = []string{v1alpha1.FinalizerSnapshot}
			k.must(admin.Patch(k.ctx, b, client.MergeFrom(before)))
			k.must(admin.Delete(k.ctx, b))
		},
	} {
		t.Run(name, func(t *testing.T) {
			k := newSettledKubelet(t, "cache", toBeRewarmed)
			prepare(k)
			k.recorded()
			k.lose("cache-1")
			k.settle()
			if told := k.told(v1alpha1.EventNotRewarmed); len(told) != 1 || !strings.Contains(told[0], "shard cache-1 stays empty") {
				t.Errorf("told: %q", told)
			}
			if restores := k.listRestores(); len(restores) > 0 {
				t.Errorf("restores: %+v", restores)
			}
		})
	}
}

// refuses has the API server fail to make restores.
type refuses struct {
	client.Client
	times int
}

func (r *refuses) Create(ctx context.Context, o client.Object, options ...client.CreateOption) error {
	if _, is := o.(*v1alpha1.MemcachedRestore); is && r.times > 0 {
		r.times--
		return errors.New("the API server is overloaded")
	}
	return r.Client.Create(ctx, o, options...)
}

func TestALostShardIsNotForgottenWhenItsRestoreCannotBeMadeAtOnce(t *testing.T) {
	k := newRewarmed(t, toBeRewarmed)
	k.reconciler.Client = &refuses{k.reconciler.Client, 2}
	was := k.get("cache").Status.Shards[1]
	k.lose("cache-1")
	k.tick()
	for try := range 2 {
		m := k.step("cache")
		if shard := m.Status.Shards[1]; !shard.Ready || shard.ContainerID != was.ContainerID {
			t.Errorf("after try %d the status tells of %+v", try, shard)
		}
	}
	if told := k.told(v1alpha1.EventRewarmStarted); len(told) > 0 {
		t.Errorf("told too early: %q", told)
	}
	m := k.settle()
	if len(k.listRestores()) != 1 || m.Status.Shards[1].ContainerID == was.ContainerID || len(k.told(v1alpha1.EventRewarmStarted)) != 1 {
		t.Errorf("restores %+v, shard %+v", k.listRestores(), m.Status.Shards[1])
	}
}

func TestRestoresOfLostShardsAreTidiedUp(t *testing.T) {
	k := newRewarmed(t, toBeRewarmed)
	for round := range 5 {
		k.again("cache-0", agentapi.StartCold)
		k.settle()
		k.settle() // the restore has ended by then
		if n := len(k.listRestores()); n != min(round+1, keptRewarms) {
			t.Fatalf("%d restores after %d losses in one pod", n, round+1)
		}
		k.clock.Step(time.Minute)
	}
	k.restores = nil
	k.again("cache-0", agentapi.StartCold)
	k.settle()
	k.lose("cache-0")
	k.settle()
	phases := map[v1alpha1.RunPhase]int{}
	for _, restore := range k.listRestores() {
		phases[restore.Status.Phase]++
	}
	if want := fmt.Sprint(map[v1alpha1.RunPhase]int{v1alpha1.RunRunning: 2}); fmt.Sprint(phases) != want {
		t.Errorf("left are %v, want those that run, of the pod that is gone and of the one that is there", phases)
	}
	k.restores = completes
	k.settle()
	if restores := k.listRestores(); len(restores) != 1 {
		t.Errorf("left are %+v", restores)
	}
}
