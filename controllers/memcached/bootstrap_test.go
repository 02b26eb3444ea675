package memcached

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
)

const withBootstrap = "{size: 2, bootstrap: {backupRef: {name: nightly}, deadlineSeconds: 300, maxAgeSeconds: 86400, maxTTLSeconds: 900}}"

func TestShardsBecomeReadyWhenTheRestoreHasFinished(t *testing.T) {
	for name, c := range map[string]struct {
		finishRestore func(*v1alpha1.MemcachedRestore)
		wants         []string
	}{
		"the restore completes": {completeRestore, []string{
			"bootstrap: Complete, the shards started with 2,000 restored items; ready: cache-0, cache-bootstrap Complete; cache-1, cache-bootstrap Complete",
			"Progressing False UpToDate", "Degraded False AsExpected"}},
		"the restore fails": {failRestore, []string{
			"bootstrap: Failed, the shards started with no restored items: MemcachedRestore cache-bootstrap failed: the snapshot does not exist; " +
				"ready: cache-0, cache-bootstrap Failed; cache-1, cache-bootstrap Failed",
			"Progressing False UpToDate", "Degraded False AsExpected"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster := newCluster(t, "cache", withBootstrap)
			cluster.finishRestore = c.finishRestore
			summary := cluster.summary(cluster.converge())
			for _, line := range append(c.wants, "pods created: 2", `delayed until ""`) {
				if !strings.Contains(summary, line) {
					t.Errorf("missing %q in:\n%s", line, summary)
				}
			}
		})
	}
}

// waitForBootstrap converges while a restore is running.
func (cluster *fakeCluster) waitForBootstrap() *v1alpha1.Memcached {
	cluster.Helper()
	m := cluster.converge()
	if !m.Status.Bootstrap.IsRunning() || len(cluster.becameReady) > 0 {
		cluster.Fatalf("bootstrap %+v, ready: %v", m.Status.Bootstrap, cluster.becameReady)
	}
	return m
}

func TestStatusReportsBootstrapBeforeTheFirstShardIsCreated(t *testing.T) {
	env := newEnv(t)
	env.create("cache", withBootstrap)
	before := time.Now()
	m := env.reconcile("cache")
	b := m.Status.Bootstrap
	if b == nil || b.RestoreName != "cache-bootstrap" || b.Phase != v1alpha1.TransferRunning {
		t.Fatalf("bootstrap is %+v", b)
	}
	if d := b.Deadline.Sub(before); d < 299*time.Second || d > 310*time.Second {
		t.Errorf("the deadline is in %s, want 5m", d)
	}
	if env.exists("cache-0", &appsv1.ReplicaSet{}) {
		t.Fatal("shard 0 was created before the status reported the bootstrap")
	}
	env.wantCondition(m, v1alpha1.ConditionProgressing, metav1.ConditionTrue, v1alpha1.ReasonBootstrapping, b.Deadline.UTC().Format("15:04 UTC"))
	m = env.reconcile("cache")
	var set appsv1.ReplicaSet
	env.read("cache-0", &set)
	if until := set.Spec.Template.Annotations[annotations.HoldUntil]; until != b.Deadline.UTC().Format(time.RFC3339) {
		t.Errorf("its pods are delayed until %q, want %s", until, b.Deadline)
	}
	if m.Status.Bootstrap.Deadline != b.Deadline {
		t.Errorf("the deadline moved from %s to %s", b.Deadline, m.Status.Bootstrap.Deadline)
	}
}

