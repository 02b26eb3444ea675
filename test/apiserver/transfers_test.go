package apiserver

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers"
	"github.com/memcached-operator/memcached-operator/controllers/backup"
	"github.com/memcached-operator/memcached-operator/controllers/cache"
	"github.com/memcached-operator/memcached-operator/controllers/transfer"
	"github.com/memcached-operator/memcached-operator/internal/simtest"
	snapshotwire "github.com/memcached-operator/memcached-operator/internal/snapshot/wire"
)

// transfers is one test's namespace, in which what the operator's controllers create passes the restricted Pod Security Standard.
type transfers struct {
	*testing.T
	namespace string
	jobs      *simtest.Jobs
}

var transferNamespaces atomic.Int64

func newTransfers(t *testing.T) *transfers {
	t.Helper()
	tr := &transfers{T: t, namespace: fmt.Sprintf("transfers-%d", transferNamespaces.Add(1))}
	tr.must(admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: tr.namespace, Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}}}))
	tr.jobs = simtest.NewJobs(admin, tr.namespace, time.Now)
	return tr
}

func (tr *transfers) must(err error) {
	tr.Helper()
	if err != nil {
		tr.Fatal(err)
	}
}

const (
	toClaim    = "{memcachedRef: {name: cache}, store: {persistentVolumeClaim: {claimName: snapshots}}}"
	toGo       = "{memcachedRef: {name: cache}, deletionPolicy: Delete, store: {persistentVolumeClaim: {claimName: snapshots}}}"
	fromBackup = "{memcachedRef: {name: cache}, backupRef: {name: nightly}}"
)

// create creates an object as kubectl apply would.
func (tr *transfers) create(kind, name, spec string) error {
	tr.Helper()
	o := map[string]any{}
	tr.must(yaml.Unmarshal([]byte(spec), &o))
	u := &unstructured.Unstructured{Object: map[string]any{"spec": o}}
	u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind))
	u.SetNamespace(tr.namespace)
	u.SetName(name)
	return admin.Create(tr.Context(), u, client.FieldValidation(metav1.FieldValidationStrict))
}

// memcached creates one of a shard whose status lists its server.
func (tr *transfers) memcached() {
	tr.Helper()
	m := &v1alpha1.Memcached{ObjectMeta: metav1.ObjectMeta{Namespace: tr.namespace, Name: "cache"}, Spec: v1alpha1.MemcachedSpec{Size: new(int32(1))}}
	tr.must(admin.Create(tr.Context(), m))
	m.Status.Servers = []string{"cache-0." + tr.namespace + ".svc:11211"}
	tr.must(admin.Status().Update(tr.Context(), m))
}

// backups returns a controller of backups with the operator's permissions, without a cache.
func (tr *transfers) backups() *backup.Reconciler {
	tr.Helper()
	direct, err := client.New(server.Operator, client.Options{Scheme: simtest.Scheme()})
	tr.must(err)
	return &backup.Reconciler{Engine: transfer.Engine{
		Client: simtest.Indexed(direct), APIReader: direct, Progress: tr.jobs, Recorder: &events.FakeRecorder{}, Clock: clock.RealClock{},
		Options: transfer.Options{Image: "operator:1", OperatorNamespace: "memcached-operator-system"},
	}}
}

// reconcile reconciles the backup nightly once, and returns it.
func (tr *transfers) reconcile(r *backup.Reconciler) *v1alpha1.MemcachedBackup {
	tr.Helper()
	key := types.NamespacedName{Namespace: tr.namespace, Name: "nightly"}
	_, err := r.Reconcile(tr.Context(), ctrl.Request{NamespacedName: key})
	tr.must(err)
	b := &v1alpha1.MemcachedBackup{}
	tr.must(client.IgnoreNotFound(admin.Get(tr.Context(), key, b)))
	return b
}

// until has the Jobs run until the backup nightly is as expected, for at most a few hundred reconciles.
func (tr *transfers) until(r *backup.Reconciler, what string, holds func(*v1alpha1.MemcachedBackup) bool) *v1alpha1.MemcachedBackup {
	tr.Helper()
	var b *v1alpha1.MemcachedBackup
	for range 300 {
		if b = tr.reconcile(r); holds(b) {
			return b
		}
		_, err := tr.jobs.Tick()
		tr.must(err)
	}
	tr.Fatalf("%s: it is %s (%s): %s", what, b.Status.Phase, b.Status.Reason, b.Status.Message)
	return nil
}

func isDeleted(b *v1alpha1.MemcachedBackup) bool { return b.Name == "" }

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
			t.Parallel()
			tr := newTransfers(t)
			tr.jobs.Ends = map[snapshotwire.Action][]simtest.End{snapshotwire.ActionSave: {{Exit: c.exit, Outcome: &c.outcome}}}
			tr.memcached()
			tr.must(tr.create("MemcachedBackup", "nightly", toClaim))
			b := tr.until(tr.backups(), "it finishes", func(b *v1alpha1.MemcachedBackup) bool { return b.Status.IsFinished() })
			if b.Status.Phase != c.phase || b.Status.Reason != c.reason {
				t.Errorf("it is %s (%s): %s", b.Status.Phase, b.Status.Reason, b.Status.Message)
			}
		})
	}
}

