package controllers

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/controllers/transfer"
	snapshotwire "github.com/memcached-operator/memcached-operator/internal/snapshot/wire"
)

const toClaim = "{memcachedRef: {name: cache}, store: {persistentVolumeClaim: {claimName: snapshots}}}"

func TestBackupRunsOnceAndReportsSnapshot(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.memcached("cache", 2)
	w.create("MemcachedBackup", "nightly", toClaim)
	w.converge()
	b := w.backup("nightly")
	w.wantEnd(b.Status.TransferStatus, v1alpha1.TransferComplete, v1alpha1.ReasonSucceeded, "")
	path := fmt.Sprintf("%s/cache/nightly-%s", w.namespace, b.UID[:8])
	want := &v1alpha1.SnapshotStatus{Path: path, TakenAt: b.Status.Snapshot.TakenAt, Shards: 2, Items: 100, Bytes: 5000, StoredBytes: 3000, FormatVersion: 1}
	if diff := cmp.Diff(want, b.Status.Snapshot); diff != "" {
		t.Errorf("the snapshot (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(&v1alpha1.TransferProgress{Items: 100, TotalItems: 100, Bytes: 5000, Percent: 100, ItemsPerSecond: 50}, b.Status.Progress); diff != "" {
		t.Errorf("the progress (-want +got):\n%s", diff)
	}
	job := w.job(transfer.Backup, b)
	if job == nil || job.Spec.TTLSecondsAfterFinished == nil || *job.Spec.TTLSecondsAfterFinished != 600 {
		t.Errorf("the Job does not expire ten minutes after its result: %+v", job)
	}
	if string(job.UID) != b.Status.JobUID || job.Name != b.Status.JobName {
		t.Errorf("the status reports Job %s with the UID %s", b.Status.JobName, b.Status.JobUID)
	}
	events := w.recorded()
	w.wantEvent(events, v1alpha1.EventBackupStarted)
	w.wantEvent(events, v1alpha1.EventBackupComplete, "100 items of 2 shards", path)
	w.wantEvent(events, v1alpha1.EventBackupComplete, "backup nightly")
	if w.jobs.created["save"] != 1 || len(events) != 4 {
		t.Errorf("%d pods were created, and these events recorded: %q", w.jobs.created["save"], events)
	}
}

func TestDecisionsAreLoggedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var lines []string
	w.ctx = log.IntoContext(w.ctx, funcr.NewJSON(func(line string) { lines = append(lines, line) }, funcr.Options{}))
	w.memcached("cache", 2)
	w.create("MemcachedBackup", "nightly", toClaim)
	w.converge()
	for _, words := range []string{`"phase":"Running","reason":"Starting"`, `Created Job`, `"reason":"Copying"`, `"phase":"Complete","reason":"Succeeded"`} {
		if n := len(slices.DeleteFunc(slices.Clone(lines), func(line string) bool { return !strings.Contains(line, words) })); n != 1 {
			t.Errorf("%d lines with %s in:\n%s", n, words, strings.Join(lines, "\n"))
		}
	}
	before := len(lines)
	if w.reconcileAll(); len(lines) != before {
		t.Errorf("an idle reconcile logs %s", lines[before:])
	}
}

func TestStatusIsRunningBeforeJobIsCreated(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.memcached("cache", 1)
	w.create("MemcachedBackup", "nightly", toClaim)
	w.killAfter(1)
	w.reconcile(w.backups, "nightly")
	b := w.backup("nightly")
	if b.Status.Phase != v1alpha1.TransferRunning || b.Status.StartTime == nil || b.Status.JobName != transfer.Name(transfer.Backup, b.UID) {
		t.Errorf("the status is %+v", b.Status)
	}
	if job := w.job(transfer.Backup, b); job != nil {
		t.Errorf("there is a Job: %s", job.Name)
	}
	if w.converge(); w.backup("nightly").Status.Phase != v1alpha1.TransferComplete {
		t.Error("the next operator does not continue it")
	}
}