func TestBootstrapRestoreStartsWhenAllShardsRun(t *testing.T) {
	env := newEnv(t)
	env.create("cache", withBootstrap)
	env.converge("cache")
	start := agentwire.Start{Result: agentwire.StartCold, At: time.Now()}
	run := func(shard, ip string) *corev1.Pod {
		pod := env.runPod(shard, "a", ip)
		pod.Status.ContainerStatuses[0].State.Running = &corev1.ContainerStateRunning{}
		pod.Status.ContainerStatuses[0].Ready, pod.Status.Conditions = false, nil
		env.must(env.admin.Status().Update(env.ctx, pod))
		return pod
	}
	env.answer(run("cache-0", "10.0.0.1"), start, "1.6.45")
	late := run("cache-1", "10.0.0.2")
	m := env.converge("cache")
	if env.exists("cache-bootstrap", &v1alpha1.MemcachedRestore{}) {
		t.Error("the restore was created before the agent of cache-1 answered")
	}
	env.wantCondition(m, v1alpha1.ConditionProgressing, metav1.ConditionTrue, v1alpha1.ReasonBootstrapping, "waiting for all shards to run before filling them: cache-1; the shards become ready when the restore is done, or at ")
	if shard := m.Status.Shards[0]; shard.Message != "running; a restore fills it before it becomes ready" {
		t.Errorf("message of shard 0: %s", shard.Message)
	}

	env.answer(late, start, "1.6.45")
	m = env.converge("cache")
	var restore v1alpha1.MemcachedRestore
	env.read("cache-bootstrap", &restore)
	if !metav1.IsControlledBy(&restore, m) {
		t.Errorf("owners %v", restore.OwnerReferences)
	}
	s := restore.Spec
	if s.MemcachedRef.Name != "cache" || s.BackupRef.Name != "nightly" || *s.MaxAgeSeconds != 86400 || *s.MaxTTLSeconds != 900 ||
		*s.DeadlineSeconds != 300 || s.ExistingItems != v1alpha1.ExistingKeep || *s.RateLimit.ItemsPerSecond != 0 || *s.RateLimit.MebibytesPerSecond != 0 {
		t.Errorf("spec %+v", s)
	}
}

// Its last pods drain for a minute, and the Services select them, too.
func TestBootstrapWaitsForPodsOfDeletedMemcachedOfTheSameName(t *testing.T) {
	env := newEnv(t)
	env.create("cache", "size: 1")
	env.converge("cache")
	former := env.runPod("cache-0", "former", "10.0.0.9")
	env.must(env.admin.Delete(env.ctx, env.get("cache")))
	for _, key := range keysOf("cache", 1) { // as the garbage collector does
		o := resources.NewObject(key.Kind)
		env.read(key.Name, o)
		env.must(env.admin.Delete(env.ctx, o))
	}
	env.must(env.admin.Delete(env.ctx, handoverSecret(env)))

	env.create("cache", "{size: 1, bootstrap: {backupRef: {name: nightly}}}")
	env.converge("cache")
	pod := env.runPod("cache-0", "next", "10.0.0.1")
	pod.Status.ContainerStatuses[0].State.Running = &corev1.ContainerStateRunning{}
	env.must(env.admin.Status().Update(env.ctx, pod))
	env.answer(pod, agentwire.Start{Result: agentwire.StartCold, At: time.Now()}, "1.6.45")
	m := env.converge("cache")
	env.wantCondition(m, v1alpha1.ConditionProgressing, metav1.ConditionTrue, v1alpha1.ReasonBootstrapping, "waiting for all shards to run before filling them: cache-0;")
	if env.exists("cache-bootstrap", &v1alpha1.MemcachedRestore{}) {
		t.Fatal("the restore was created while the former pod existed")
	}
	env.removePod(former)
	if env.converge("cache"); !env.exists("cache-bootstrap", &v1alpha1.MemcachedRestore{}) {
		t.Error("no restore was created when the former pod was deleted")
	}
}

func TestStatusReportsTheProgressOfBootstrap(t *testing.T) {
	cluster := newCluster(t, "cache", withBootstrap)
	m := cluster.waitForBootstrap()
	at := m.Status.Bootstrap.Deadline.UTC().Format("15:04 UTC")
	cluster.wantCondition(m, v1alpha1.ConditionProgressing, metav1.ConditionTrue, v1alpha1.ReasonBootstrapping,
		"restored 43% of 2,000 items; the shards become ready when the restore is done, or at "+at)
	cluster.wantCondition(m, v1alpha1.ConditionDegraded, metav1.ConditionFalse, v1alpha1.ReasonAsExpected)
	if m.Status.Phase != v1alpha1.PhaseProgressing {
		t.Errorf("phase %s", m.Status.Phase)
	}
}

