package controllers

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/internal/snapshotapi"
	"github.com/memcached-operator/memcached-operator/internal/snapshotjob"
)

const fromBackup = "{memcached: {name: cache}, backup: {name: nightly}}"

// backedUp makes a Memcached of that size and a backup of it that is Complete.
func (w *world) backedUp(size int) *v1alpha1.MemcachedBackup {
	w.Helper()
	w.memcached("cache", size)
	w.create("MemcachedBackup", "nightly", toClaim)
	w.settle()
	b := w.backup("nightly")
	w.wantEnd(b.Status.RunStatus, v1alpha1.RunComplete, v1alpha1.ReasonSucceeded, "")
	w.recorded()
	return b
}

func TestARestoreRunsOnceAndTellsWhatBecameOfTheItems(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.backedUp(2)
	w.create("MemcachedRestore", "again", "{memcached: {name: cache}, backup: {name: nightly}, maxAge: 6h, maxTTL: 15m, shards: [1], rateLimit: {itemsPerSecond: 10}, existingItems: Replace}")
	w.settle()
	r := w.restore("again")
	w.wantEnd(r.Status.RunStatus, v1alpha1.RunComplete, v1alpha1.ReasonSucceeded, "")
	if s := r.Status; s.Restored != 90 || s.Kept != 5 || s.Expired != 4 || s.Refused != 1 || s.Progress.Percent != 100 {
		t.Errorf("the status tells of %+v", s)
	}
	if r.Status.Snapshot == nil || r.Status.Snapshot.Path != b.Status.Snapshot.Path {
		t.Errorf("the snapshot is %+v", r.Status.Snapshot)
	}
	job := w.job(snapshotjob.Restore, r)
	action, task := taskOf(job)
	want := snapshotapi.Task{
		ID: string(r.UID), Store: snapshotapi.Store{Folder: snapshotapi.StorePath}, Path: b.Status.Snapshot.Path,
		Servers:        []string{"cache-0." + w.namespace + ".svc:11211", "cache-1." + w.namespace + ".svc:11211"},
		ItemsPerSecond: 10, BytesPerSecond: 32 << 20,
		Load: &snapshotapi.Load{Replace: true, MaxAge: 6 * time.Hour, MaxTTL: 15 * time.Minute, Shards: []int{1}},
	}
	if diff := cmp.Diff(want, task); action != snapshotapi.ActionLoad || diff != "" {
		t.Errorf("the task is to %s (-want +got):\n%s", action, diff)
	}
	events := w.recorded()
	w.wantEvent(events, v1alpha1.EventRestoreStarted)
	w.wantEvent(events, v1alpha1.EventRestoreComplete, "90 items were restored")
	if w.jobs.made["load"] != 1 || len(events) != 4 {
		t.Errorf("%d pods were made, and these events recorded: %q", w.jobs.made["load"], events)
	}
}

func TestARestoreOfASnapshotIsToldOfTheRing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.memcached("cache", 2, func(m *v1alpha1.Memcached) {
		m.Spec.Hashing = &v1alpha1.Hashing{Ring: v1alpha1.RingKetama, ServerName: "{shard}.{namespace}:1"}
	})
	w.create("MemcachedRestore", "other", "{memcached: {name: cache}, snapshot: {path: a/b/c, store: {s3: {bucket: shared, credentialsSecret: aws}}}}")
	w.settle()
	r := w.restore("other")
	w.wantEnd(r.Status.RunStatus, v1alpha1.RunComplete, v1alpha1.ReasonSucceeded, "")
	_, task := taskOf(w.job(snapshotjob.Restore, r))
	want := &snapshotapi.Load{Ring: "Ketama", RingServers: []string{"cache-0." + w.namespace + ":1", "cache-1." + w.namespace + ":1"}}
	if diff := cmp.Diff(want, task.Load); diff != "" || task.Path != "a/b/c" || task.Store.S3.Bucket != "shared" {
		t.Errorf("the task is %+v (-want +got):\n%s", task, diff)
	}
}

