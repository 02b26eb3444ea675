package controllers

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/internal/snapshotapi"
	"github.com/memcached-operator/memcached-operator/internal/snapshotjob"
)

const toClaim = "{memcached: {name: cache}, store: {persistentVolumeClaim: {claimName: snapshots}}}"

func TestABackupRunsOnceAndTellsWhatItWrote(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.memcached("cache", 2)
	w.create("MemcachedBackup", "nightly", toClaim)
	w.settle()
	b := w.backup("nightly")
	w.wantEnd(b.Status.RunStatus, v1alpha1.RunComplete, v1alpha1.ReasonSucceeded, "")
	path := fmt.Sprintf("%s/cache/nightly-%s", w.namespace, b.UID[:8])
	want := &v1alpha1.SnapshotStatus{Path: path, TakenAt: b.Status.Snapshot.TakenAt, Shards: 2, Items: 100, Bytes: 5000, StoredBytes: 3000, FormatVersion: 1}
	if diff := cmp.Diff(want, b.Status.Snapshot); diff != "" {
		t.Errorf("the snapshot (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(&v1alpha1.RunProgress{Items: 100, TotalItems: 100, Bytes: 5000, Percent: 100, ItemsPerSecond: 50}, b.Status.Progress); diff != "" {
		t.Errorf("the progress (-want +got):\n%s", diff)
	}
	job := w.job(snapshotjob.Backup, b)
	if job == nil || job.Spec.TTLSecondsAfterFinished == nil || *job.Spec.TTLSecondsAfterFinished != 600 {
		t.Errorf("the Job is to expire ten minutes after its result stands: %+v", job)
	}
	if string(job.UID) != b.Status.JobUID || job.Name != b.Status.Job {
		t.Errorf("the status tells of Job %s with the UID %s", b.Status.Job, b.Status.JobUID)
	}
	events := w.recorded()
	w.wantEvent(events, v1alpha1.EventBackupStarted)
	w.wantEvent(events, v1alpha1.EventBackupComplete, "100 items of 2 shards", path)
	w.wantEvent(events, v1alpha1.EventBackupComplete, "backup nightly")
	if w.jobs.made["save"] != 1 || len(events) != 4 {
		t.Errorf("%d pods were made, and these events recorded: %q", w.jobs.made["save"], events)
	}
}

func TestTheStatusSaysRunningBeforeThereIsAJob(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.memcached("cache", 1)
	w.create("MemcachedBackup", "nightly", toClaim)
	w.lives.Store(1) // one write, and the operator is killed
	w.reconcile(w.backups, "nightly")
	b := w.backup("nightly")
	if b.Status.Phase != v1alpha1.RunRunning || b.Status.StartTime == nil || b.Status.Job != snapshotjob.Name(snapshotjob.Backup, b.UID) {
		t.Errorf("the status is %+v", b.Status)
	}
	if job := w.job(snapshotjob.Backup, b); job != nil {
		t.Errorf("there is a Job: %s", job.Name)
	}
	if w.settle(); w.backup("nightly").Status.Phase != v1alpha1.RunComplete {
		t.Error("the next operator does not go on with it")
	}
}

func TestWhatCannotBeDoneIsFailedBeforeThereIsAJob(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		given  func(*world)
		reason string
		words  string
	}{
		"there is no such Memcached": {func(*world) {}, v1alpha1.ReasonMemcachedNotFound, "no Memcached cache in this namespace"},
		"the Memcached has no shard": {func(w *world) { w.memcached("cache", 0) }, v1alpha1.ReasonNothingRuns, "no shard to copy"},
		"the Memcached is being deleted and nothing runs": {func(w *world) {
			m := w.memcached("cache", 2, func(m *v1alpha1.Memcached) { m.Finalizers = []string{"example.com/held"} })
			m.Status.Servers = nil
			w.must(admin.Status().Update(w.ctx, m))
			w.must(admin.Delete(w.ctx, m))
		}, v1alpha1.ReasonMemcachedDeleting, "is being deleted"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			test.given(w)
			w.create("MemcachedBackup", "nightly", toClaim)
			w.settle()
			b := w.backup("nightly")
			w.wantEnd(b.Status.RunStatus, v1alpha1.RunFailed, test.reason, test.words)
			if b.Status.Job != "" || w.job(snapshotjob.Backup, b) != nil {
				t.Error("there is a Job")
			}
			w.wantEvent(w.recorded(), v1alpha1.EventBackupFailed, test.reason)
		})
	}
}

