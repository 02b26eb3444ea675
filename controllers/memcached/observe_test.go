package memcached

import (
	"context"
	"slices"
	"strconv"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/observation"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
)

// Its result may differ: it had other credentials and another agent image.
func TestPreflightPodOfDeletedMemcachedOfTheSameNameIsIgnored(t *testing.T) {
	env := newEnv(t)
	m := env.Create("cache", "size: 1")
	env.Converge("cache")
	template := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: env.Namespace, Labels: resources.PreflightLabels("cache")}}
	template.Spec.Containers = []corev1.Container{{Name: resources.Container, Image: "memcached"}}
	for name, uid := range map[string]types.UID{"own": m.UID, "before": "before"} {
		pod := template.DeepCopy()
		pod.Name = name
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: v1beta1.GroupVersion.String(), Kind: "Memcached", Name: "cache", UID: uid, Controller: ptr.To(true)}}
		env.Must(env.Admin.Create(env.Ctx, pod))
	}
	obs := env.observe("cache")
	if len(obs.PreflightPods) != 1 || obs.PreflightPods[0].Name != "own" {
		t.Errorf("%d preflight pods", len(obs.PreflightPods))
	}
}

// The records of the shards don't contain it, as long as it serves.
func TestPodOfADeletedReplicaSetRemainsUntilItTerminates(t *testing.T) {
	env := newEnv(t)
	env.Create("cache", "size: 1")
	env.Converge("cache")
	before := env.observe("cache").HasRemains
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "remains", Namespace: env.Namespace, Labels: resources.Labels("cache")}}
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "cache-1", UID: "deleted", Controller: ptr.To(true)}}
	pod.Spec.NodeName, pod.Spec.Containers = "node1", []corev1.Container{{Name: resources.Container, Image: "memcached"}}
	env.Must(env.Admin.Create(env.Ctx, pod))
	serves := env.observe("cache").HasRemains
	env.Must(env.Admin.Delete(env.Ctx, pod))
	terminates := env.observe("cache").HasRemains
	pod.Name, pod.ResourceVersion, pod.UID, pod.OwnerReferences[0].Name = "copy", "", "", "copy-of-cache"
	env.Must(env.Admin.Create(env.Ctx, pod))
	if others := env.observe("cache").HasRemains; before || !serves || terminates || others {
		t.Errorf("without such a pod %t, with one %t, while it terminates %t, with one of another owner %t", before, serves, terminates, others)
	}
}

// Clients use all shards, whatever the size in a spec that is rejected.
func TestShardsOfARejectedSpecAreThoseThatServe(t *testing.T) {
	for _, size := range []int32{0, 1, 3} {
		env := newEnv(t)
		env.Create("cache", "size: 2")
		env.Converge("cache")
		env.run("cache-0", "10.0.0.1")
		pod := env.run("cache-1", "10.0.0.2")
		env.Converge("cache")
		service := &corev1.Service{} // the cache doesn't contain it
		env.Read("cache-1", service)
		service.Labels = nil
		env.Must(env.Admin.Update(env.Ctx, service, client.FieldOwner("user")))
		env.Change("cache", func(m *v1beta1.Memcached) { m.Spec.Size, m.Spec.Version = &size, "1.5.0" })
		m := env.Converge("cache")
		if s := m.Status; len(s.Servers) != 2 || s.ReadyShards != 2 || resources.Listed(m) != 2 || m.Spec.Paused {
			t.Errorf("size %d: %d listed, status %+v", size, resources.Listed(m), s)
		}
		env.WantCondition(m, v1beta1.ConditionDegraded, metav1.ConditionTrue, v1beta1.ReasonVersionUnsupported)
		env.WantCondition(m, v1beta1.ConditionProgressing, metav1.ConditionFalse, v1beta1.ReasonSpecRejected)
		env.SetPod(pod, "10.0.0.2", false, "containerd://a")
		env.WantCondition(env.Converge("cache"), v1beta1.ConditionAvailable, metav1.ConditionFalse, v1beta1.ReasonShardsNotReady, "cache-1")
		env.Change("cache", func(m *v1beta1.Memcached) { m.Spec.Version = "" })
		if m = env.Converge("cache"); len(m.Status.Servers) != int(size) {
			t.Errorf("size %d, and its spec is valid: the servers %v", size, m.Status.Servers)
		}
	}
}

// An update would wait for a pod that is left from an eviction, or take it for the one that serves.
func TestPodThatTheKubeletHasFinishedIsNoPodOfItsShard(t *testing.T) {
	env := newEnv(t)
	env.Create("cache", "size: 1")
	env.Converge("cache")
	names := func() (names []string) {
		for _, pod := range env.observe("cache").Pods["cache-0"] {
			names = append(names, pod.Name)
		}
		return names
	}
	for _, name := range []string{"older", "newer"} {
		pod := env.RunPod("cache-0", name, "10.0.0.9")
		pod.Status.Phase, pod.Status.Reason, pod.Status.Conditions = corev1.PodFailed, "Evicted", nil
		env.Must(env.Admin.Status().Update(env.Ctx, pod))
	}
	if left := names(); !slices.Equal(left, []string{"cache-0-newer"}) {
		t.Errorf("without another pod, there are %q", left)
	}
	env.RunPod("cache-0", "a", "10.0.0.10")
	if all := names(); !slices.Equal(all, []string{"cache-0-a"}) {
		t.Errorf("beside one that serves, there are %q", all)
	}
	kept := env.RunPod("cache-0", "kept", "10.0.0.11")
	kept.Finalizers = []string{"example.com/audit"}
	env.Must(env.Admin.Update(env.Ctx, kept))
	kept.Status.Phase, kept.Status.Conditions = corev1.PodSucceeded, nil
	env.Must(env.Admin.Status().Update(env.Ctx, kept))
	env.Must(env.Admin.Delete(env.Ctx, kept))
	if all := names(); !slices.Equal(all, []string{"cache-0-a"}) {
		t.Errorf("with one that a finalizer keeps, there are %q", all)
	}
}

