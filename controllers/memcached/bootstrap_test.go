package memcached

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/manifests"
	"github.com/memcached-operator/memcached-operator/internal/agentapi"
)

const toBeFilled = "{size: 2, bootstrap: {backup: {name: nightly}, deadline: 5m, maxAge: 24h, maxTTL: 15m}}"

// TestABootstrapEndsTheSameWhereverTheOperatorIsKilled kills the operator after
// each write in turn. No shard may serve before the restore has ended.
func TestABootstrapEndsTheSameWhereverTheOperatorIsKilled(t *testing.T) {
	for name, c := range map[string]struct {
		restores func(*v1alpha1.MemcachedRestore)
		kill     bool
		wants    []string
	}{
		"it completes": {completes, true, []string{
			"bootstrap: Complete, the shards serve with 2,000 restored items; served: cache-0, cache-bootstrap Complete; cache-1, cache-bootstrap Complete",
			"Progressing False Settled", "Degraded False AsExpected"}},
		"it fails, which is told by the same writes": {fails, false, []string{
			"bootstrap: Failed, the shards serve with no restored item: MemcachedRestore cache-bootstrap failed: the snapshot is not there; " +
				"served: cache-0, cache-bootstrap Failed; cache-1, cache-bootstrap Failed",
			"Progressing False Settled", "Degraded False AsExpected"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run := func(t *testing.T, lives int64) (end string, writes int64, killed bool) {
				k := newKubelet(t, "cache", toBeFilled)
				k.restores = c.restores
				if lives > 0 {
					k.lives.Store(lives)
				}
				m := k.settle()
				return k.end(m), k.writes.Load(), k.killed
			}
			want, writes, _ := run(t, 0)
			for _, line := range append(c.wants, "pods made: 2", `held until ""`) {
				if !strings.Contains(want, line) {
					t.Fatalf("no %q in:\n%s", line, want)
				}
			}
			for lives := int64(1); lives <= writes && c.kill; lives++ {
				got, _, killed := run(t, lives)
				if !killed {
					t.Errorf("there were %d writes, and no %d. now", writes, lives)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("killed after write %d of %d it ends otherwise (-want +got):\n%s", lives, writes, diff)
				}
			}
			if c.kill {
				t.Logf("killed after each of %d writes", writes)
			}
		})
	}
}

// held waits until the restore is under way.
func (k *kubelet) held() *v1alpha1.Memcached {
	k.Helper()
	m := k.settle()
	if !isBootstrapping(m.Status.Bootstrap) || len(k.served) > 0 {
		k.Fatalf("bootstrap %+v, and these serve: %v", m.Status.Bootstrap, k.served)
	}
	return m
}

func TestTheStatusTellsOfABootstrapBeforeThereIsAShard(t *testing.T) {
	w := newWorld(t)
	w.create("cache", toBeFilled)
	before := time.Now()
	m := w.reconcile("cache")
	b := m.Status.Bootstrap
	if b == nil || b.Restore != "cache-bootstrap" || b.Phase != v1alpha1.RunRunning {
		t.Fatalf("bootstrap is %+v", b)
	}
	if d := b.Deadline.Sub(before); d < 299*time.Second || d > 310*time.Second {
		t.Errorf("its deadline is in %s, want 5m", d)
	}
	if w.exists("cache-0", &appsv1.ReplicaSet{}) {
		t.Fatal("shard 0 was made before the status told of it")
	}
	w.wantCondition(m, v1alpha1.ConditionProgressing, metav1.ConditionTrue, v1alpha1.ReasonBootstrapping, b.Deadline.UTC().Format("15:04 UTC"))
	m = w.reconcile("cache")
	var set appsv1.ReplicaSet
	w.read("cache-0", &set)
	if until := set.Spec.Template.Annotations[v1alpha1.AnnotationHoldUntil]; until != b.Deadline.UTC().Format(time.RFC3339) {
		t.Errorf("its pods are held until %q, want %s", until, b.Deadline)
	}
	if m.Status.Bootstrap.Deadline != b.Deadline {
		t.Errorf("the deadline moved from %s to %s", b.Deadline, m.Status.Bootstrap.Deadline)
	}
}