func TestAPIServerRejectsInvalidBackups(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for name, spec := range map[string]string{
		"no-store":            "{memcachedRef: {name: cache}}",
		"two-stores":          "{memcachedRef: {name: cache}, store: {persistentVolumeClaim: {claimName: snapshots}, s3: {bucket: b, credentialsSecretName: c}}}",
		"outside-the-volume":  "{memcachedRef: {name: cache}, store: {persistentVolumeClaim: {claimName: snapshots, subPath: ../other}}}",
		"a-path-as-a-name":    "{memcachedRef: {name: a/b}, store: {persistentVolumeClaim: {claimName: snapshots}}}",
		"a-path-as-a-claim":   "{memcachedRef: {name: cache}, store: {persistentVolumeClaim: {claimName: a/b}}}",
		"a-path-as-a-secret":  "{memcachedRef: {name: cache}, store: {s3: {bucket: bbb, credentialsSecretName: a/b}}}",
		"a-password":          "{memcachedRef: {name: cache}, store: {s3: {bucket: bbb, credentialsSecretName: c, endpoint: 'https://user:secret@s3.example'}}}",
		"no-credentials":      "{memcachedRef: {name: cache}, store: {s3: {bucket: bbb}}}",
		"two-credentials":     "{memcachedRef: {name: cache}, store: {s3: {bucket: bbb, credentialsSecretName: c, serviceAccountName: d}}}",
		"not-a-quantity":      "{memcachedRef: {name: cache}, resources: {limits: {memory: 1e1.5}}, store: {persistentVolumeClaim: {claimName: snapshots}}}",
		"a-negative-deadline": "{memcachedRef: {name: cache}, deadlineSeconds: -3600, store: {persistentVolumeClaim: {claimName: snapshots}}}",
	} {
		if err := w.tryCreate("MemcachedBackup", name, spec); !apierrors.IsInvalid(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	w.create("MemcachedBackup", "nightly", toClaim)
	b := w.backup("nightly")
	b.Labels = map[string]string{"team": "search"}
	w.must(admin.Update(w.ctx, b))
	b.Spec.MemcachedRef.Name = "other"
	if err := admin.Update(w.ctx, b); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "runs once") {
		t.Errorf("a changed spec: %v", err)
	}
}

func TestImpossibleBackupFailsWithoutJob(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		given  func(*world)
		reason string
		words  string
	}{
		"there is no such Memcached": {func(*world) {}, v1alpha1.ReasonMemcachedNotFound, "no Memcached cache in this namespace"},
		"the Memcached has no shard": {func(w *world) { w.memcached("cache", 0) }, v1alpha1.ReasonNoShards, "no shard to copy"},
		"the Memcached is being deleted and no shard runs": {func(w *world) {
			m := w.memcached("cache", 2, func(m *v1alpha1.Memcached) { m.Finalizers = []string{"example.com/blocked"} })
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
			w.converge()
			b := w.backup("nightly")
			w.wantEnd(b.Status.TransferStatus, v1alpha1.TransferFailed, test.reason, test.words)
			if b.Status.JobName != "" || w.job(transfer.Backup, b) != nil {
				t.Error("there is a Job")
			}
			w.wantEvent(w.recorded(), v1alpha1.EventBackupFailed, test.reason)
		})
	}
}

func TestBackupOfTerminatingMemcachedRuns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := w.memcached("cache", 2, func(m *v1alpha1.Memcached) { m.Finalizers = []string{v1alpha1.FinalizerFinalBackup} })
	w.must(admin.Delete(w.ctx, m))
	w.create("MemcachedBackup", "last", toClaim)
	w.converge()
	w.wantEnd(w.backup("last").Status.TransferStatus, v1alpha1.TransferComplete, v1alpha1.ReasonSucceeded, "")
}

