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
	"github.com/memcached-operator/memcached-operator/controllers/fair"
	"github.com/memcached-operator/memcached-operator/controllers/transfer"
	snapshotwire "github.com/memcached-operator/memcached-operator/internal/snapshot/wire"
)

const fromBackup = "{memcachedRef: {name: cache}, backupRef: {name: nightly}}"

// backedUp creates a Memcached of that size and a complete backup of it.
func (w *world) backedUp(size int) *v1alpha1.MemcachedBackup {
	w.Helper()
	w.memcached("cache", size)
	w.create("MemcachedBackup", "nightly", toClaim)
	w.converge()
	b := w.backup("nightly")
	w.wantEnd(b.Status.TransferStatus, v1alpha1.TransferComplete, v1alpha1.ReasonSucceeded, "")
	w.recorded()
	return b
}

func TestRestoreRunsOnceAndReportsItems(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.backedUp(2)
	w.create("MemcachedRestore", "again", "{memcachedRef: {name: cache}, backupRef: {name: nightly}, maxAgeSeconds: 21600, maxTTLSeconds: 900, shards: [1], rateLimit: {itemsPerSecond: 10}, existingItems: Replace}")
	w.converge()
	r := w.restore("again")
	w.wantEnd(r.Status.TransferStatus, v1alpha1.TransferComplete, v1alpha1.ReasonSucceeded, "")
	if s := r.Status; s.Restored != 90 || s.Kept != 5 || s.Expired != 4 || s.Rejected != 1 || s.Progress.Percent != 100 {
		t.Errorf("the status is %+v", s)
	}
	if r.Status.Snapshot == nil || r.Status.Snapshot.Path != b.Status.Snapshot.Path {
		t.Errorf("the snapshot is %+v", r.Status.Snapshot)
	}
	job := w.job(transfer.Restore, r)
	action, task := taskOf(job)
	want := snapshotwire.Task{
		ID: string(r.UID), Store: snapshotwire.Store{Folder: snapshotwire.StorePath}, Path: b.Status.Snapshot.Path,
		Servers:        []string{"cache-0." + w.namespace + ".svc:11211", "cache-1." + w.namespace + ".svc:11211"},
		ItemsPerSecond: 10, BytesPerSecond: 32 << 20,
		Load: &snapshotwire.Load{Replace: true, MaxAge: 6 * time.Hour, MaxTTL: 15 * time.Minute, Shards: []int{1}},
	}
	if diff := cmp.Diff(want, task); action != snapshotwire.ActionLoad || diff != "" {
		t.Errorf("the task is to %s (-want +got):\n%s", action, diff)
	}
	events := w.recorded()
	w.wantEvent(events, v1alpha1.EventRestoreStarted)
	w.wantEvent(events, v1alpha1.EventRestoreComplete, "restored 90 items")
	if w.jobs.created["load"] != 1 || len(events) != 4 {
		t.Errorf("%d pods were created, and these events recorded: %q", w.jobs.created["load"], events)
	}
}

func TestRestoreJobGetsHashing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.memcached("cache", 2, func(m *v1alpha1.Memcached) {
		m.Spec.Hashing = &v1alpha1.Hashing{Algorithm: v1alpha1.HashKetama, ServerNameTemplate: "{shard}.{namespace}:1"}
	})
	w.create("MemcachedRestore", "other", "{memcachedRef: {name: cache}, snapshot: {path: a/b/c, store: {s3: {bucket: shared, credentialsSecretName: aws}}}}")
	w.converge()
	r := w.restore("other")
	w.wantEnd(r.Status.TransferStatus, v1alpha1.TransferComplete, v1alpha1.ReasonSucceeded, "")
	_, task := taskOf(w.job(transfer.Restore, r))
	want := &snapshotwire.Load{Ring: "Ketama", RingServers: []string{"cache-0." + w.namespace + ":1", "cache-1." + w.namespace + ":1"}}
	if diff := cmp.Diff(want, task.Load); diff != "" || task.Path != "a/b/c" || task.Store.S3.Bucket != "shared" {
		t.Errorf("the task is %+v (-want +got):\n%s", task, diff)
	}
}