func TestTheBackupOfAMemcachedThatIsBeingDeletedAndServesRuns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := w.memcached("cache", 2, func(m *v1alpha1.Memcached) { m.Finalizers = []string{v1alpha1.FinalizerBackup} })
	w.must(admin.Delete(w.ctx, m))
	w.create("MemcachedBackup", "last", toClaim)
	w.settle()
	w.wantEnd(w.backup("last").Status.RunStatus, v1alpha1.RunComplete, v1alpha1.ReasonSucceeded, "")
}

func TestABackupWaitsForServersAndNotForever(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := w.memcached("cache", 2)
	servers := m.Status.Servers
	m.Status.Servers = servers[:1]
	w.must(admin.Status().Update(w.ctx, m))
	w.create("MemcachedBackup", "patient", toClaim)
	w.create("MemcachedBackup", "hasty", "{memcached: {name: cache}, deadline: 30s, store: {persistentVolumeClaim: {claimName: snapshots}}}")
	w.settle()
	b := w.backup("patient")
	w.wantEnd(b.Status.RunStatus, "", v1alpha1.ReasonShardsStarting, "status.servers")
	if result := w.reconcile(w.backups, "hasty"); result.RequeueAfter <= 0 || result.RequeueAfter > 30*time.Second {
		t.Errorf("the hasty one is looked at again in %s", result.RequeueAfter)
	}
	w.clock.Step(time.Minute)
	w.settle()
	w.wantEnd(w.backup("hasty").Status.RunStatus, v1alpha1.RunFailed, v1alpha1.ReasonDeadlineExceeded, "status.servers")
	m.Status.Servers = servers
	w.must(admin.Status().Update(w.ctx, m))
	w.settle()
	w.wantEnd(w.backup("patient").Status.RunStatus, v1alpha1.RunComplete, v1alpha1.ReasonSucceeded, "")
}

func TestABackupWaitsForABootstrap(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := w.memcached("cache", 1, func(m *v1alpha1.Memcached) {
		m.Status.Bootstrap = &v1alpha1.BootstrapStatus{Restore: "first", Phase: v1alpha1.RunRunning, Deadline: metav1.Now()}
	})
	w.create("MemcachedBackup", "nightly", toClaim)
	w.settle()
	w.wantEnd(w.backup("nightly").Status.RunStatus, "", v1alpha1.ReasonBootstrapping, "being filled")
	m.Status.Bootstrap.Phase = v1alpha1.RunComplete
	w.must(admin.Status().Update(w.ctx, m))
	w.settle()
	w.wantEnd(w.backup("nightly").Status.RunStatus, v1alpha1.RunComplete, v1alpha1.ReasonSucceeded, "")
}