func TestBackupWaitsForServersUntilDeadline(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := w.memcached("cache", 2)
	servers := m.Status.Servers
	m.Status.Servers = servers[:1]
	w.must(admin.Status().Update(w.ctx, m))
	w.create("MemcachedBackup", "patient", toClaim)
	w.create("MemcachedBackup", "hasty", "{memcachedRef: {name: cache}, deadlineSeconds: 30, store: {persistentVolumeClaim: {claimName: snapshots}}}")
	w.converge()
	b := w.backup("patient")
	w.wantEnd(b.Status.TransferStatus, v1alpha1.TransferPending, v1alpha1.ReasonShardsStarting, "status.servers")
	if result := w.reconcile(w.backups, "hasty"); result.RequeueAfter <= 0 || result.RequeueAfter > 30*time.Second {
		t.Errorf("the hasty one is requeued after %s", result.RequeueAfter)
	}
	w.clock.Step(time.Minute)
	w.converge()
	w.wantEnd(w.backup("hasty").Status.TransferStatus, v1alpha1.TransferFailed, v1alpha1.ReasonDeadlineExceeded, "status.servers")
	m.Status.Servers = servers
	w.must(admin.Status().Update(w.ctx, m))
	w.converge()
	w.wantEnd(w.backup("patient").Status.TransferStatus, v1alpha1.TransferComplete, v1alpha1.ReasonSucceeded, "")
}

// restrict sets the settings of the operator.
func (w *world) restrict(settings map[string]string) {
	w.Helper()
	restrictions, err := resources.ParseRestrictions(func(name string) string { return settings[name] })
	w.must(err)
	w.backups.Options.Restrictions, w.restores.Options.Restrictions = restrictions, restrictions
}

// A Job logs in to the shards, whose image its user can choose, with the content of the Secret.
func TestNoJobMountsASecretThatTheSettingsDontAllow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.backedUp(1)
	w.restrict(map[string]string{"ALLOWED_SECRET_PREFIXES": "memcached-"})
	use := func(secret string) {
		m := &v1alpha1.Memcached{}
		w.read("cache", m)
		m.Spec.Auth = &v1alpha1.Auth{SecretName: secret}
		w.must(admin.Update(w.ctx, m))
	}
	use("admin-token")
	w.create("MemcachedBackup", "later", toClaim)
	w.create("MemcachedRestore", "again", fromBackup)
	w.converge()
	for _, status := range []v1alpha1.TransferStatus{w.backup("later").Status.TransferStatus, w.restore("again").Status.TransferStatus} {
		w.wantEnd(status, v1alpha1.TransferPending, v1alpha1.ReasonNotAllowed, "spec.auth with the Secret admin-token isn't allowed: ALLOWED_SECRET_PREFIXES")
		if status.JobName != "" {
			t.Errorf("there is a Job %s", status.JobName)
		}
	}
	use("memcached-users")
	w.converge()
	w.wantEnd(w.backup("later").Status.TransferStatus, v1alpha1.TransferComplete, v1alpha1.ReasonSucceeded, "")
	w.wantEnd(w.restore("again").Status.TransferStatus, v1alpha1.TransferComplete, v1alpha1.ReasonSucceeded, "")
}

func TestJobsUseOnlyCredentialsThatTheSettingsAllow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.backedUp(1)
	w.restrict(map[string]string{"ALLOWED_SECRET_PREFIXES": "memcached-", "ALLOWED_SERVICE_ACCOUNTS": "memcached"})
	type test struct {
		store   string
		problem string // empty if it is allowed
	}
	tests := map[string]test{
		"other-key":     {"{bucket: bbb, credentialsSecretName: admin}", "credentialsSecretName admin of the store isn't allowed: ALLOWED_SECRET_PREFIXES of the operator is memcached-"},
		"other-ca":      {"{bucket: bbb, credentialsSecretName: memcached-s3, caSecretName: admin}", "caSecretName admin of the store isn't allowed: ALLOWED_SECRET_PREFIXES"},
		"other-account": {"{bucket: bbb, serviceAccountName: admin}", "serviceAccountName admin of the store isn't allowed: ALLOWED_SERVICE_ACCOUNTS of the operator is memcached;"},
		"key":           {"{bucket: bbb, credentialsSecretName: memcached-s3, caSecretName: memcached-ca}", ""},
		"account":       {"{bucket: bbb, serviceAccountName: memcached}", ""},
	}
	for name, c := range tests {
		w.create("MemcachedBackup", name, "{memcachedRef: {name: cache}, store: {s3: "+c.store+"}}")
		w.create("MemcachedRestore", name, "{memcachedRef: {name: cache}, snapshot: {path: p, store: {s3: "+c.store+"}}}")
	}
	w.converge()
	for name, c := range tests {
		for _, status := range []v1alpha1.TransferStatus{w.backup(name).Status.TransferStatus, w.restore(name).Status.TransferStatus} {
			if c.problem == "" {
				w.wantEnd(status, v1alpha1.TransferComplete, v1alpha1.ReasonSucceeded, "")
				continue
			}
			w.wantEnd(status, v1alpha1.TransferPending, v1alpha1.ReasonNotAllowed, c.problem)
			if status.JobName != "" {
				t.Errorf("%s: there is a Job %s", name, status.JobName)
			}
		}
	}
}