func TestImpossibleRestoreFailsWithoutJob(t *testing.T) {
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
		"there is no such Memcached": {func(w *world) { w.backedUp(1) }, "{memcachedRef: {name: none}, backupRef: {name: nightly}}", v1alpha1.ReasonMemcachedNotFound, "no Memcached none"},
		"the Memcached is being deleted": {func(w *world) {
			w.backedUp(1)
			resize(w, 1, func(m *v1alpha1.Memcached) { m.Finalizers = []string{"example.com/blocked"} })
			m := &v1alpha1.Memcached{}
			w.read("cache", m)
			w.must(admin.Delete(w.ctx, m))
		}, fromBackup, v1alpha1.ReasonMemcachedDeleting, "Restore into another one"},
		"the Memcached has no shard": {func(w *world) { w.backedUp(1); resize(w, 0, nil) }, fromBackup, v1alpha1.ReasonNoShards, "no shard to fill"},
		"the Memcached does not have that shard": {func(w *world) { w.backedUp(2) }, "{memcachedRef: {name: cache}, backupRef: {name: nightly}, shards: [0, 2]}",
			v1alpha1.ReasonShardNotFound, "has the shards 0 to 1"},
		"there is no such backup": {func(w *world) { w.memcached("cache", 1) }, fromBackup, v1alpha1.ReasonBackupNotFound, "no MemcachedBackup nightly"},
		"the backup failed": {func(w *world) {
			w.memcached("cache", 0)
			w.create("MemcachedBackup", "nightly", toClaim)
			w.converge()
			resize(w, 1, nil)
		}, fromBackup, v1alpha1.ReasonBackupNotComplete, "is Failed (NoShards)"},
		"the backup is being deleted": {func(w *world) {
			b := w.backedUp(1)
			w.must(admin.Patch(w.ctx, b, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":["example.com/blocked"]}}`))))
			w.must(admin.Delete(w.ctx, b))
		}, fromBackup, v1alpha1.ReasonBackupDeleting, "Restore from another one"},
		"the snapshot is too old": {func(w *world) { w.backedUp(1); w.clock.Step(2 * time.Hour) }, "{memcachedRef: {name: cache}, backupRef: {name: nightly}, maxAgeSeconds: 3600}",
			v1alpha1.ReasonSnapshotTooOld, "spec.maxAgeSeconds is 3600"},
		"the size differs and no ring is declared": {func(w *world) { w.backedUp(2); resize(w, 1, nil) }, fromBackup, v1alpha1.ReasonSizeDiffers, "spec.hashing"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			test.given(w)
			w.recorded()
			w.create("MemcachedRestore", "again", test.spec)
			w.converge()
			r := w.restore("again")
			w.wantEnd(r.Status.TransferStatus, v1alpha1.TransferFailed, test.reason, test.words)
			if r.Status.JobName != "" || w.job(transfer.Restore, r) != nil || w.jobs.created["load"] != 0 {
				t.Error("there is a Job")
			}
			w.wantEvent(w.recorded(), v1alpha1.EventRestoreFailed, test.reason)
		})
	}
}

func TestSizeMayDifferWithDeclaredHashing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.backedUp(3)
	m := &v1alpha1.Memcached{}
	w.read("cache", m)
	m.Spec.Size, m.Spec.Hashing = new(int32(2)), &v1alpha1.Hashing{Algorithm: v1alpha1.HashJump}
	w.must(admin.Update(w.ctx, m))
	m.Status.Servers = m.Status.Servers[:2]
	w.must(admin.Status().Update(w.ctx, m))
	w.create("MemcachedRestore", "again", fromBackup)
	w.converge()
	r := w.restore("again")
	w.wantEnd(r.Status.TransferStatus, v1alpha1.TransferComplete, v1alpha1.ReasonSucceeded, "")
	_, task := taskOf(w.job(transfer.Restore, r))
	want := []string{"cache-0." + w.namespace + ".svc:11211", "cache-1." + w.namespace + ".svc:11211"}
	if !slices.Equal(task.Load.RingServers, want) || task.Load.Ring != "Jump" {
		t.Errorf("the ring is %s of %v", task.Load.Ring, task.Load.RingServers)
	}
}