func TestAPIServerRejectsInvalidBackups(t *testing.T) {
	t.Parallel()
	tr := newTransfers(t)
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
		if err := tr.create("MemcachedBackup", name, spec); !apierrors.IsInvalid(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	tr.must(tr.create("MemcachedBackup", "nightly", toClaim))
	b := &v1alpha1.MemcachedBackup{}
	tr.must(admin.Get(t.Context(), client.ObjectKey{Namespace: tr.namespace, Name: "nightly"}, b))
	b.Labels = map[string]string{"team": "search"}
	tr.must(admin.Update(t.Context(), b))
	b.Spec.MemcachedRef.Name = "other"
	if err := admin.Update(t.Context(), b); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "runs once") {
		t.Errorf("a changed spec: %v", err)
	}
}

func TestQuotaThatForbidsJobsIsReported(t *testing.T) {
	t.Parallel()
	tr := newTransfers(t)
	tr.memcached()
	none := corev1.ResourceList{"count/jobs.batch": resource.MustParse("0")}
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: tr.namespace, Name: "none"}, Spec: corev1.ResourceQuotaSpec{Hard: none}}
	tr.must(admin.Create(t.Context(), quota))
	quota.Status = corev1.ResourceQuotaStatus{Hard: none, Used: none}
	tr.must(admin.Status().Update(t.Context(), quota))
	probe := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: tr.namespace, GenerateName: "probe-"}}
	probe.Spec.Template.Spec = corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "c", Image: "i"}}}
	tr.eventually("the API server enforces the quota", quota, "none", func() bool {
		return apierrors.IsForbidden(admin.Create(t.Context(), probe.DeepCopy()))
	})
	tr.must(tr.create("MemcachedBackup", "nightly", toClaim))
	backups := tr.backups()
	tr.reconcile(backups) // says Running
	if s := tr.reconcile(backups).Status; s.Phase != v1alpha1.TransferRunning || s.Reason != v1alpha1.ReasonJobCannotStart || !strings.Contains(s.Message, "exceeded quota") {
		t.Errorf("it is %s (%s): %s", s.Phase, s.Reason, s.Message)
	}
}

// The API server rejects the Job that would delete the snapshot, and the finalizer would stay forever.
func TestBackupInTerminatingNamespaceIsDeleted(t *testing.T) {
	t.Parallel()
	tr := newTransfers(t)
	tr.memcached()
	tr.must(tr.create("MemcachedBackup", "nightly", toGo))
	backups := tr.backups()
	b := tr.until(backups, "it is Complete", func(b *v1alpha1.MemcachedBackup) bool { return b.Status.Phase == v1alpha1.TransferComplete })
	tr.must(admin.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: tr.namespace}}))
	tr.must(admin.Delete(t.Context(), b))
	tr.until(backups, "it is deleted", isDeleted)
	if len(tr.jobs.Snapshots) != 1 {
		t.Errorf("the store contains %v", tr.jobs.Snapshots)
	}
}

func TestRunningJobIsDeletedWithItsPodBeforeTheSnapshot(t *testing.T) {
	t.Parallel()
	tr := newTransfers(t)
	tr.memcached()
	tr.jobs.Hang = map[snapshotwire.Action]bool{snapshotwire.ActionSave: true}
	tr.must(tr.create("MemcachedBackup", "nightly", toGo))
	backups := tr.backups()
	b := tr.until(backups, "it copies", func(b *v1alpha1.MemcachedBackup) bool { return b.Status.Reason == v1alpha1.ReasonCopying })
	tr.must(admin.Delete(t.Context(), b))
	for range 3 { // the pod takes its time
		tr.reconcile(backups)
	}
	var jobs batchv1.JobList
	tr.must(admin.List(t.Context(), &jobs, client.InNamespace(tr.namespace)))
	if len(jobs.Items) != 1 || jobs.Items[0].DeletionTimestamp == nil {
		t.Errorf("there are the Jobs %+v", jobs.Items)
	}
	tr.until(backups, "it is deleted", isDeleted)
	if tr.jobs.Created["delete"] != 1 {
		t.Errorf("the pods are %v", tr.jobs.Created)
	}
}

func TestEventHasAtMost1024Bytes(t *testing.T) {
	t.Parallel()
	tr := newTransfers(t)
	create := func(name string, bytes int) error {
		return admin.Create(t.Context(), &eventsv1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: tr.namespace, Name: name}, EventTime: metav1.NowMicro(), ReportingController: "c", ReportingInstance: "i",
			Action: "Reconcile", Reason: "R", Type: corev1.EventTypeNormal, Note: strings.Repeat("x", bytes), Regarding: corev1.ObjectReference{Namespace: tr.namespace, Kind: "Memcached", Name: "cache"}})
	}
	if err := create("short", 1024); err != nil {
		t.Error(err)
	}
	if err := create("long", 1025); !apierrors.IsInvalid(err) {
		t.Errorf("a message of 1025 bytes: %v", err)
	}
}