func TestARestoreIsMadeOnceEveryShardsMemcachedAnswers(t *testing.T) {
	w := newWorld(t)
	w.create("cache", toBeFilled)
	w.settle("cache")
	start := agentapi.Start{Result: agentapi.StartCold, At: time.Now()}
	run := func(shard, ip string) *corev1.Pod {
		pod := w.runPod(shard, "a", ip)
		pod.Status.ContainerStatuses[0].State.Running = &corev1.ContainerStateRunning{}
		pod.Status.ContainerStatuses[0].Ready, pod.Status.Conditions = false, nil
		w.must(admin.Status().Update(w.ctx, pod))
		return pod
	}
	w.answer(run("cache-0", "10.0.0.1"), start, "1.6.45")
	late := run("cache-1", "10.0.0.2")
	m := w.settle("cache")
	if w.exists("cache-bootstrap", &v1alpha1.MemcachedRestore{}) {
		t.Error("the restore was made before cache-1 answered")
	}
	w.wantCondition(m, v1alpha1.ConditionProgressing, metav1.ConditionTrue, v1alpha1.ReasonBootstrapping, "waiting until all shards run, to fill them: cache-1;")
	if shard := m.Status.Shards[0]; shard.Message != "runs, and is filled before it serves" {
		t.Errorf("of shard 0 it is told: %s", shard.Message)
	}

	w.answer(late, start, "1.6.45")
	m = w.settle("cache")
	var restore v1alpha1.MemcachedRestore
	w.read("cache-bootstrap", &restore)
	if !metav1.IsControlledBy(&restore, m) {
		t.Errorf("it is owned by %v", restore.OwnerReferences)
	}
	s := restore.Spec
	if s.Memcached.Name != "cache" || s.Backup.Name != "nightly" || s.MaxAge.Duration != 24*time.Hour || s.MaxTTL.Duration != 15*time.Minute ||
		s.Deadline.Duration != 5*time.Minute || s.ExistingItems != v1alpha1.ExistingKeep || *s.RateLimit.ItemsPerSecond != 0 || *s.RateLimit.MebibytesPerSecond != 0 {
		t.Errorf("it asks for %+v", s)
	}
}

// Its last pods drain for a minute, and a restore would reach them too.
func TestAPodOfADeletedMemcachedOfTheSameNameIsNotFilled(t *testing.T) {
	w := newWorld(t)
	w.create("cache", "size: 1")
	w.settle("cache")
	former := w.runPod("cache-0", "former", "10.0.0.9")
	w.must(admin.Delete(w.ctx, w.get("cache")))
	for _, key := range manifests.Keys("cache", 1) { // as the garbage collector does
		o := newObject(key.Kind)
		w.read(key.Name, o)
		w.must(admin.Delete(w.ctx, o))
	}

	w.create("cache", "{size: 1, bootstrap: {backup: {name: nightly}}}")
	w.settle("cache")
	pod := w.runPod("cache-0", "next", "10.0.0.1")
	pod.Status.ContainerStatuses[0].State.Running = &corev1.ContainerStateRunning{}
	w.must(admin.Status().Update(w.ctx, pod))
	w.answer(pod, agentapi.Start{Result: agentapi.StartCold, At: time.Now()}, "1.6.45")
	m := w.settle("cache")
	w.wantCondition(m, v1alpha1.ConditionProgressing, metav1.ConditionTrue, v1alpha1.ReasonBootstrapping, "waiting until all shards run")
	if w.exists("cache-bootstrap", &v1alpha1.MemcachedRestore{}) {
		t.Fatal("the restore was made while the former pod was there")
	}
	w.endPod(former)
	if w.settle("cache"); !w.exists("cache-bootstrap", &v1alpha1.MemcachedRestore{}) {
		t.Error("no restore was made once it had gone")
	}
}

func TestWhileShardsAreFilledTheStatusTellsHowFar(t *testing.T) {
	k := newKubelet(t, "cache", toBeFilled)
	m := k.held()
	at := m.Status.Bootstrap.Deadline.UTC().Format("15:04 UTC")
	k.wantCondition(m, v1alpha1.ConditionProgressing, metav1.ConditionTrue, v1alpha1.ReasonBootstrapping,
		"restored 43 % of 2,000 items; they serve when it is done, at "+at+" at the latest")
	k.wantCondition(m, v1alpha1.ConditionDegraded, metav1.ConditionFalse, v1alpha1.ReasonAsExpected)
	if m.Status.Phase != v1alpha1.PhaseProgressing {
		t.Errorf("its phase is %s", m.Status.Phase)
	}
}