func TestHowAJobsPodsEndIsToldByTheStatus(t *testing.T) {
	t.Parallel()
	unreachable := failed(snapshotapi.ExitFailed, v1alpha1.ReasonShardUnreachable, "shard 1 does not answer")
	for name, test := range map[string]struct {
		ends   []end
		phase  v1alpha1.RunPhase
		reason string
		words  string
		pods   int
	}{
		"another try cures it":             {[]end{unreachable, {outcome: &snapshotapi.Outcome{Reason: v1alpha1.ReasonSucceeded}}}, v1alpha1.RunComplete, v1alpha1.ReasonSucceeded, "", 2},
		"no try cures it":                  {[]end{unreachable}, v1alpha1.RunFailed, v1alpha1.ReasonShardUnreachable, "shard 1 does not answer", 4},
		"the last try's reason counts":     {[]end{unreachable, unreachable, unreachable, failed(1, v1alpha1.ReasonStoreFull, "full")}, v1alpha1.RunFailed, v1alpha1.ReasonStoreFull, "full", 4},
		"another try would end the same":   {[]end{failed(snapshotapi.ExitFinal, v1alpha1.ReasonDumpForbidden, "take -X away")}, v1alpha1.RunFailed, v1alpha1.ReasonDumpForbidden, "take -X away", 1},
		"out of memory":                    {[]end{{exit: 137, reason: "OOMKilled"}}, v1alpha1.RunFailed, v1alpha1.ReasonJobFailed, "more memory than its limit", 4},
		"a crash":                          {[]end{{exit: 2, reason: "Error"}}, v1alpha1.RunFailed, v1alpha1.ReasonJobFailed, "exit code 2", 4},
		"success that says not of what":    {[]end{{mute: true, outcome: &snapshotapi.Outcome{Reason: v1alpha1.ReasonSucceeded}}}, v1alpha1.RunFailed, v1alpha1.ReasonJobFailed, "did not say what it wrote", 1},
		"success without a word":           {[]end{{}}, v1alpha1.RunFailed, v1alpha1.ReasonJobFailed, "could read the result", 1},
		"a failure that says it succeeded": {[]end{{outcome: &snapshotapi.Outcome{Reason: v1alpha1.ReasonStoreFailed, Message: "no"}}}, v1alpha1.RunFailed, v1alpha1.ReasonStoreFailed, "no", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.memcached("cache", 2)
			w.jobs.ends = map[snapshotapi.Action][]end{snapshotapi.ActionSave: test.ends}
			w.create("MemcachedBackup", "nightly", toClaim)
			w.settle()
			b := w.backup("nightly")
			w.wantEnd(b.Status.RunStatus, test.phase, test.reason, test.words)
			if got := w.jobs.made["save"]; got != test.pods {
				t.Errorf("%d pods were made, want %d", got, test.pods)
			}
			if (b.Status.Snapshot != nil) != (test.phase == v1alpha1.RunComplete) {
				t.Errorf("the snapshot is %+v", b.Status.Snapshot)
			}
			if job := w.job(snapshotjob.Backup, b); job == nil || job.Spec.TTLSecondsAfterFinished == nil {
				t.Error("the Job is not to expire")
			}
		})
	}
}

func TestAJobThatWasSeenAndIsGoneIsNotMadeAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.memcached("cache", 1)
	w.jobs.hang = map[snapshotapi.Action]bool{snapshotapi.ActionSave: true}
	w.create("MemcachedBackup", "nightly", toClaim)
	w.settle()
	b := w.backup("nightly")
	if b.Status.JobUID == "" {
		t.Fatal("the Job is not noted")
	}
	w.must(admin.Delete(w.ctx, w.job(snapshotjob.Backup, b)))
	w.settle()
	w.wantEnd(w.backup("nightly").Status.RunStatus, v1alpha1.RunFailed, v1alpha1.ReasonJobDeleted, "was deleted before it ended")
	if w.job(snapshotjob.Backup, b) != nil || w.jobs.made["save"] != 1 {
		t.Error("it runs again")
	}
}

func TestAJobOfAnotherObjectIsLeftAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.memcached("cache", 0)
	w.create("MemcachedBackup", "nightly", toClaim)
	b := w.backup("nightly")
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: snapshotjob.Name(snapshotjob.Backup, b.UID)}}
	job.Spec.Template.Spec = corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "c", Image: "i"}}}
	w.must(admin.Create(w.ctx, job))
	m := &v1alpha1.Memcached{}
	w.read("cache", m)
	m.Spec.Size = new(int32(1))
	w.must(admin.Update(w.ctx, m))
	m.Status.Servers = []string{"cache-0." + w.namespace + ".svc:11211"}
	w.must(admin.Status().Update(w.ctx, m))
	w.settle()
	w.wantEnd(w.backup("nightly").Status.RunStatus, v1alpha1.RunFailed, v1alpha1.ReasonJobCannotStart, job.Name)
	if again := w.job(snapshotjob.Backup, b); again == nil || again.ResourceVersion != job.ResourceVersion {
		t.Error("the Job of somebody else was changed")
	}
}