func TestBackupWaitsForBootstrap(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := w.memcached("cache", 1, func(m *v1alpha1.Memcached) {
		m.Status.Bootstrap = &v1alpha1.BootstrapStatus{RestoreName: "first", Phase: v1alpha1.TransferRunning, Deadline: metav1.Now()}
	})
	w.create("MemcachedBackup", "nightly", toClaim)
	w.converge()
	w.wantEnd(w.backup("nightly").Status.TransferStatus, v1alpha1.TransferPending, v1alpha1.ReasonBootstrapping, "is filled")
	m.Status.Bootstrap.Phase = v1alpha1.TransferComplete
	w.must(admin.Status().Update(w.ctx, m))
	w.converge()
	w.wantEnd(w.backup("nightly").Status.TransferStatus, v1alpha1.TransferComplete, v1alpha1.ReasonSucceeded, "")
}

func TestStatusReportsResultOfPods(t *testing.T) {
	t.Parallel()
	unreachable := failed(snapshotwire.ExitFailed, v1alpha1.ReasonShardUnreachable, "shard 1 does not answer")
	for name, test := range map[string]struct {
		ends   []end
		phase  v1alpha1.TransferPhase
		reason string
		words  string
		pods   int
	}{
		"a retry succeeds":                {[]end{unreachable, {outcome: &snapshotwire.Outcome{Reason: v1alpha1.ReasonSucceeded}}}, v1alpha1.TransferComplete, v1alpha1.ReasonSucceeded, "", 2},
		"all retries fail":                {[]end{unreachable}, v1alpha1.TransferFailed, v1alpha1.ReasonShardUnreachable, "shard 1 does not answer", 4},
		"the reason of the last retry":    {[]end{unreachable, unreachable, unreachable, failed(1, v1alpha1.ReasonStoreFull, "full")}, v1alpha1.TransferFailed, v1alpha1.ReasonStoreFull, "full", 4},
		"a retry cannot help":             {[]end{failed(snapshotwire.ExitFinal, v1alpha1.ReasonKeyDumpDisabled, "take -X away")}, v1alpha1.TransferFailed, v1alpha1.ReasonKeyDumpDisabled, "take -X away", 1},
		"out of memory":                   {[]end{{exit: 137, reason: "OOMKilled"}}, v1alpha1.TransferFailed, v1alpha1.ReasonJobFailed, "exceeded its memory limit", 4},
		"a crash":                         {[]end{{exit: 2, reason: "Error"}}, v1alpha1.TransferFailed, v1alpha1.ReasonJobFailed, "exit code 2", 4},
		"success without a snapshot":      {[]end{{mute: true, outcome: &snapshotwire.Outcome{Reason: v1alpha1.ReasonSucceeded}}}, v1alpha1.TransferFailed, v1alpha1.ReasonJobFailed, "did not report its snapshot", 1},
		"success without a message":       {[]end{{}}, v1alpha1.TransferFailed, v1alpha1.ReasonJobFailed, "could read the result", 1},
		"success with a failure's reason": {[]end{{outcome: &snapshotwire.Outcome{Reason: v1alpha1.ReasonStoreFailed, Message: "no"}}}, v1alpha1.TransferFailed, v1alpha1.ReasonStoreFailed, "no", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.memcached("cache", 2)
			w.jobs.ends = map[snapshotwire.Action][]end{snapshotwire.ActionSave: test.ends}
			w.create("MemcachedBackup", "nightly", toClaim)
			w.converge()
			b := w.backup("nightly")
			w.wantEnd(b.Status.TransferStatus, test.phase, test.reason, test.words)
			if got := w.jobs.created["save"]; got != test.pods {
				t.Errorf("%d pods were created, want %d", got, test.pods)
			}
			if (b.Status.Snapshot != nil) != (test.phase == v1alpha1.TransferComplete) {
				t.Errorf("the snapshot is %+v", b.Status.Snapshot)
			}
			if job := w.job(transfer.Backup, b); job == nil || job.Spec.TTLSecondsAfterFinished == nil {
				t.Error("the Job is not to expire")
			}
		})
	}
}