// eventually looks at what the controllers of a manager have written, until it is as expected or the test's time is over.
func (tr *transfers) eventually(what string, o client.Object, name string, holds func() bool) {
	tr.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		_, err := tr.jobs.Tick()
		tr.must(err)
		err = admin.Get(tr.Context(), client.ObjectKey{Namespace: tr.namespace, Name: name}, o)
		tr.must(client.IgnoreNotFound(err))
		if apierrors.IsNotFound(err) {
			o.SetName("")
		}
		if holds() {
			return
		}
		select {
		case <-tick.C:
		case <-tr.Context().Done():
			tr.Fatalf("%s: it is %+v", what, o)
		}
	}
}

// TestManagerRunsAllControllers runs all controllers as main does, with their cache and
// their permissions: only watches trigger them.
func TestManagerRunsAllControllers(t *testing.T) {
	t.Parallel()
	tr := newTransfers(t)
	mgr, err := ctrl.NewManager(rest.CopyConfig(server.Operator), ctrl.Options{Scheme: simtest.Scheme(), Cache: cache.Options(tr.namespace), Metrics: metricsserver.Options{BindAddress: "0"}})
	tr.must(err)
	tr.must(controllers.SetupWithManager(mgr, controllers.Options{Image: "operator:1", DefaultImage: "docker.io/library/memcached:1.6.45", WatchNamespace: tr.namespace, Clock: clock.RealClock{}}))
	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- mgr.Start(ctx) }()
	defer func() {
		stop()
		tr.must(<-stopped)
	}()
	b, r, s := &v1alpha1.MemcachedBackup{}, &v1alpha1.MemcachedRestore{}, &v1alpha1.MemcachedScheduledBackup{}
	tr.jobs.Hang = map[snapshotwire.Action]bool{snapshotwire.ActionSave: true}
	tr.must(tr.create("MemcachedRestore", "early", fromBackup))
	tr.eventually("a restore without a Memcached fails", r, "early", func() bool { return r.Status.Phase == v1alpha1.TransferFailed })
	tr.must(tr.create("Memcached", "cache", "{size: 2}"))
	tr.must(tr.create("MemcachedBackup", "nightly", toGo))
	tr.eventually("the backup runs", b, "nightly", func() bool { return b.Status.Reason == v1alpha1.ReasonCopying })
	tr.must(tr.create("MemcachedRestore", "again", fromBackup))
	tr.eventually("the restore waits for it", r, "again", func() bool { return r.Status.Reason == v1alpha1.ReasonBackupNotComplete })
	tr.jobs.Hang = nil
	tr.eventually("the backup is Complete", b, "nightly", func() bool { return b.Status.Phase == v1alpha1.TransferComplete })
	tr.eventually("the restore is Complete", r, "again", func() bool { return r.Status.Phase == v1alpha1.TransferComplete })
	tr.jobs.Hang = map[snapshotwire.Action]bool{snapshotwire.ActionLoad: true}
	tr.must(tr.create("MemcachedRestore", "first", fromBackup))
	tr.eventually("the first restore runs", r, "first", func() bool { return r.Status.Reason == v1alpha1.ReasonCopying })
	tr.must(tr.create("MemcachedRestore", "second", fromBackup))
	tr.eventually("the second restore waits for it", r, "second", func() bool { return r.Status.Reason == v1alpha1.ReasonRestoreRunning })
	tr.jobs.Hang = nil
	tr.eventually("the second restore is Complete", r, "second", func() bool { return r.Status.Phase == v1alpha1.TransferComplete })
	job := &batchv1.Job{}
	tr.eventually("the Job expires", job, b.Status.JobName, func() bool { return job.Spec.TTLSecondsAfterFinished != nil })
	families, err := metrics.Registry.Gather()
	tr.must(err)
	found := false
	for _, family := range families {
		found = found || family.GetName() == "memcached_operator_backup_last_completion_timestamp_seconds"
	}
	if !found {
		t.Error("the metrics lack the backup")
	}
	tr.must(tr.create("MemcachedScheduledBackup", "later", `{schedule: "@daily", backupTemplate: {spec: `+toClaim+`}}`))
	tr.eventually("the schedule reports its next run", s, "later", func() bool { return s.Status.NextScheduleTime != nil })
	tr.must(admin.Delete(t.Context(), b))
	tr.eventually("the backup is deleted with its snapshot", b, "nightly", func() bool { return isDeleted(b) })
	if len(tr.jobs.Snapshots) != 0 {
		t.Errorf("the store contains %v", tr.jobs.Snapshots)
	}
}