func TestAPodThatCannotStartIsToldOfAndGivenUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.memcached("cache", 1)
	w.jobs.stuck = &corev1.ContainerStateWaiting{Reason: "CreateContainerConfigError", Message: `secret "minio" not found`}
	w.create("MemcachedBackup", "nightly", toClaim)
	w.settle()
	b := w.backup("nightly")
	w.wantEnd(b.Status.RunStatus, v1alpha1.RunRunning, v1alpha1.ReasonJobCannotStart, `secret "minio" not found`)
	w.clock.Step(snapshotjob.StuckBound)
	w.settle()
	w.wantEnd(w.backup("nightly").Status.RunStatus, v1alpha1.RunFailed, v1alpha1.ReasonJobCannotStart, `secret "minio" not found`)
	if w.job(snapshotjob.Backup, b) != nil {
		t.Error("the Job is still there, and would begin after all")
	}
}

func TestAPodThatStartsInTheEndIsNotGivenUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.memcached("cache", 1)
	w.jobs.stuck = &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "not found"}
	w.create("MemcachedBackup", "nightly", toClaim)
	w.settle()
	w.jobs.stuck = nil
	w.settle()
	w.wantEnd(w.backup("nightly").Status.RunStatus, v1alpha1.RunComplete, v1alpha1.ReasonSucceeded, "")
}

func TestABackupWhosePodIsLostGoesOnWithTheNext(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.memcached("cache", 1)
	w.jobs.hang = map[snapshotapi.Action]bool{snapshotapi.ActionSave: true}
	w.create("MemcachedBackup", "nightly", toClaim)
	w.settle()
	b := w.backup("nightly")
	w.clock.Step(time.Hour)
	for _, pod := range w.jobs.pods(w.job(snapshotjob.Backup, b)) { // as with its node, which does not count as a failure
		w.must(admin.Delete(w.ctx, &pod, client.GracePeriodSeconds(0)))
	}
	w.reconcile(w.backups, "nightly")
	if job := w.job(snapshotjob.Backup, b); job == nil || job.DeletionTimestamp != nil {
		t.Fatal("the Job is given up")
	}
	w.clock.SetTime(time.Now()) // the next pod is made by the API server's clock
	w.jobs.hang = nil
	w.settle()
	w.wantEnd(w.backup("nightly").Status.RunStatus, v1alpha1.RunComplete, v1alpha1.ReasonSucceeded, "")
}

func TestABackupThatTakesTooLongFailsAtItsDeadline(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.memcached("cache", 1)
	w.jobs.hang = map[snapshotapi.Action]bool{snapshotapi.ActionSave: true}
	w.create("MemcachedBackup", "nightly", "{memcached: {name: cache}, deadline: 1h, store: {persistentVolumeClaim: {claimName: snapshots}}}")
	w.settle()
	w.clock.Step(2 * time.Hour)
	w.settle()
	w.wantEnd(w.backup("nightly").Status.RunStatus, v1alpha1.RunFailed, v1alpha1.ReasonDeadlineExceeded, "deadline of 1h0m0s")
}

func TestTheStatusTellsHowFarABackupIs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.memcached("cache", 1)
	w.jobs.hang = map[snapshotapi.Action]bool{snapshotapi.ActionSave: true}
	w.create("MemcachedBackup", "nightly", toClaim)
	w.settle()
	b := w.backup("nightly")
	w.wantEnd(b.Status.RunStatus, v1alpha1.RunRunning, v1alpha1.ReasonCopying, "at work")
	if p := b.Status.Progress; p == nil || *p != (v1alpha1.RunProgress{}) {
		t.Errorf("a pod that does not answer has progress %+v", p)
	}
	w.jobs.progress["10.0.0.1"] = snapshotapi.Progress{TaskID: "another", Items: 7, TotalItems: 9}
	w.settle()
	if p := w.backup("nightly").Status.Progress; p.Items != 0 {
		t.Errorf("the progress of another task is told: %+v", p)
	}
	w.jobs.progress["10.0.0.1"] = snapshotapi.Progress{TaskID: string(b.UID), Items: 50, TotalItems: 200, Bytes: 10, ItemsPerSecond: 5}
	w.settle()
	want := &v1alpha1.RunProgress{Items: 50, TotalItems: 200, Bytes: 10, Percent: 25, ItemsPerSecond: 5}
	if diff := cmp.Diff(want, w.backup("nightly").Status.Progress); diff != "" {
		t.Errorf("the progress (-want +got):\n%s", diff)
	}
	before := w.writes.Load()
	if result := w.reconcile(w.backups, "nightly"); w.writes.Load() != before || result.RequeueAfter != 5*time.Second {
		t.Errorf("without a change there are %d writes, and it is looked at again in %s", w.writes.Load()-before, result.RequeueAfter)
	}
	w.jobs.hang = nil
	w.settle()
	w.wantEnd(w.backup("nightly").Status.RunStatus, v1alpha1.RunComplete, v1alpha1.ReasonSucceeded, "")
}