func TestRestoreWaitsForBackup(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.memcached("cache", 1)
	w.jobs.hang = map[snapshotwire.Action]bool{snapshotwire.ActionSave: true}
	w.create("MemcachedBackup", "nightly", toClaim)
	w.create("MemcachedRestore", "again", fromBackup)
	w.create("MemcachedRestore", "hasty", "{memcachedRef: {name: cache}, backupRef: {name: nightly}, deadlineSeconds: 40}")
	w.converge()
	w.wantEnd(w.restore("again").Status.TransferStatus, v1alpha1.TransferPending, v1alpha1.ReasonBackupNotComplete, "waiting until MemcachedBackup nightly")
	w.clock.Step(time.Minute)
	w.converge()
	w.wantEnd(w.restore("hasty").Status.TransferStatus, v1alpha1.TransferFailed, v1alpha1.ReasonDeadlineExceeded, "waiting until MemcachedBackup nightly")
	w.jobs.hang = nil
	w.converge()
	w.wantEnd(w.restore("again").Status.TransferStatus, v1alpha1.TransferComplete, v1alpha1.ReasonSucceeded, "")
}

func TestFailedRestoreReportsItems(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.backedUp(1)
	w.jobs.ends = map[snapshotwire.Action][]end{snapshotwire.ActionLoad: {{exit: snapshotwire.ExitFinal, outcome: &snapshotwire.Outcome{
		Reason: v1alpha1.ReasonSnapshotCorrupt, Message: "chunk 3 has another checksum", Items: 30, TotalItems: 100, Restored: 25, Kept: 5}}}}
	w.create("MemcachedRestore", "again", fromBackup)
	w.converge()
	r := w.restore("again")
	w.wantEnd(r.Status.TransferStatus, v1alpha1.TransferFailed, v1alpha1.ReasonSnapshotCorrupt, "another checksum")
	if r.Status.Restored != 25 || r.Status.Kept != 5 || r.Status.Progress.Percent != 30 {
		t.Errorf("the status is %+v", r.Status)
	}
}

// bootstrapping makes a Memcached wait for a restore.
func bootstrapping(restore string, phase v1alpha1.TransferPhase) func(*v1alpha1.Memcached) {
	return func(m *v1alpha1.Memcached) {
		m.Spec.Bootstrap = &v1alpha1.Bootstrap{BackupRef: &v1alpha1.BackupReference{Name: "nightly"}}
		if phase != "" {
			m.Status.Bootstrap = &v1alpha1.BootstrapStatus{RestoreName: restore, Phase: phase, Deadline: metav1.NewTime(time.Now().Add(time.Hour))}
		}
	}
}

const fromClaim = "{memcachedRef: {name: fresh}, snapshot: {path: p, store: {persistentVolumeClaim: {claimName: snapshots}}}}"

func TestBootstrapRestoreUsesOwnServices(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.memcached("fresh", 2, bootstrapping("fill", v1alpha1.TransferRunning))
	w.jobs.hang = map[snapshotwire.Action]bool{snapshotwire.ActionLoad: true}
	w.create("MemcachedRestore", "fill", fromClaim)
	w.converge()
	r := w.restore("fill")
	_, task := taskOf(w.job(transfer.Restore, r))
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
	w.converge()
	w.wantEnd(w.restore("fill").Status.TransferStatus, v1alpha1.TransferComplete, v1alpha1.ReasonSucceeded, "")
	var services corev1.ServiceList
	w.must(admin.List(w.ctx, &services, client.InNamespace(w.namespace)))
	if len(services.Items) != 0 {
		t.Errorf("%d Services are left", len(services.Items))
	}
}