func TestARestoreThatCannotBeDoneIsFailedBeforeThereIsAJob(t *testing.T) {
	t.Parallel()
	resize := func(w *world, size int32, edit func(*v1alpha1.Memcached)) {
		m := &v1alpha1.Memcached{}
		w.read("cache", m)
		m.Spec.Size = &size
		if edit != nil {
			edit(m)
		}
		w.must(admin.Update(w.ctx, m))
	}
	for name, test := range map[string]struct {
		given  func(*world)
		spec   string
		reason string
		words  string
	}{
		"there is no such Memcached": {func(w *world) { w.backedUp(1) }, "{memcached: {name: none}, backup: {name: nightly}}", v1alpha1.ReasonMemcachedNotFound, "no Memcached none"},
		"the Memcached is being deleted": {func(w *world) {
			w.backedUp(1)
			resize(w, 1, func(m *v1alpha1.Memcached) { m.Finalizers = []string{"example.com/held"} })
			m := &v1alpha1.Memcached{}
			w.read("cache", m)
			w.must(admin.Delete(w.ctx, m))
		}, fromBackup, v1alpha1.ReasonMemcachedDeleting, "restore into one that stays"},
		"the Memcached has no shard": {func(w *world) { w.backedUp(1); resize(w, 0, nil) }, fromBackup, v1alpha1.ReasonNothingRuns, "no shard to fill"},
		"the Memcached does not have that shard": {func(w *world) { w.backedUp(2) }, "{memcached: {name: cache}, backup: {name: nightly}, shards: [0, 2]}",
			v1alpha1.ReasonShardNotFound, "has the shards 0 to 1"},
		"there is no such backup": {func(w *world) { w.memcached("cache", 1) }, fromBackup, v1alpha1.ReasonBackupNotFound, "no MemcachedBackup nightly"},
		"the backup failed": {func(w *world) {
			w.memcached("cache", 0)
			w.create("MemcachedBackup", "nightly", toClaim)
			w.settle()
			resize(w, 1, nil)
		}, fromBackup, v1alpha1.ReasonBackupNotComplete, "is Failed (NothingRuns)"},
		"the backup is being deleted": {func(w *world) {
			b := w.backedUp(1)
			w.must(admin.Patch(w.ctx, b, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":["example.com/held"]}}`))))
			w.must(admin.Delete(w.ctx, b))
		}, fromBackup, v1alpha1.ReasonBackupDeleting, "restore from another one"},
		"the snapshot is too old": {func(w *world) { w.backedUp(1); w.clock.Step(2 * time.Hour) }, "{memcached: {name: cache}, backup: {name: nightly}, maxAge: 1h}",
			v1alpha1.ReasonSnapshotTooOld, "spec.maxAge is 1h0m0s"},
		"the size differs and no ring is declared": {func(w *world) { w.backedUp(2); resize(w, 1, nil) }, fromBackup, v1alpha1.ReasonSizeDiffers, "spec.hashing"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			test.given(w)
			w.recorded()
			w.create("MemcachedRestore", "again", test.spec)
			w.settle()
			r := w.restore("again")
			w.wantEnd(r.Status.RunStatus, v1alpha1.RunFailed, test.reason, test.words)
			if r.Status.Job != "" || w.job(snapshotjob.Restore, r) != nil || w.jobs.made["load"] != 0 {
				t.Error("there is a Job")
			}
			w.wantEvent(w.recorded(), v1alpha1.EventRestoreFailed, test.reason)
		})
	}
}

func TestWithADeclaredRingTheSizeMayDiffer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.backedUp(3)
	m := &v1alpha1.Memcached{}
	w.read("cache", m)
	m.Spec.Size, m.Spec.Hashing = new(int32(2)), &v1alpha1.Hashing{Ring: v1alpha1.RingJump}
	w.must(admin.Update(w.ctx, m))
	m.Status.Servers = m.Status.Servers[:2]
	w.must(admin.Status().Update(w.ctx, m))
	w.create("MemcachedRestore", "again", fromBackup)
	w.settle()
	r := w.restore("again")
	w.wantEnd(r.Status.RunStatus, v1alpha1.RunComplete, v1alpha1.ReasonSucceeded, "")
	_, task := taskOf(w.job(snapshotjob.Restore, r))
	want := []string{"cache-0." + w.namespace + ".svc:11211", "cache-1." + w.namespace + ".svc:11211"}
	if !slices.Equal(task.Load.RingServers, want) || task.Load.Ring != "Jump" {
		t.Errorf("the ring is %s of %v", task.Load.Ring, task.Load.RingServers)
	}
}