func TestDeletedJobIsNotRecreated(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.memcached("cache", 1)
	w.jobs.hang = map[snapshotwire.Action]bool{snapshotwire.ActionSave: true}
	w.create("MemcachedBackup", "nightly", toClaim)
	w.converge()
	b := w.backup("nightly")
	if b.Status.JobUID == "" {
		t.Fatal("the Job is not noted")
	}
	w.must(admin.Delete(w.ctx, w.job(transfer.Backup, b)))
	w.converge()
	w.wantEnd(w.backup("nightly").Status.TransferStatus, v1alpha1.TransferFailed, v1alpha1.ReasonJobDeleted, "was deleted before it finished")
	if w.job(transfer.Backup, b) != nil || w.jobs.created["save"] != 1 {
		t.Error("it runs again")
	}
}

func TestJobOfAnotherOwnerIsNotChanged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.memcached("cache", 0)
	w.create("MemcachedBackup", "nightly", toClaim)
	b := w.backup("nightly")
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: transfer.Name(transfer.Backup, b.UID)}}
	job.Spec.Template.Spec = corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "c", Image: "i"}}}
	w.must(admin.Create(w.ctx, job))
	m := &v1alpha1.Memcached{}
	w.read("cache", m)
	m.Spec.Size = new(int32(1))
	w.must(admin.Update(w.ctx, m))
	m.Status.Servers = []string{"cache-0." + w.namespace + ".svc:11211"}
	w.must(admin.Status().Update(w.ctx, m))
	w.converge()
	w.wantEnd(w.backup("nightly").Status.TransferStatus, v1alpha1.TransferFailed, v1alpha1.ReasonJobCannotStart, job.Name)
	if again := w.job(transfer.Backup, b); again == nil || again.ResourceVersion != job.ResourceVersion {
		t.Error("the Job of another owner was changed")
	}
}

func TestStuckPodIsReportedAndFailsBackup(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.memcached("cache", 1)
	w.jobs.stuck = &corev1.ContainerStateWaiting{Reason: "CreateContainerConfigError", Message: `secret "minio" not found`}
	w.create("MemcachedBackup", "nightly", toClaim)
	w.converge()
	b := w.backup("nightly")
	w.wantEnd(b.Status.TransferStatus, v1alpha1.TransferRunning, v1alpha1.ReasonJobCannotStart, `secret "minio" not found`)
	w.clock.Step(transfer.StuckTimeout)
	w.converge()
	w.wantEnd(w.backup("nightly").Status.TransferStatus, v1alpha1.TransferFailed, v1alpha1.ReasonJobCannotStart, `secret "minio" not found`)
	if w.job(transfer.Backup, b) != nil {
		t.Error("the Job is still there, and would begin after all")
	}
}

func TestPodThatStartsLateCompletesBackup(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.memcached("cache", 1)
	w.jobs.stuck = &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "not found"}
	w.create("MemcachedBackup", "nightly", toClaim)
	w.converge()
	w.jobs.stuck = nil
	w.converge()
	w.wantEnd(w.backup("nightly").Status.TransferStatus, v1alpha1.TransferComplete, v1alpha1.ReasonSucceeded, "")
}