// A shard has a Service during a bootstrap.
func TestBootstrapRestoreOfManyShardsIsWrittenInBatches(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const size = 2*fair.BatchSize + 7
	w.memcached("fresh", size, bootstrapping("fill", v1alpha1.TransferRunning))
	w.create("MemcachedRestore", "fill", fromClaim)
	services := func() int {
		var all corev1.ServiceList
		w.must(admin.List(w.ctx, &all, client.InNamespace(w.namespace)))
		return len(all.Items)
	}
	reconciled := func(want int) {
		t.Helper()
		if w.reconcile(w.restores, "fill"); services() != want {
			t.Errorf("there are %d Services, want %d", services(), want)
		}
	}
	reconciled(fair.BatchSize)
	reconciled(2 * fair.BatchSize)
	if r := w.restore("fill"); r.Status.JobUID != "" {
		t.Error("the Job was created before all Services")
	}
	reconciled(size)
	if _, task := taskOf(w.job(transfer.Restore, w.restore("fill"))); len(task.Servers) != size {
		t.Errorf("the Job has %d servers", len(task.Servers))
	}
	w.converge()
	w.wantEnd(w.restore("fill").Status.TransferStatus, v1alpha1.TransferComplete, v1alpha1.ReasonSucceeded, "")
	if n := services(); n != 0 {
		t.Errorf("%d Services are left", n)
	}
}

func TestRestoreWaitsForBootstrap(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := w.memcached("fresh", 1, bootstrapping("first", v1alpha1.TransferRunning))
	w.create("MemcachedRestore", "second", fromClaim)
	w.converge()
	w.wantEnd(w.restore("second").Status.TransferStatus, v1alpha1.TransferPending, v1alpha1.ReasonBootstrapping, "MemcachedRestore first")
	m.Status.Bootstrap.Phase = v1alpha1.TransferComplete
	w.must(admin.Status().Update(w.ctx, m))
	w.converge()
	_, task := taskOf(w.job(transfer.Restore, w.restore("second")))
	if !slices.Equal(task.Servers, m.Status.Servers) {
		t.Errorf("the servers are %v", task.Servers)
	}
}

func TestBootstrapRestoreWaitsForMemcached(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := w.memcached("fresh", 1, bootstrapping("fill", ""))
	owned := func(u *unstructured.Unstructured) {
		u.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(m, v1alpha1.GroupVersion.WithKind("Memcached"))})
	}
	w.create("MemcachedRestore", "fill", fromClaim, owned)
	w.converge()
	w.wantEnd(w.restore("fill").Status.TransferStatus, v1alpha1.TransferPending, v1alpha1.ReasonBootstrapping, "keeps its shards from serving")
	// A shard that was lost is filled while the others serve, whatever the spec says.
	w.create("MemcachedRestore", "refill", strings.Replace(fromClaim, "{", "{shards: [0], ", 1), owned)
	w.converge()
	w.wantEnd(w.restore("refill").Status.TransferStatus, v1alpha1.TransferComplete, v1alpha1.ReasonSucceeded, "")
	bootstrapping("fill", v1alpha1.TransferRunning)(m)
	w.must(admin.Status().Update(w.ctx, m))
	w.converge()
	r := w.restore("fill")
	w.wantEnd(r.Status.TransferStatus, v1alpha1.TransferComplete, v1alpha1.ReasonSucceeded, "")
	if _, task := taskOf(w.job(transfer.Restore, r)); task.Servers[0] == m.Status.Servers[0] {
		t.Errorf("the servers are %v", task.Servers)
	}
}

func TestRejectedJobIsReportedAndFailsRestore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.memcached("fresh", 1)
	w.forbid("count/jobs.batch")
	w.create("MemcachedRestore", "fill", fromClaim)
	for range 3 { // it never converges, as it retries
		w.reconcile(w.restores, "fill")
	}
	w.wantEnd(w.restore("fill").Status.TransferStatus, v1alpha1.TransferRunning, v1alpha1.ReasonJobCannotStart, "exceeded quota")
	w.clock.Step(transfer.StuckTimeout)
	w.converge()
	w.wantEnd(w.restore("fill").Status.TransferStatus, v1alpha1.TransferFailed, v1alpha1.ReasonJobCannotStart, "exceeded quota")
}