func TestARestoreWaitsForItsBackup(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.memcached("cache", 1)
	w.jobs.hang = map[snapshotapi.Action]bool{snapshotapi.ActionSave: true}
	w.create("MemcachedBackup", "nightly", toClaim)
	w.create("MemcachedRestore", "again", fromBackup)
	w.create("MemcachedRestore", "hasty", "{memcached: {name: cache}, backup: {name: nightly}, deadline: 40s}")
	w.settle()
	w.wantEnd(w.restore("again").Status.RunStatus, "", v1alpha1.ReasonBackupNotComplete, "not Complete yet")
	w.clock.Step(time.Minute)
	w.settle()
	w.wantEnd(w.restore("hasty").Status.RunStatus, v1alpha1.RunFailed, v1alpha1.ReasonDeadlineExceeded, "not Complete yet")
	w.jobs.hang = nil
	w.settle()
	w.wantEnd(w.restore("again").Status.RunStatus, v1alpha1.RunComplete, v1alpha1.ReasonSucceeded, "")
}

func TestARestoreThatFailsTellsWhatItHadDone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.backedUp(1)
	w.jobs.ends = map[snapshotapi.Action][]end{snapshotapi.ActionLoad: {{exit: snapshotapi.ExitFinal, outcome: &snapshotapi.Outcome{
		Reason: v1alpha1.ReasonSnapshotCorrupt, Message: "chunk 3 has another checksum", Items: 30, TotalItems: 100, Restored: 25, Kept: 5}}}}
	w.create("MemcachedRestore", "again", fromBackup)
	w.settle()
	r := w.restore("again")
	w.wantEnd(r.Status.RunStatus, v1alpha1.RunFailed, v1alpha1.ReasonSnapshotCorrupt, "another checksum")
	if r.Status.Restored != 25 || r.Status.Kept != 5 || r.Status.Progress.Percent != 30 {
		t.Errorf("the status tells of %+v", r.Status)
	}
}

// bootstrapping has a Memcached be filled by a restore.
func bootstrapping(restore string, phase v1alpha1.RunPhase) func(*v1alpha1.Memcached) {
	return func(m *v1alpha1.Memcached) {
		m.Spec.Bootstrap = &v1alpha1.Bootstrap{Backup: &v1alpha1.BackupReference{Name: "nightly"}}
		if phase != "" {
			m.Status.Bootstrap = &v1alpha1.BootstrapStatus{Restore: restore, Phase: phase, Deadline: metav1.NewTime(time.Now().Add(time.Hour))}
		}
	}
}

const fromClaim = "{memcached: {name: fresh}, snapshot: {path: p, store: {persistentVolumeClaim: {claimName: snapshots}}}}"

func TestARestoreReachesShardsThatDoNotServeYetByServicesOfItsOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.memcached("fresh", 2, bootstrapping("fill", v1alpha1.RunRunning))
	w.jobs.hang = map[snapshotapi.Action]bool{snapshotapi.ActionLoad: true}
	w.create("MemcachedRestore", "fill", fromClaim)
	w.settle()
	r := w.restore("fill")
	_, task := taskOf(w.job(snapshotjob.Restore, r))
	for ordinal, server := range task.Servers {
		service := &corev1.Service{}
		w.read(fmt.Sprintf("restore-%s-%d", r.UID, ordinal), service)
		if want := service.Name + "." + w.namespace + ".svc:11211"; server != want {
			t.Errorf("shard %d is reached at %s, want %s", ordinal, server, want)
		}
		want := map[string]string{v1alpha1.LabelName: "memcached", v1alpha1.LabelInstance: "fresh", v1alpha1.LabelShard: fmt.Sprint(ordinal)}
		if diff := cmp.Diff(want, service.Spec.Selector); diff != "" || !service.Spec.PublishNotReadyAddresses || service.Spec.ClusterIP != corev1.ClusterIPNone {
			t.Errorf("Service %s is %+v (-want +got):\n%s", service.Name, service.Spec, diff)
		}
		if service.Labels[v1alpha1.LabelInstance] == "fresh" || service.Labels[v1alpha1.LabelManagedBy] != v1alpha1.ManagedByValue || !metav1.IsControlledBy(service, r) {
			t.Errorf("Service %s is labelled %v and owned by %v", service.Name, service.Labels, service.OwnerReferences)
		}
	}
	if len(task.Servers) != 2 {
		t.Errorf("the servers are %v", task.Servers)
	}
	w.jobs.hang = nil
	w.settle()
	w.wantEnd(w.restore("fill").Status.RunStatus, v1alpha1.RunComplete, v1alpha1.ReasonSucceeded, "")
	var services corev1.ServiceList
	w.must(admin.List(w.ctx, &services, client.InNamespace(w.namespace)))
	if len(services.Items) != 0 {
		t.Errorf("%d Services are left", len(services.Items))
	}
}