func TestLostPodIsReplaced(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.memcached("cache", 1)
	w.jobs.hang = map[snapshotwire.Action]bool{snapshotwire.ActionSave: true}
	w.create("MemcachedBackup", "nightly", toClaim)
	w.converge()
	b := w.backup("nightly")
	w.clock.Step(time.Hour)
	for _, pod := range w.jobs.pods(w.job(transfer.Backup, b)) { // as with its node, which does not count as a failure
		w.must(admin.Delete(w.ctx, &pod, client.GracePeriodSeconds(0)))
	}
	w.reconcile(w.backups, "nightly")
	if job := w.job(transfer.Backup, b); job == nil || job.DeletionTimestamp != nil {
		t.Fatal("the Job is given up")
	}
	w.clock.SetTime(time.Now()) // the next pod is created by the API server's clock
	w.jobs.hang = nil
	w.converge()
	w.wantEnd(w.backup("nightly").Status.TransferStatus, v1alpha1.TransferComplete, v1alpha1.ReasonSucceeded, "")
}

func TestBackupFailsAtDeadline(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.memcached("cache", 1)
	w.jobs.hang = map[snapshotwire.Action]bool{snapshotwire.ActionSave: true}
	w.create("MemcachedBackup", "nightly", "{memcachedRef: {name: cache}, deadlineSeconds: 3600, store: {persistentVolumeClaim: {claimName: snapshots}}}")
	w.converge()
	w.clock.Step(2 * time.Hour)
	w.converge()
	w.wantEnd(w.backup("nightly").Status.TransferStatus, v1alpha1.TransferFailed, v1alpha1.ReasonDeadlineExceeded, "deadline of 1h0m0s")
}

func TestStatusReportsProgress(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.memcached("cache", 1)
	w.jobs.hang = map[snapshotwire.Action]bool{snapshotwire.ActionSave: true}
	w.create("MemcachedBackup", "nightly", toClaim)
	w.converge()
	b := w.backup("nightly")
	w.wantEnd(b.Status.TransferStatus, v1alpha1.TransferRunning, v1alpha1.ReasonCopying, "is copying")
	if p := b.Status.Progress; p == nil || *p != (v1alpha1.TransferProgress{}) {
		t.Errorf("a pod that does not answer has progress %+v", p)
	}
	w.jobs.progress["10.0.0.1"] = snapshotwire.Progress{TaskID: "another", Items: 7, TotalItems: 9}
	w.converge()
	if p := w.backup("nightly").Status.Progress; p.Items != 0 {
		t.Errorf("the progress of another task is reported: %+v", p)
	}
	w.jobs.progress["10.0.0.1"] = snapshotwire.Progress{TaskID: string(b.UID), Items: 50, TotalItems: 200, Bytes: 10, ItemsPerSecond: 5}
	w.converge()
	want := &v1alpha1.TransferProgress{Items: 50, TotalItems: 200, Bytes: 10, Percent: 25, ItemsPerSecond: 5}
	if diff := cmp.Diff(want, w.backup("nightly").Status.Progress); diff != "" {
		t.Errorf("the progress (-want +got):\n%s", diff)
	}
	before := w.writes.Load()
	if result := w.reconcile(w.backups, "nightly"); w.writes.Load() != before || result.RequeueAfter != 5*time.Second {
		t.Errorf("without a change there are %d writes, and it is requeued after %s", w.writes.Load()-before, result.RequeueAfter)
	}
	w.jobs.hang = nil
	w.converge()
	w.wantEnd(w.backup("nightly").Status.TransferStatus, v1alpha1.TransferComplete, v1alpha1.ReasonSucceeded, "")
}

func TestRejectedJobIsReportedAndFailsBackup(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.memcached("cache", 1)
	w.forbid("count/jobs.batch")
	w.create("MemcachedBackup", "nightly", toClaim)
	for range 3 { // it never converges, as it retries
		if result := w.reconcile(w.backups, "nightly"); result.RequeueAfter != 30*time.Second {
			t.Errorf("it is requeued after %s", result.RequeueAfter)
		}
	}
	w.wantEnd(w.backup("nightly").Status.TransferStatus, v1alpha1.TransferRunning, v1alpha1.ReasonJobCannotStart, "exceeded quota")
	w.clock.Step(transfer.StuckTimeout)
	w.converge()
	w.wantEnd(w.backup("nightly").Status.TransferStatus, v1alpha1.TransferFailed, v1alpha1.ReasonJobCannotStart, "exceeded quota")
}

// forbid creates a quota that allows none of something, and returns a function that deletes it.
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