func TestObjectsOfOneKindShareTheSetOfOwnedFields(t *testing.T) {
	env := newEnv(t)
	env.Create("cache", "size: 2")
	env.Converge("cache")
	var owned [2]*metav1.FieldsV1
	for i, name := range []string{"cache-0", "cache-1"} {
		set := &appsv1.ReplicaSet{}
		env.Read(name, set)
		before := set.DeepCopy()
		env.Must(trim(set))
		owned[i] = set.ManagedFields[0].FieldsV1
		if !slices.ContainsFunc(before.ManagedFields, func(e metav1.ManagedFieldsEntry) bool { return e.FieldsV1.Equal(*owned[i]) }) {
			t.Errorf("%s has the fields of another object: %s", name, owned[i])
		}
	}
	if owned[0] != owned[1] {
		t.Error("two ReplicaSets have two copies of the same set")
	}
}

// countLists counts lists of Memcacheds.
type countLists struct {
	client.Client
	lists *int
}

// List implements client.Reader.
func (c countLists) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if _, ok := list.(*v1beta1.MemcachedList); ok {
		*c.lists++
	}
	return c.Client.List(ctx, list, options...)
}

func TestOtherMemcachedsAreReadForAnotherDefaultImageOnly(t *testing.T) {
	const former, current = "docker.io/library/memcached:1.6.38", "docker.io/library/memcached:1.6.45"
	env, lists := newEnv(t), 0
	env.reconciler.Client = countLists{env.reconciler.Client, &lists}
	env.reconciler.Options.DefaultImage = former
	for _, name := range []string{"a", "b"} {
		env.Create(name, "size: 1")
		env.Converge(name)
		env.Answer(env.RunPod(name+"-0", "x", "10.0.0."+strconv.Itoa(len(env.Agents))), agentwire.Start{Result: agentwire.StartCold, At: env.clock.Now()}, "1.6.38")
		env.Converge(name)
	}
	if lists != 0 {
		t.Errorf("in steady state the operator listed all Memcacheds %d times", lists)
	}
	env.reconciler.Options.DefaultImage = current
	b := env.Converge("b")
	env.WantCondition(b, v1beta1.ConditionProgressing, metav1.ConditionFalse, v1beta1.ReasonKeepingImage, former, current)
	if a := env.Converge("a"); a.Status.Image != current || b.Status.Image != former || lists == 0 {
		t.Errorf("a has the image %s, and b, which waits for it, %s", a.Status.Image, b.Status.Image)
	}
}

func TestTransfersOfOtherMemcachedsAreIgnored(t *testing.T) {
	env := newEnv(t)
	env.Create("cache", "{size: 1, backup: {refill: {mode: NewestBackup}}}")
	env.Converge("cache")
	env.run("cache-0", "10.0.0.1")
	store := v1beta1.SnapshotStore{PersistentVolumeClaim: &v1beta1.PersistentVolumeClaimStore{ClaimName: "store"}}
	for _, name := range []string{"cache", "sessions"} {
		of := v1beta1.MemcachedReference{Name: name}
		env.Must(env.Admin.Create(env.Ctx, &v1beta1.MemcachedBackup{ObjectMeta: metav1.ObjectMeta{Namespace: env.Namespace, Name: "of-" + name}, Spec: v1beta1.MemcachedBackupSpec{MemcachedRef: of, Store: store}}))
		env.Must(env.Admin.Create(env.Ctx, &v1beta1.MemcachedRestore{ObjectMeta: metav1.ObjectMeta{Namespace: env.Namespace, Name: "of-" + name}, Spec: v1beta1.MemcachedRestoreSpec{MemcachedRef: of, BackupRef: &v1beta1.BackupReference{Name: "b"}}}))
	}
	if obs := env.observe("cache"); len(obs.Backups) != 1 || obs.Backups[0].Name != "of-cache" || len(obs.Restores) != 1 || obs.Restores["of-cache"].APIObject == nil {
		t.Errorf("backups %v, restores %v", obs.Backups, obs.Restores)
	}
	m := env.Get("cache")
	m.Spec.Backup.Refill = v1beta1.Refill{}
	env.Must(env.Admin.Update(env.Ctx, m))
	if obs := env.observe("cache"); len(obs.Backups) != 0 {
		t.Errorf("without a refill: backups %v", obs.Backups)
	}
	m = env.Get("cache")
	m.Status.Purge = &v1beta1.PurgeStatus{Request: "Delete", Phase: v1beta1.TransferRunning, StartTime: v1beta1.Time(env.clock.Now())}
	env.Must(env.Admin.Status().Update(env.Ctx, m))
	if obs := env.observe("cache"); len(obs.Backups) != 1 {
		t.Errorf("during a purge: backups %v", obs.Backups)
	}
	m = env.Get("cache")
	m.Status.Bootstrap = &v1beta1.BootstrapStatus{RestoreName: "of-sessions", Phase: v1beta1.TransferRunning}
	env.Must(env.Admin.Status().Update(env.Ctx, m))
	if obs := env.observe("cache"); obs.Restores["of-sessions"].APIObject == nil || obs.Restores["of-sessions"].Owner != observation.Foreign {
		t.Errorf("a restore that has the name of the bootstrap's is %+v", obs.Restores["of-sessions"])
	}
}