func TestShardsBecomeReadyAtTheDeadlineWhileTheRestoreContinues(t *testing.T) {
	cluster := newCluster(t, "cache", withBootstrap)
	cluster.waitForBootstrap()
	cluster.recorded()
	cluster.clock.Step(5 * time.Minute)
	m := cluster.converge()
	want := "the shards weren't filled before the deadline and became ready: MemcachedRestore cache-bootstrap, which continues, had restored 43% of 2,000 items"
	if b := m.Status.Bootstrap; b.Phase != v1alpha1.TransferFailed || b.Message != want || len(cluster.becameReady) != 2 {
		t.Errorf("bootstrap %+v, ready: %v", b, cluster.becameReady)
	}
	cluster.wantEvent(cluster.recorded(), "Warning "+v1alpha1.EventBootstrapFinished)
	if restores := cluster.listRestores(); len(restores) != 1 || restores[0].Status.Phase != v1alpha1.TransferRunning {
		t.Errorf("restores: %+v", restores)
	}
	for _, pod := range cluster.list() {
		if until, is := pod.Annotations[annotations.HoldUntil]; is {
			t.Errorf("pod %s is still delayed until %q", pod.Name, until)
		}
	}
}

func TestBootstrapFailsAtTheDeadlineWhenShardsDontRun(t *testing.T) {
	env := newEnv(t)
	env.create("cache", "{size: 1, bootstrap: {backupRef: {name: nightly}, deadlineSeconds: 10}}")
	env.converge("cache")
	env.skipAnHour()
	m := env.converge("cache")
	if b := m.Status.Bootstrap; b.Phase != v1alpha1.TransferFailed || b.Message != "the shards weren't filled before the deadline and became ready: they are empty, because the restore waited for cache-0" {
		t.Errorf("bootstrap %+v", b)
	}
	var set appsv1.ReplicaSet
	env.read("cache-0", &set)
	if until := set.Spec.Template.Annotations[annotations.HoldUntil]; until != "" {
		t.Errorf("its next pod would be delayed until %s", until)
	}
	if env.exists("cache-bootstrap", &v1alpha1.MemcachedRestore{}) {
		t.Error("a restore was created")
	}
}

func TestBootstrapLeavesForeignRestoreOfItsNameAlone(t *testing.T) {
	cluster := newCluster(t, "cache", withBootstrap)
	theirs := &v1alpha1.MemcachedRestore{
		ObjectMeta: metav1.ObjectMeta{Namespace: cluster.namespace, Name: "cache-bootstrap"},
		Spec:       v1alpha1.MemcachedRestoreSpec{MemcachedRef: v1alpha1.MemcachedReference{Name: "other"}, BackupRef: &v1alpha1.BackupReference{Name: "other"}},
	}
	cluster.must(cluster.admin.Create(cluster.ctx, theirs))
	m := cluster.converge()
	if b := m.Status.Bootstrap; b.Phase != v1alpha1.TransferFailed || !strings.Contains(b.Message, "the shards started empty: MemcachedRestore cache-bootstrap exists and isn't managed by this Memcached; ") || len(cluster.becameReady) != 2 {
		t.Errorf("bootstrap %+v, ready: %v", b, cluster.becameReady)
	}
	if restores := cluster.listRestores(); len(restores) != 1 || restores[0].UID != theirs.UID {
		t.Errorf("restores: %+v", restores)
	}
}

func TestPausedMemcachedIsNotFilledUntilItContinues(t *testing.T) {
	cluster := newCluster(t, "cache", "{size: 2, paused: true, bootstrap: {backupRef: {name: nightly}, deadlineSeconds: 300}}")
	if m := cluster.converge(); m.Status.Bootstrap != nil {
		t.Fatalf("the deadline is set: %+v", m.Status.Bootstrap)
	}
	cluster.change("cache", func(m *v1alpha1.Memcached) { m.Spec.Paused = false })
	cluster.waitForBootstrap()

	cluster.change("cache", func(m *v1alpha1.Memcached) { m.Spec.Paused = true })
	cluster.converge()
	cluster.finishRestore = completeRestore
	before := cluster.listRestores()[0]
	if m := cluster.converge(); m.Status.Bootstrap.Phase != v1alpha1.TransferComplete || before.Name != "cache-bootstrap" || len(cluster.becameReady) > 0 {
		t.Errorf("bootstrap %+v, ready while paused: %v", m.Status.Bootstrap, cluster.becameReady)
	}
	cluster.change("cache", func(m *v1alpha1.Memcached) { m.Spec.Paused = false })
	if cluster.converge(); len(cluster.becameReady) != 2 {
		t.Errorf("ready: %v", cluster.becameReady)
	}
}