// TestBackupIsCheckedAgainAfterOperatorRestart has the operator be killed before it made
// the Job, and find things changed.
func TestBackupIsCheckedAgainAfterOperatorRestart(t *testing.T) {
	t.Parallel()
	begun := func(t *testing.T) (*world, *v1alpha1.Memcached) {
		w := newWorld(t)
		m := w.memcached("cache", 2)
		w.create("MemcachedBackup", "nightly", toClaim)
		w.killAfter(1)
		w.reconcile(w.backups, "nightly")
		if s := w.backup("nightly").Status; s.Phase != v1alpha1.TransferRunning || s.JobUID != "" {
			t.Fatalf("it is %+v", s)
		}
		return w, m
	}
	t.Run("fails when the Memcached was deleted", func(t *testing.T) {
		t.Parallel()
		w, m := begun(t)
		w.must(admin.Delete(w.ctx, m))
		w.converge()
		w.wantEnd(w.backup("nightly").Status.TransferStatus, v1alpha1.TransferFailed, v1alpha1.ReasonMemcachedNotFound, "")
		if w.jobs.created["save"] != 0 {
			t.Error("a pod was created")
		}
	})
	t.Run("waits for servers", func(t *testing.T) {
		t.Parallel()
		w, m := begun(t)
		servers := m.Status.Servers
		m.Status.Servers = nil
		w.must(admin.Status().Update(w.ctx, m))
		w.converge()
		w.wantEnd(w.backup("nightly").Status.TransferStatus, v1alpha1.TransferRunning, v1alpha1.ReasonShardsStarting, "status.servers")
		m.Status.Servers = servers
		w.must(admin.Status().Update(w.ctx, m))
		w.converge()
		w.wantEnd(w.backup("nightly").Status.TransferStatus, v1alpha1.TransferComplete, v1alpha1.ReasonSucceeded, "")
	})
	t.Run("does not wait beyond its deadline", func(t *testing.T) {
		t.Parallel()
		w, m := begun(t)
		m.Status.Servers = nil
		w.must(admin.Status().Update(w.ctx, m))
		w.clock.Step(7 * time.Hour)
		w.converge()
		w.wantEnd(w.backup("nightly").Status.TransferStatus, v1alpha1.TransferFailed, v1alpha1.ReasonDeadlineExceeded, "status.servers")
	})
}

// A status that the API server rejects would never be written, and the backup would run forever.
func TestBackupFinishesWhateverItsPodReports(t *testing.T) {
	t.Parallel()
	succeeded := func(s snapshotwire.Snapshot) snapshotwire.Outcome {
		return snapshotwire.Outcome{Reason: v1alpha1.ReasonSucceeded, Items: -1, Bytes: -1 << 63, Snapshot: &s}
	}
	for name, c := range map[string]struct {
		outcome snapshotwire.Outcome
		exit    int32
		phase   v1alpha1.TransferPhase
		reason  string
	}{
		"a year of five digits in UTC": {succeeded(snapshotwire.Snapshot{TakenAt: time.Date(9999, 12, 31, 23, 59, 59, 0, time.FixedZone("", -10*3600))}), 0,
			v1alpha1.TransferComplete, v1alpha1.ReasonSucceeded},
		"no time":               {succeeded(snapshotwire.Snapshot{}), 0, v1alpha1.TransferComplete, v1alpha1.ReasonSucceeded},
		"numbers out of range":  {succeeded(snapshotwire.Snapshot{TakenAt: time.Now(), Shards: 1 << 40, FormatVersion: -1, Items: -1}), 0, v1alpha1.TransferComplete, v1alpha1.ReasonSucceeded},
		"a reason that is none": {snapshotwire.Outcome{Reason: "not a reason!", Message: strings.Repeat("€", 900)}, snapshotwire.ExitFinal, v1alpha1.TransferFailed, v1alpha1.ReasonJobFailed},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.jobs.ends = map[snapshotwire.Action][]end{snapshotwire.ActionSave: {{exit: c.exit, outcome: &c.outcome}}}
			w.memcached("cache", 1)
			w.create("MemcachedBackup", "nightly", toGo)
			w.converge()
			w.wantEnd(w.backup("nightly").Status.TransferStatus, c.phase, c.reason, "")
		})
	}
}