func TestAJobThatMayNotBeMadeIsToldOf(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.memcached("cache", 1)
	w.forbid("count/jobs.batch")
	w.create("MemcachedBackup", "nightly", toClaim)
	for range 3 { // not settled: it tries again
		if result := w.reconcile(w.backups, "nightly"); result.RequeueAfter != 30*time.Second {
			t.Errorf("it tries again in %s", result.RequeueAfter)
		}
	}
	w.wantEnd(w.backup("nightly").Status.RunStatus, v1alpha1.RunRunning, v1alpha1.ReasonJobCannotStart, "exceeded quota")
	w.clock.Step(snapshotjob.StuckBound)
	w.settle()
	w.wantEnd(w.backup("nightly").Status.RunStatus, v1alpha1.RunFailed, v1alpha1.ReasonJobCannotStart, "exceeded quota")
}

// forbid has a quota allow none of something, and returns what ends it.
func (w *world) forbid(what corev1.ResourceName) func() {
	w.Helper()
	none := corev1.ResourceList{what: resource.MustParse("0")}
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "none"}, Spec: corev1.ResourceQuotaSpec{Hard: none}}
	w.must(admin.Create(w.ctx, quota))
	quota.Status = corev1.ResourceQuotaStatus{Hard: none, Used: none}
	w.must(admin.Status().Update(w.ctx, quota))
	return func() {
		w.Helper()
		w.must(admin.Delete(w.ctx, quota))
	}
}

// TestABackupWhoseOperatorWasAwaySinceItBegan has the operator be killed before it made
// the Job, and find things changed.
func TestABackupWhoseOperatorWasAwaySinceItBegan(t *testing.T) {
	t.Parallel()
	begun := func(t *testing.T) (*world, *v1alpha1.Memcached) {
		w := newWorld(t)
		m := w.memcached("cache", 2)
		w.create("MemcachedBackup", "nightly", toClaim)
		w.lives.Store(1)
		w.reconcile(w.backups, "nightly")
		if s := w.backup("nightly").Status; s.Phase != v1alpha1.RunRunning || s.JobUID != "" {
			t.Fatalf("it is %+v", s)
		}
		return w, m
	}
	t.Run("fails when the Memcached is gone", func(t *testing.T) {
		t.Parallel()
		w, m := begun(t)
		w.must(admin.Delete(w.ctx, m))
		w.settle()
		w.wantEnd(w.backup("nightly").Status.RunStatus, v1alpha1.RunFailed, v1alpha1.ReasonMemcachedNotFound, "")
		if w.jobs.made["save"] != 0 {
			t.Error("a pod was made")
		}
	})
	t.Run("waits for servers", func(t *testing.T) {
		t.Parallel()
		w, m := begun(t)
		servers := m.Status.Servers
		m.Status.Servers = nil
		w.must(admin.Status().Update(w.ctx, m))
		w.settle()
		w.wantEnd(w.backup("nightly").Status.RunStatus, v1alpha1.RunRunning, v1alpha1.ReasonShardsStarting, "status.servers")
		m.Status.Servers = servers
		w.must(admin.Status().Update(w.ctx, m))
		w.settle()
		w.wantEnd(w.backup("nightly").Status.RunStatus, v1alpha1.RunComplete, v1alpha1.ReasonSucceeded, "")
	})
	t.Run("does not wait beyond its deadline", func(t *testing.T) {
		t.Parallel()
		w, m := begun(t)
		m.Status.Servers = nil
		w.must(admin.Status().Update(w.ctx, m))
		w.clock.Step(7 * time.Hour)
		w.settle()
		w.wantEnd(w.backup("nightly").Status.RunStatus, v1alpha1.RunFailed, v1alpha1.ReasonDeadlineExceeded, "status.servers")
	})
}