func TestAtTheDeadlineTheShardsServeAndTheRestoreMayGoOn(t *testing.T) {
	k := newKubelet(t, "cache", toBeFilled)
	k.held()
	k.recorded()
	k.clock.Step(5 * time.Minute)
	m := k.settle()
	want := "the shards were not filled in time and serve: MemcachedRestore cache-bootstrap, which may go on meanwhile, had restored 43 % of 2,000 items"
	if b := m.Status.Bootstrap; b.Phase != v1alpha1.RunFailed || b.Message != want || len(k.served) != 2 {
		t.Errorf("bootstrap %+v, served: %v", b, k.served)
	}
	k.wantEvent(k.recorded(), "Warning "+v1alpha1.EventBootstrapEnded)
	if restores := k.listRestores(); len(restores) != 1 || restores[0].Status.Phase != v1alpha1.RunRunning {
		t.Errorf("restores: %+v", restores)
	}
	for _, pod := range k.list() {
		if until, is := pod.Annotations[v1alpha1.AnnotationHoldUntil]; is {
			t.Errorf("pod %s is held until %q still", pod.Name, until)
		}
	}
}

func TestShardsThatCannotRunAreNotWaitedForBeyondTheDeadline(t *testing.T) {
	w := newWorld(t)
	w.create("cache", "{size: 1, bootstrap: {backup: {name: nightly}, deadline: 10s}}")
	w.settle("cache")
	past(w)
	m := w.settle("cache")
	if b := m.Status.Bootstrap; b.Phase != v1alpha1.RunFailed || !strings.Contains(b.Message, "waited until these run: cache-0") {
		t.Errorf("bootstrap %+v", b)
	}
	var set appsv1.ReplicaSet
	w.read("cache-0", &set)
	if until := set.Spec.Template.Annotations[v1alpha1.AnnotationHoldUntil]; until != "" {
		t.Errorf("its next pod would be held until %s", until)
	}
	if w.exists("cache-bootstrap", &v1alpha1.MemcachedRestore{}) {
		t.Error("a restore was made")
	}
}

func TestARestoreOfThatNameThatIsSomebodyElsesIsLeftAlone(t *testing.T) {
	k := newKubelet(t, "cache", toBeFilled)
	theirs := &v1alpha1.MemcachedRestore{
		ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: "cache-bootstrap"},
		Spec:       v1alpha1.MemcachedRestoreSpec{Memcached: v1alpha1.MemcachedReference{Name: "other"}, Backup: &v1alpha1.BackupReference{Name: "other"}},
	}
	k.must(admin.Create(k.ctx, theirs))
	m := k.settle()
	if b := m.Status.Bootstrap; b.Phase != v1alpha1.RunFailed || !strings.Contains(b.Message, "exists and is not this Memcached's") || len(k.served) != 2 {
		t.Errorf("bootstrap %+v, served: %v", b, k.served)
	}
	if restores := k.listRestores(); len(restores) != 1 || restores[0].UID != theirs.UID {
		t.Errorf("restores: %+v", restores)
	}
}

func TestAPausedMemcachedIsNotFilledUntilItGoesOn(t *testing.T) {
	k := newKubelet(t, "cache", "{size: 2, paused: true, bootstrap: {backup: {name: nightly}, deadline: 5m}}")
	if m := k.settle(); m.Status.Bootstrap != nil {
		t.Fatalf("its time runs: %+v", m.Status.Bootstrap)
	}
	k.change("cache", func(m *v1alpha1.Memcached) { m.Spec.Paused = false })
	k.held()

	k.change("cache", func(m *v1alpha1.Memcached) { m.Spec.Paused = true })
	k.settle()
	k.restores = completes
	before := k.listRestores()[0]
	if m := k.settle(); m.Status.Bootstrap.Phase != v1alpha1.RunComplete || before.Name != "cache-bootstrap" || len(k.served) > 0 {
		t.Errorf("bootstrap %+v, served while paused: %v", m.Status.Bootstrap, k.served)
	}
	k.change("cache", func(m *v1alpha1.Memcached) { m.Spec.Paused = false })
	if k.settle(); len(k.served) != 2 {
		t.Errorf("served: %v", k.served)
	}
}

func TestABootstrapThatIsTakenAwayGoesOnAsItWasGiven(t *testing.T) {
	k := newKubelet(t, "cache", toBeFilled)
	k.held()
	k.change("cache", func(m *v1alpha1.Memcached) { m.Spec.Bootstrap = nil })
	k.held()
	k.restores = completes
	if m := k.settle(); m.Status.Bootstrap.Phase != v1alpha1.RunComplete {
		t.Errorf("bootstrap %+v", m.Status.Bootstrap)
	}
}

// The way out for whoever does not want to wait.
func TestABootstrapEndsWhenBothItAndItsRestoreAreTakenAway(t *testing.T) {
	k := newKubelet(t, "cache", toBeFilled)
	k.held()
	k.change("cache", func(m *v1alpha1.Memcached) { m.Spec.Bootstrap = nil })
	k.must(admin.Delete(k.ctx, &k.listRestores()[0]))
	if m := k.settle(); m.Status.Bootstrap.Phase != v1alpha1.RunFailed || len(k.served) != 2 || len(k.listRestores()) > 0 {
		t.Errorf("bootstrap %+v, served: %v", m.Status.Bootstrap, k.served)
	}
}