func TestARestoreWaitsWhileAnotherOneFillsTheMemcached(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := w.memcached("fresh", 1, bootstrapping("first", v1alpha1.RunRunning))
	w.create("MemcachedRestore", "second", fromClaim)
	w.settle()
	w.wantEnd(w.restore("second").Status.RunStatus, "", v1alpha1.ReasonBootstrapping, "MemcachedRestore first")
	m.Status.Bootstrap.Phase = v1alpha1.RunComplete
	w.must(admin.Status().Update(w.ctx, m))
	w.settle()
	_, task := taskOf(w.job(snapshotjob.Restore, w.restore("second")))
	if !slices.Equal(task.Servers, m.Status.Servers) {
		t.Errorf("the servers are %v", task.Servers)
	}
}

func TestTheRestoreOfAMemcachedWaitsUntilTheShardsAreHeldForIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := w.memcached("fresh", 1, bootstrapping("fill", ""))
	owned := func(u *unstructured.Unstructured) {
		u.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(m, v1alpha1.GroupVersion.WithKind("Memcached"))})
	}
	w.create("MemcachedRestore", "fill", fromClaim, owned)
	w.settle()
	w.wantEnd(w.restore("fill").Status.RunStatus, "", v1alpha1.ReasonBootstrapping, "does not hold its shards")
	// A shard that was lost is filled while the others serve, whatever the spec says.
	w.create("MemcachedRestore", "rewarm", strings.Replace(fromClaim, "{", "{shards: [0], ", 1), owned)
	w.settle()
	w.wantEnd(w.restore("rewarm").Status.RunStatus, v1alpha1.RunComplete, v1alpha1.ReasonSucceeded, "")
	bootstrapping("fill", v1alpha1.RunRunning)(m)
	w.must(admin.Status().Update(w.ctx, m))
	w.settle()
	r := w.restore("fill")
	w.wantEnd(r.Status.RunStatus, v1alpha1.RunComplete, v1alpha1.ReasonSucceeded, "")
	if _, task := taskOf(w.job(snapshotjob.Restore, r)); task.Servers[0] == m.Status.Servers[0] {
		t.Errorf("the servers are %v", task.Servers)
	}
}

func TestARestoreWhoseJobMayNotBeMadeIsToldOf(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.memcached("fresh", 1)
	w.forbid("count/jobs.batch")
	w.create("MemcachedRestore", "fill", fromClaim)
	for range 3 { // not settled: it tries again
		w.reconcile(w.restores, "fill")
	}
	w.wantEnd(w.restore("fill").Status.RunStatus, v1alpha1.RunRunning, v1alpha1.ReasonJobCannotStart, "exceeded quota")
	w.clock.Step(snapshotjob.StuckBound)
	w.settle()
	w.wantEnd(w.restore("fill").Status.RunStatus, v1alpha1.RunFailed, v1alpha1.ReasonJobCannotStart, "exceeded quota")
}

func TestARestoreWaitsForServersAlsoOnceItHasBegun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := w.memcached("fresh", 2)
	servers := m.Status.Servers
	tell := func(servers []string) {
		m.Status.Servers = servers
		w.must(admin.Status().Update(w.ctx, m))
	}
	tell(servers[:1])
	w.create("MemcachedRestore", "fill", fromClaim)
	w.settle()
	w.wantEnd(w.restore("fill").Status.RunStatus, "", v1alpha1.ReasonShardsStarting, "status.servers")
	tell(servers)
	w.reconcile(w.restores, "fill") // Running, and no Job yet
	tell(nil)
	w.settle()
	w.wantEnd(w.restore("fill").Status.RunStatus, v1alpha1.RunRunning, v1alpha1.ReasonShardsStarting, "status.servers")
	tell(servers)
	w.settle()
	w.wantEnd(w.restore("fill").Status.RunStatus, v1alpha1.RunComplete, v1alpha1.ReasonSucceeded, "")
}

func TestABackupThatDoesNotSayWhereItsSnapshotLiesIsNotRestored(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.backedUp(1)
	b.Status.Snapshot = nil
	w.must(admin.Status().Update(w.ctx, b))
	w.create("MemcachedRestore", "again", fromBackup)
	w.settle()
	w.wantEnd(w.restore("again").Status.RunStatus, v1alpha1.RunFailed, v1alpha1.ReasonBackupNotComplete, "spec.snapshot")
}