func TestBootstrapContinuesWhenItIsRemovedFromTheSpec(t *testing.T) {
	cluster := newCluster(t, "cache", withBootstrap)
	cluster.waitForBootstrap()
	cluster.change("cache", func(m *v1alpha1.Memcached) { m.Spec.Bootstrap = nil })
	cluster.waitForBootstrap()
	cluster.finishRestore = completeRestore
	if m := cluster.converge(); m.Status.Bootstrap.Phase != v1alpha1.TransferComplete {
		t.Errorf("bootstrap %+v", m.Status.Bootstrap)
	}
}

// Users can skip the rest of a bootstrap.
func TestBootstrapStopsWhenItAndItsRestoreAreRemoved(t *testing.T) {
	cluster := newCluster(t, "cache", withBootstrap)
	cluster.waitForBootstrap()
	cluster.change("cache", func(m *v1alpha1.Memcached) { m.Spec.Bootstrap = nil })
	cluster.must(cluster.admin.Delete(cluster.ctx, &cluster.listRestores()[0]))
	if m := cluster.converge(); m.Status.Bootstrap.Phase != v1alpha1.TransferFailed || len(cluster.becameReady) != 2 || len(cluster.listRestores()) > 0 {
		t.Errorf("bootstrap %+v, ready: %v", m.Status.Bootstrap, cluster.becameReady)
	}
}

func TestBootstrapDoesNotApplyToExistingShards(t *testing.T) {
	for name, prepare := range map[string]func(cluster *fakeCluster){
		"ready shards": func(*fakeCluster) {},
		"lost shards": func(cluster *fakeCluster) {
			cluster.must(cluster.admin.DeleteAllOf(cluster.ctx, &appsv1.ReplicaSet{}, client.InNamespace(cluster.testEnv.namespace)))
		},
		"shards that were filled before": func(cluster *fakeCluster) {
			m := cluster.get("cache")
			m.Status.Bootstrap = &v1alpha1.BootstrapStatus{RestoreName: "cache-bootstrap", Phase: v1alpha1.TransferComplete, Deadline: metav1.Now()}
			m.Status.Shards = nil
			cluster.must(cluster.admin.Status().Update(cluster.ctx, m))
			cluster.must(cluster.admin.DeleteAllOf(cluster.ctx, &appsv1.ReplicaSet{}, client.InNamespace(cluster.testEnv.namespace)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := newReadyCluster(t, "cache", "size: 2")
			cluster.change("cache", func(m *v1alpha1.Memcached) {
				m.Spec.Bootstrap = &v1alpha1.Bootstrap{BackupRef: &v1alpha1.BackupReference{Name: "nightly"}}
			})
			prepare(cluster)
			if m := cluster.converge(); m.Status.Bootstrap.IsRunning() || len(cluster.listRestores()) > 0 || m.Status.ReadySize != 2 {
				t.Errorf("bootstrap %+v, %d shards are ready", m.Status.Bootstrap, m.Status.ReadySize)
			}
		})
	}
}

func TestBootstrapDoesNotApplyToShardsThatAreAddedLater(t *testing.T) {
	cluster := newCluster(t, "cache", withBootstrap)
	cluster.finishRestore = completeRestore
	cluster.converge()
	cluster.change("cache", func(m *v1alpha1.Memcached) { *m.Spec.Size = 3 })
	if m := cluster.converge(); m.Status.ReadySize != 3 || len(cluster.listRestores()) != 1 {
		t.Errorf("%s ready, restores: %+v", m.Status.Ready, cluster.listRestores())
	}
}