func TestAMemcachedThatHasShardsIsNotHeld(t *testing.T) {
	for name, prepare := range map[string]func(k *kubelet){
		"that serve":     func(*kubelet) {},
		"that were lost": func(k *kubelet) { k.must(admin.DeleteAllOf(k.ctx, &appsv1.ReplicaSet{}, inNamespace(k.world))) },
		"that were filled before": func(k *kubelet) {
			m := k.get("cache")
			m.Status.Bootstrap = &v1alpha1.BootstrapStatus{Restore: "cache-bootstrap", Phase: v1alpha1.RunComplete, Deadline: metav1.Now()}
			m.Status.Shards = nil
			k.must(admin.Status().Update(k.ctx, m))
			k.must(admin.DeleteAllOf(k.ctx, &appsv1.ReplicaSet{}, inNamespace(k.world)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			k := newSettledKubelet(t, "cache", "size: 2")
			k.change("cache", func(m *v1alpha1.Memcached) {
				m.Spec.Bootstrap = &v1alpha1.Bootstrap{Backup: &v1alpha1.BackupReference{Name: "nightly"}}
			})
			prepare(k)
			if m := k.settle(); isBootstrapping(m.Status.Bootstrap) || len(k.listRestores()) > 0 || m.Status.ReadySize != 2 {
				t.Errorf("bootstrap %+v, %d shards serve", m.Status.Bootstrap, m.Status.ReadySize)
			}
		})
	}
}

func TestAShardThatIsAddedLaterIsNotHeld(t *testing.T) {
	k := newKubelet(t, "cache", toBeFilled)
	k.restores = completes
	k.settle()
	k.change("cache", func(m *v1alpha1.Memcached) { *m.Spec.Size = 3 })
	if m := k.settle(); m.Status.ReadySize != 3 || len(k.listRestores()) != 1 {
		t.Errorf("%s serve, restores: %+v", m.Status.Ready, k.listRestores())
	}
}

// The kubelet can miss that an annotation changed until the pod changes again.
func TestAPodThatDoesNotHearOfItsReleaseIsToldAgain(t *testing.T) {
	now := time.Date(2026, 11, 21, 15, 0, 0, 0, time.UTC)
	at := func(d time.Duration) string { return now.Add(d).Format(time.RFC3339) }
	deadline := metav1.NewTime(now.Add(time.Minute))
	keep := "keep"
	for name, c := range map[string]struct {
		held  string
		ready bool
		phase v1alpha1.RunPhase
		late  time.Duration
		want  string
	}{
		"while it is filled":                 {at(time.Minute), false, v1alpha1.RunRunning, 0, keep},
		"at the end":                         {at(time.Minute), false, v1alpha1.RunComplete, 0, at(0)},
		"a moment later":                     {at(-2 * time.Second), false, v1alpha1.RunComplete, 0, keep},
		"when it should have heard":          {at(-5 * time.Second), false, v1alpha1.RunComplete, 0, at(0)},
		"when it serves":                     {at(-time.Second), true, v1alpha1.RunFailed, 0, ""},
		"at the deadline, by which it goes":  {at(time.Minute), false, v1alpha1.RunFailed, time.Minute, ""},
		"when a person wrote something else": {"later", false, v1alpha1.RunComplete, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			seen := smallWorld(1, "good", [2]string{"ours", "absent"}, [2]string{"ours", "absent"}, [2]string{"starting", "none"})
			seen.now = now.Add(c.late)
			seen.memcached.Spec.Bootstrap = &v1alpha1.Bootstrap{Backup: &v1alpha1.BackupReference{Name: "nightly"}}
			pod := seen.pods["cache-0"][0]
			pod.Annotations = map[string]string{v1alpha1.AnnotationHoldUntil: c.held}
			if c.ready {
				pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
			}
			seen.memcached.Status.Bootstrap = &v1alpha1.BootstrapStatus{Restore: "cache-bootstrap", Phase: c.phase, Deadline: deadline}
			p := planOf(seen)
			got := keep
			for _, patch := range p.patches {
				value := patch.body["metadata"].(map[string]any)["annotations"].(map[string]any)[v1alpha1.AnnotationHoldUntil]
				got, _ = value.(string)
			}
			if got != c.want {
				t.Errorf("it gets %q, want %q", got, c.want)
			}
			if got == keep && p.requeueAfter == 0 {
				t.Error("nobody looks again")
			}
		})
	}
}