func TestRunningRestoreWithoutJobWaitsForServers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := w.memcached("fresh", 2)
	servers := m.Status.Servers
	setServers := func(servers []string) {
		m.Status.Servers = servers
		w.must(admin.Status().Update(w.ctx, m))
	}
	setServers(servers[:1])
	w.create("MemcachedRestore", "fill", fromClaim)
	w.converge()
	w.wantEnd(w.restore("fill").Status.TransferStatus, v1alpha1.TransferPending, v1alpha1.ReasonShardsStarting, "status.servers")
	setServers(servers)
	w.killAfter(1)
	w.reconcile(w.restores, "fill") // Running, and no Job yet
	setServers(nil)
	w.converge()
	w.wantEnd(w.restore("fill").Status.TransferStatus, v1alpha1.TransferRunning, v1alpha1.ReasonShardsStarting, "status.servers")
	setServers(servers)
	w.converge()
	w.wantEnd(w.restore("fill").Status.TransferStatus, v1alpha1.TransferComplete, v1alpha1.ReasonSucceeded, "")
}

func TestBackupWithoutSnapshotIsNotRestored(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.backedUp(1)
	b.Status.Snapshot = nil
	w.must(admin.Status().Update(w.ctx, b))
	w.create("MemcachedRestore", "again", fromBackup)
	w.converge()
	w.wantEnd(w.restore("again").Status.TransferStatus, v1alpha1.TransferFailed, v1alpha1.ReasonBackupNotComplete, "spec.snapshot")
}

// replacing returns a status of an update that replaces a shard.
func (w *world) replacing(m *v1alpha1.Memcached, gate v1alpha1.Gate) {
	w.Helper()
	m.Status.Update = &v1alpha1.UpdateStatus{Revision: "r", Shard: "fresh-1", Method: v1alpha1.UpdateReplace, Gate: gate, Since: metav1.Now()}
	w.must(admin.Status().Update(w.ctx, m))
}

func TestRestoreWaitsWhileShardIsReplaced(t *testing.T) {
	t.Parallel()
	for gate, waits := range map[v1alpha1.Gate]bool{
		"": true, v1alpha1.GateShardInTransition: true, v1alpha1.GateRestoreRunning: true, v1alpha1.GateEmptyStartNotAnnounced: true,
		v1alpha1.GateOutsideMaintenanceWindow: false, v1alpha1.GatePaused: false, v1alpha1.GateUpdateFailed: false,
	} {
		t.Run("gate "+string(gate), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			m := w.memcached("fresh", 2)
			w.replacing(m, gate)
			w.create("MemcachedRestore", "fill", fromClaim)
			w.converge()
			if waits {
				w.wantEnd(w.restore("fill").Status.TransferStatus, v1alpha1.TransferPending, v1alpha1.ReasonShardReplaced, "shard fresh-1")
				m.Status.Update = nil
				w.must(admin.Status().Update(w.ctx, m))
				w.converge()
			}
			w.wantEnd(w.restore("fill").Status.TransferStatus, v1alpha1.TransferComplete, v1alpha1.ReasonSucceeded, "")
		})
	}
}

// An update that is announced goes first: it waits for restores that are Running, and this
// one isn't any more.
func TestRunningRestoreWithoutJobWithdrawsForReplacement(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := w.memcached("fresh", 2)
	w.create("MemcachedRestore", "fill", fromClaim)
	w.killAfter(1)
	w.reconcile(w.restores, "fill") // Running, and no Job yet
	if r := w.restore("fill"); !r.IsActive(w.clock.Now()) {
		t.Fatalf("the restore is %+v", r.Status)
	}
	w.replacing(m, v1alpha1.GateRestoreRunning)
	w.converge()
	r := w.restore("fill")
	w.wantEnd(r.Status.TransferStatus, v1alpha1.TransferPending, v1alpha1.ReasonShardReplaced, "")
	if r.IsActive(w.clock.Now()) || r.Status.JobName != "" || r.Status.StartTime != nil || w.job(transfer.Restore, r) != nil {
		t.Errorf("the restore is %+v", r.Status)
	}
	m.Status.Update = nil
	w.must(admin.Status().Update(w.ctx, m))
	w.converge()
	w.wantEnd(w.restore("fill").Status.TransferStatus, v1alpha1.TransferComplete, v1alpha1.ReasonSucceeded, "")
	if w.jobs.created["load"] != 1 {
		t.Errorf("pods %v", w.jobs.created)
	}
}

func TestRestoresIntoCommonShardsRunOneAfterTheOther(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.memcached("fresh", 3)
	w.jobs.hang = map[snapshotwire.Action]bool{snapshotwire.ActionLoad: true}
	for name, shards := range map[string]string{"first": "0, 1", "disjoint": "2"} {
		w.create("MemcachedRestore", name, strings.Replace(fromClaim, "{", "{shards: ["+shards+"], ", 1))
	}
	w.converge()
	w.create("MemcachedRestore", "second", strings.Replace(fromClaim, "{", "{shards: [1], ", 1))
	w.create("MemcachedRestore", "third", fromClaim)
	w.converge()
	for name, reason := range map[string]string{"first": v1alpha1.ReasonCopying, "disjoint": v1alpha1.ReasonCopying,
		"second": v1alpha1.ReasonRestoreRunning, "third": v1alpha1.ReasonRestoreRunning} {
		if s := w.restore(name).Status; s.Reason != reason {
			t.Errorf("%s is %s (%s): %s", name, s.Phase, s.Reason, s.Message)
		}
	}
	w.jobs.hang = nil
	w.converge()
	for _, name := range []string{"first", "disjoint", "second", "third"} {
		w.wantEnd(w.restore(name).Status.TransferStatus, v1alpha1.TransferComplete, v1alpha1.ReasonSucceeded, "")
	}
}

// Two restores that say Running at once, as by caches that lag, both withdraw, and the older runs first.
func TestRestoresThatStartTogetherRunOneAfterAnother(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.memcached("fresh", 1)
	names := []string{"a", "b"}
	for _, name := range names {
		w.create("MemcachedRestore", name, fromClaim)
		r := w.restore(name)
		now := metav1.NewTime(w.clock.Now())
		r.Status.Phase, r.Status.Reason, r.Status.StartTime, r.Status.JobName = v1alpha1.TransferRunning, v1alpha1.ReasonStarting, &now, transfer.Name(transfer.Restore, r.UID)
		r.Status.Conditions = []metav1.Condition{}
		w.must(admin.Status().Update(w.ctx, r))
	}
	w.jobs.hang = map[snapshotwire.Action]bool{snapshotwire.ActionLoad: true}
	w.converge()
	running := 0
	for _, name := range names {
		if w.job(transfer.Restore, w.restore(name)) != nil {
			running++
		}
	}
	if running != 1 {
		t.Errorf("%d of two run at once", running)
	}
	w.jobs.hang = nil
	w.converge()
	for _, name := range names {
		w.wantEnd(w.restore(name).Status.TransferStatus, v1alpha1.TransferComplete, v1alpha1.ReasonSucceeded, "")
	}
}

func TestServiceOfAnotherOwnerIsNotUsed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.memcached("fresh", 1, bootstrapping("fill", v1alpha1.TransferRunning))
	w.create("MemcachedRestore", "fill", fromClaim)
	name := transfer.Name(transfer.Restore, w.restore("fill").UID) + "-0"
	w.must(admin.Create(w.ctx, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name},
		Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "elsewhere.example"}}))
	for range 3 {
		w.reconcile(w.restores, "fill")
	}
	r := w.restore("fill")
	w.wantEnd(r.Status.TransferStatus, v1alpha1.TransferRunning, v1alpha1.ReasonJobCannotStart, "belongs to another object")
	if w.job(transfer.Restore, r) != nil {
		t.Error("there is a Job")
	}
	w.must(admin.Delete(w.ctx, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}))
	w.clock.Step(transfer.RejectionRecheck)
	w.converge()
	w.wantEnd(w.restore("fill").Status.TransferStatus, v1alpha1.TransferComplete, v1alpha1.ReasonSucceeded, "")
}
