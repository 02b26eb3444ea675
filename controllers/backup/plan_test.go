package backup

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/apiserver"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/controllers/transfer"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
	"github.com/memcached-operator/memcached-operator/internal/simtest"
	snapshotwire "github.com/memcached-operator/memcached-operator/internal/snapshot/wire"
)

var now = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// observed returns the observation of a backup of two shards that deletes its snapshot and has not begun.
func observed(edits ...func(*observation)) *observation {
	b := &v1beta1.MemcachedBackup{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "nightly", UID: "11111111-2222", CreationTimestamp: metav1.NewTime(now)}}
	b.Spec.MemcachedRef.Name, b.Spec.DeletionPolicy = "cache", v1beta1.SnapshotDelete
	b.Spec.Store.PersistentVolumeClaim = &v1beta1.PersistentVolumeClaimStore{ClaimName: "snapshots", SubPath: "cache"}
	m := &v1beta1.Memcached{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "cache", UID: "m"}, Spec: v1beta1.MemcachedSpec{Size: new(int32(2))}}
	m.Spec.Pod.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "registry"}}
	m.Status.Version, m.Status.Servers = "1.6.45", []string{"cache-0.team.svc.cluster.local:11211", "cache-1.team.svc.cluster.local:11211"}
	obs := &observation{backup: b, Observation: transfer.Observation{Object: b, Memcached: m, Job: transfer.JobObservation{Name: transfer.JobName(transfer.Backup, b.UID), Now: now}, Now: now}}
	for ordinal := range m.Status.Servers {
		service := corev1.Service{ObjectMeta: resources.OwnedMeta(m)}
		service.Name = resources.ShardName(m.Name, ordinal)
		obs.Services = append(obs.Services, service)
	}
	for _, edit := range edits {
		edit(obs)
	}
	return obs
}

// begun lets a backup be Running, with a Job if that has a UID.
func begun(uid string) func(*observation) {
	return func(obs *observation) {
		s := &obs.backup.Status
		s.Phase, s.JobName, s.JobUID = v1beta1.TransferRunning, obs.Job.Name, uid
		s.StartTime = &metav1.Time{Time: now}
		obs.backup.Annotations = map[string]string{annotations.Transfer: `{"name":"nightly","uid":"11111111-2222","basis":{"pod":{"imagePullSecrets":[{"name":"registry"}]}}}`}
		obs.backup.Finalizers = []string{v1beta1.FinalizerSnapshot}
	}
}

func deleted(age time.Duration) func(*observation) {
	return func(obs *observation) {
		obs.backup.Finalizers = []string{v1beta1.FinalizerSnapshot}
		obs.backup.DeletionTimestamp = &metav1.Time{Time: now.Add(-age)}
	}
}

// moves gives the Memcached a change of its size at a step, and purges a purge in a phase.
func moves(step v1beta1.ScalingStep) func(*observation) {
	return func(obs *observation) {
		obs.Memcached.Status.Scaling = &v1beta1.ScalingStatus{From: 1, To: 2, Step: step}
	}
}

func purges(request string, phase v1beta1.TransferPhase) func(*observation) {
	return func(obs *observation) {
		obs.Memcached.Status.Purge = &v1beta1.PurgeStatus{Request: request, Phase: phase}
	}
}

func TestBackupStartsOnlyWithReachableShards(t *testing.T) {
	for name, c := range map[string]struct {
		edit           func(*observation)
		reason, words  string
		final, started bool
	}{
		"all shards are reachable":   {func(*observation) {}, "", "", false, true},
		"there is no Memcached":      {func(obs *observation) { obs.Memcached = nil }, v1beta1.ReasonMemcachedNotFound, "no Memcached cache in this namespace", false, false},
		"the Memcached has no shard": {func(obs *observation) { obs.Memcached.Spec.Size = new(int32(0)) }, v1beta1.ReasonNoShards, "no shard to copy", true, false},
		"it is paused with size 0": {func(obs *observation) {
			obs.Memcached.Spec.Size, obs.Memcached.Spec.Paused = new(int32(0)), true
		}, "", "", false, true},
		"its spec is rejected, with size 0": {func(obs *observation) {
			obs.Memcached.Spec.Size, obs.Memcached.Generation = new(int32(0)), 2
			obs.Memcached.Status.Conditions = []metav1.Condition{{Type: v1beta1.ConditionProgressing, Reason: v1beta1.ReasonSpecRejected, ObservedGeneration: 2}}
		}, "", "", false, true},
		"its former spec was rejected": {func(obs *observation) {
			obs.Memcached.Spec.Size, obs.Memcached.Generation = new(int32(0)), 3
			obs.Memcached.Status.Conditions = []metav1.Condition{{Type: v1beta1.ConditionProgressing, Reason: v1beta1.ReasonSpecRejected, ObservedGeneration: 2}}
		}, v1beta1.ReasonNoShards, "no shard to copy", true, false},
		"it is being deleted with size 0": {func(obs *observation) {
			obs.Memcached.Spec.Size, obs.Memcached.DeletionTimestamp = new(int32(0)), &metav1.Time{Time: now}
		}, "", "", false, true},
		"it is being deleted": {func(obs *observation) { obs.Memcached.DeletionTimestamp = &metav1.Time{Time: now} }, "", "", false, true},
		"it is being deleted, without all shards": {func(obs *observation) {
			obs.Memcached.DeletionTimestamp, obs.Memcached.Status.Servers = &metav1.Time{Time: now}, nil
		}, v1beta1.ReasonMemcachedDeleting, "is being deleted", true, false},
		"it is being deleted, and another owner has a Service": {func(obs *observation) {
			obs.Memcached.DeletionTimestamp, obs.Services = &metav1.Time{Time: now}, obs.Services[:1]
		}, v1beta1.ReasonMemcachedDeleting, "doesn't manage a Service cache-1. For a backup", true, false},
		"another owner has a Service": {func(obs *observation) { obs.Services = obs.Services[1:] }, v1beta1.ReasonShardsStarting, "Service cache-0", false, false},
		"it is filled": {func(obs *observation) {
			obs.Memcached.Status.Bootstrap = &v1beta1.BootstrapStatus{Phase: v1beta1.TransferRunning}
		}, v1beta1.ReasonBootstrapping, "is filled", false, false},
		"it was filled": {func(obs *observation) {
			obs.Memcached.Status.Bootstrap = &v1beta1.BootstrapStatus{Phase: v1beta1.TransferComplete}
		}, "", "", false, true},
		"items that have moved are deleted": {moves(v1beta1.ScalingClosing), v1beta1.ReasonItemsMoving, "status.scaling", false, false},
		"clients get the new list":          {moves(v1beta1.ScalingWaiting), "", "", false, true},
		"items are deleted while it is being deleted": {func(obs *observation) {
			moves(v1beta1.ScalingClosing)(obs)
			obs.Memcached.DeletionTimestamp = &metav1.Time{Time: now}
		}, "", "", false, true},
		"items are deleted while it is paused": {func(obs *observation) {
			moves(v1beta1.ScalingClosing)(obs)
			obs.Memcached.Spec.Paused = true
		}, "", "", false, true},
		"items are deleted while its spec is rejected": {func(obs *observation) {
			moves(v1beta1.ScalingClosing)(obs)
			obs.Memcached.Status.Conditions = []metav1.Condition{{Type: v1beta1.ConditionProgressing, Reason: v1beta1.ReasonSpecRejected}}
		}, "", "", false, true},
		"a purge deletes items":        {purges("Delete-1", v1beta1.TransferRunning), v1beta1.ReasonItemsMoving, "status.purge", false, false},
		"a purge counts items":         {purges("DryRun-1", v1beta1.TransferRunning), "", "", false, true},
		"a purge waits":                {purges("Delete-1", v1beta1.TransferPending), "", "", false, true},
		"a purge has deleted items":    {purges("Delete-1", v1beta1.TransferComplete), "", "", false, true},
		"not all shards are reachable": {func(obs *observation) { obs.Memcached.Status.Servers = obs.Memcached.Status.Servers[:1] }, v1beta1.ReasonShardsStarting, "status.servers", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			obs := observed(c.edit)
			blocker := obs.Blocker()
			switch {
			case (blocker == nil) != c.started:
				t.Fatalf("it is blocked by %+v", blocker)
			case blocker != nil && (blocker.Reason != c.reason || !strings.Contains(blocker.Message, c.words) || blocker.Transient == c.final):
				t.Errorf("it is blocked by %+v", blocker)
			}
			// The finalizer comes first, and never for a backup that can't start.
			p := obs.Plan(nil)
			if got := p.Actions.Finalizer == transfer.AddFinalizer; got != c.started {
				t.Errorf("it adds its finalizer: %t", got)
			}
			if c.started && p.Status.Phase != "" {
				t.Errorf("it is %s before its finalizer is written", p.Status.Phase)
			}
			obs.backup.Spec.DeletionPolicy = v1beta1.SnapshotRetain
			p = obs.Plan(nil)
			if p.Actions.Finalizer != transfer.KeepFinalizer || (p.Status.Phase == v1beta1.TransferRunning) != c.started {
				t.Errorf("a backup that retains its snapshot is %s, with the change %d of its finalizer", p.Status.Phase, p.Actions.Finalizer)
			}
		})
	}
}

// A policy that changes applies to a backup that runs or has finished, too.
func TestFinalizerFollowsTheDeletionPolicy(t *testing.T) {
	finished := func(job string) func(*observation) {
		return func(obs *observation) {
			obs.backup.Status.Phase, obs.backup.Status.JobName = v1beta1.TransferFailed, job
		}
	}
	for name, c := range map[string]struct {
		edit      func(*observation)
		policy    v1beta1.SnapshotDeletionPolicy
		finalizer bool
		want      transfer.FinalizerChange
	}{
		"a running backup will delete its snapshot": {begun(""), v1beta1.SnapshotDelete, false, transfer.AddFinalizer},
		"a running backup still deletes it":         {begun(""), v1beta1.SnapshotDelete, true, transfer.KeepFinalizer},
		"a running backup will keep it":             {begun(""), v1beta1.SnapshotRetain, true, transfer.RemoveFinalizer},
		"a finished backup will delete it":          {finished("j"), v1beta1.SnapshotDelete, false, transfer.AddFinalizer},
		"a finished backup will keep it":            {finished("j"), "", true, transfer.RemoveFinalizer},
		"a finished backup still keeps it":          {finished("j"), v1beta1.SnapshotRetain, false, transfer.KeepFinalizer},
		"a backup that wrote nothing":               {finished(""), v1beta1.SnapshotDelete, false, transfer.KeepFinalizer},
	} {
		obs := observed(c.edit)
		obs.backup.Spec.DeletionPolicy = c.policy
		if obs.backup.Finalizers = nil; c.finalizer {
			obs.backup.Finalizers = []string{v1beta1.FinalizerSnapshot}
		}
		if a := obs.Plan(nil).Actions; a.Finalizer != c.want {
			t.Errorf("%s: the finalizer changes by %d, want %d", name, a.Finalizer, c.want)
		}
	}
}

func TestJobCopiesAllShards(t *testing.T) {
	obs := observed(begun(""))
	obs.backup.Spec.RateLimit = &v1beta1.RateLimit{ItemsPerSecond: new(int32(10))}
	want := obs.Options.Job(transfer.JobSpec{
		Prefix: transfer.Backup, Owner: obs.backup, Store: obs.backup.Spec.Store, Action: snapshotwire.ActionSave, Basis: resources.BasisOf(&obs.Memcached.Spec), Memcached: obs.Memcached,
		Task: snapshotwire.Task{Path: "team/cache/nightly-11111111", Servers: obs.Memcached.Status.Servers, ItemsPerSecond: 10, BytesPerSecond: 32 << 20,
			Memcached: snapshotwire.Memcached{Namespace: "team", Name: "cache", UID: "m", Version: "1.6.45"}},
	})
	if diff := cmp.Diff(want, obs.NewJob()); diff != "" {
		t.Errorf("the Job (-want +got):\n%s", diff)
	}
	if got := obs.Summary(); got != "Job backup-11111111-2222 will copy 2 shards of Memcached cache" {
		t.Errorf("the summary is %q", got)
	}
}

func TestCompleteBackupHasSnapshot(t *testing.T) {
	snapshot := &snapshotwire.Snapshot{TakenAt: now, Shards: 2, Items: 100, Bytes: 5000, StoredBytes: 3000, FormatVersion: 1}
	for name, c := range map[string]struct {
		phase            v1beta1.TransferPhase
		snapshot         *snapshotwire.Snapshot
		summary, failure string
	}{
		"complete":                    {v1beta1.TransferComplete, snapshot, "copied 100 items of 2 shards to team/cache/nightly-11111111", ""},
		"complete without a snapshot": {v1beta1.TransferComplete, nil, "", "Job backup-11111111-2222 did not report its snapshot. Create another backup"},
		"failed":                      {v1beta1.TransferFailed, snapshot, "", ""},
	} {
		s := transfer.Status{TransferStatus: v1beta1.TransferStatus{Phase: c.phase}}
		s, summary, failure := observed().Record(s, &snapshotwire.Outcome{Snapshot: c.snapshot})
		if summary != c.summary || failure != c.failure || (s.Snapshot != nil) != (summary != "") {
			t.Errorf("%s: %q, %q, and the snapshot %+v", name, summary, failure, s.Snapshot)
		}
	}
}

// job returns what is observed of a Job of that age, with these pods.
func job(prefix transfer.Prefix, age time.Duration, edit func(*batchv1.Job), pods ...corev1.Pod) transfer.JobObservation {
	j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: transfer.JobName(prefix, "11111111-2222"), UID: "j", CreationTimestamp: metav1.NewTime(now.Add(-age))}}
	if edit != nil {
		edit(j)
	}
	return transfer.JobObservation{Name: j.Name, Job: j, Pods: pods, Now: now}
}

func has(kind batchv1.JobConditionType) func(*batchv1.Job) {
	return func(j *batchv1.Job) {
		j.Status.Conditions = []batchv1.JobCondition{{Type: kind, Status: corev1.ConditionTrue}}
	}
}

func podThat(phase corev1.PodPhase, state corev1.ContainerState) corev1.Pod {
	p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", CreationTimestamp: metav1.NewTime(now)}}
	p.Status.Phase, p.Status.ContainerStatuses = phase, []corev1.ContainerStatus{{Name: transfer.Container, State: state}}
	return p
}

func TestDeletionOfSnapshot(t *testing.T) {
	succeeded := podThat(corev1.PodSucceeded, corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: `{"reason":"Succeeded"}`}})
	stuck := podThat(corev1.PodPending, corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CreateContainerConfigError", Message: `secret "minio" not found`}})
	running := podThat(corev1.PodRunning, corev1.ContainerState{Running: &corev1.ContainerStateRunning{}})
	quota := apierrors.NewForbidden(schema.GroupResource{Resource: "jobs"}, "j", errors.New("exceeded quota"))
	terminating := apierrors.NewForbidden(schema.GroupResource{}, "j", errors.New("the namespace is being terminated"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	ran := func(obs *observation) { begun("j")(obs); obs.backup.Status.Progress = &v1beta1.TransferProgress{} }
	deletion := func(o transfer.JobObservation) func(*observation) {
		return func(obs *observation) { obs.deletion = o }
	}
	restricted := func(secret string) func(*observation) {
		return func(obs *observation) {
			obs.backup.Spec.Store = v1beta1.SnapshotStore{S3: &v1beta1.S3Store{Bucket: "b00", CredentialsSecretName: secret}}
			var err error
			if obs.Options.Restrictions, err = resources.ParseRestrictions(func(name string) string {
				return map[string]string{"ALLOWED_SECRET_PREFIXES": "memcached-"}[name]
			}); err != nil {
				t.Fatal(err)
			}
		}
	}
	copies := func(o transfer.JobObservation) func(*observation) {
		return func(obs *observation) { obs.Job = o }
	}
	const released, waits, creates = "released", "waits", "creates"
	for name, c := range map[string]struct {
		edits     []func(*observation)
		age       time.Duration
		want      string
		event     string // its reason
		words     string // of the event or of the message
		job       transfer.Action
		after     time.Duration
		rejection error
	}{
		"it has not begun":         {nil, 0, released, "", "", transfer.NoAction, 0, nil},
		"its Job runs":             {[]func(*observation){ran, copies(job(transfer.Backup, 0, nil, running))}, 0, waits, "", "waiting until Job backup-11111111-2222 has stopped", transfer.DeleteJob, deletionPoll, nil},
		"its Job is being deleted": {[]func(*observation){ran, copies(job(transfer.Backup, 0, func(j *batchv1.Job) { j.DeletionTimestamp = &metav1.Time{} }, running))}, 0, waits, "", "has stopped", transfer.NoAction, deletionPoll, nil},
		"its Job does not stop":    {[]func(*observation){ran, copies(job(transfer.Backup, 0, nil, running))}, deletionTimeout, released, v1beta1.EventSnapshotRetained, "has not stopped", transfer.NoAction, 0, nil},
		"there never was a Job":    {[]func(*observation){begun("")}, 0, released, "", "", transfer.NoAction, 0, nil},
		"no container of its Job has run": {[]func(*observation){begun("j"), func(obs *observation) {
			obs.backup.Status.Conditions = []metav1.Condition{{Type: v1beta1.ConditionSucceeded, Reason: v1beta1.ReasonJobCannotStart}}
		}}, 0, released, "", "", transfer.NoAction, 0, nil},
		"its policy was changed to Retain": {[]func(*observation){ran, func(obs *observation) { obs.backup.Spec.DeletionPolicy = v1beta1.SnapshotRetain }}, 0, released, "", "", transfer.NoAction, 0, nil},
		"its policy was changed to Retain when the deletion had begun": {[]func(*observation){ran, func(obs *observation) { obs.backup.Spec.DeletionPolicy = v1beta1.SnapshotRetain },
			deletion(job(transfer.Delete, 0, nil, running))}, 0, waits, "", "is running", transfer.NoAction, deletionPoll, nil},
		"its Job was deleted before it was seen to run": {[]func(*observation){begun("j")}, 0, creates, "", "", transfer.NoAction, deletionPoll, nil},
		"it is complete":               {[]func(*observation){ran, copies(job(transfer.Backup, time.Hour, has(batchv1.JobComplete)))}, 0, creates, "", "", transfer.NoAction, deletionPoll, nil},
		"a restore reads the snapshot": {[]func(*observation){ran, func(obs *observation) { obs.activeRestores = []string{"MemcachedRestore again"} }}, 0, waits, v1beta1.EventDeletionBlocked, "waiting until MemcachedRestore again has read the snapshot", transfer.NoAction, deletionPoll, nil},
		"its deletion has succeeded":   {[]func(*observation){ran, deletion(job(transfer.Delete, 0, has(batchv1.JobComplete), succeeded))}, 0, released, v1beta1.EventSnapshotDeleted, "directory cache/team/cache/nightly-11111111", transfer.NoAction, 0, nil},
		"its pod was deleted since":    {[]func(*observation){ran, deletion(job(transfer.Delete, 0, has(batchv1.JobComplete)))}, 0, released, v1beta1.EventSnapshotDeleted, "directory cache/team/cache/nightly-11111111", transfer.NoAction, 0, nil},
		"its deletion has failed":      {[]func(*observation){ran, deletion(job(transfer.Delete, 0, has(batchv1.JobFailed)))}, 0, released, v1beta1.EventSnapshotRetained, "kept the snapshot in directory cache/team/cache/nightly-11111111 of PersistentVolumeClaim snapshots, because it could not be deleted: JobFailed", transfer.NoAction, 0, nil},
		"its deletion has failed after a while": {[]func(*observation){ran, deletion(job(transfer.Delete, 0, func(j *batchv1.Job) { has(batchv1.JobFailed)(j); j.Status.Failed = 1 }))}, 0, released, v1beta1.EventSnapshotRetained,
			"data of the snapshot may remain in directory cache/team/cache/nightly-11111111 of PersistentVolumeClaim snapshots, because it could not be deleted: JobFailed", transfer.NoAction, 0, nil},
		"its deletion exceeds its deadline": {[]func(*observation){ran, deletion(job(transfer.Delete, 0, func(j *batchv1.Job) {
			j.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue, Reason: batchv1.JobReasonDeadlineExceeded}}
		}))}, 0, released, v1beta1.EventSnapshotRetained, "because it could not be deleted: DeadlineExceeded: it did not finish within its deadline", transfer.NoAction, 0, nil},
		"another's Job has the name":         {[]func(*observation){ran, deletion(transfer.JobObservation{Name: "delete-x", Foreign: true})}, 0, released, v1beta1.EventSnapshotRetained, "belongs to another object", transfer.NoAction, 0, nil},
		"its deletion runs":                  {[]func(*observation){ran, deletion(job(transfer.Delete, deletionTimeout, nil, running))}, deletionTimeout, waits, "", "is running", transfer.NoAction, deletionPoll, nil},
		"its deletion cannot start":          {[]func(*observation){ran, deletion(job(transfer.Delete, 0, nil, stuck))}, 0, waits, "", `secret "minio" not found`, transfer.NoAction, deletionPoll, nil},
		"its deletion outlives its deadline": {[]func(*observation){ran, deletion(job(transfer.Delete, deletionTimeout+deletionGrace, func(j *batchv1.Job) { j.Spec.Suspend = new(true) }))}, 0, released, v1beta1.EventSnapshotRetained, "is suspended", transfer.NoAction, 0, nil},
		"the Job that deletes is rejected":   {[]func(*observation){ran}, deletionTimeout - 1, waits, "", "exceeded quota", transfer.NoAction, apiserver.RejectionRecheck, quota},
		"it is rejected for ten minutes":     {[]func(*observation){ran}, deletionTimeout, released, v1beta1.EventSnapshotRetained, "exceeded quota", transfer.NoAction, 0, quota},
		"the namespace is being deleted":     {[]func(*observation){ran}, 0, released, v1beta1.EventSnapshotRetained, "is being terminated", transfer.NoAction, 0, terminating},
		"the settings don't allow its store": {[]func(*observation){ran, restricted("admin")}, 0, released, v1beta1.EventSnapshotRetained, "credentialsSecretName admin of the store isn't allowed: ALLOWED_SECRET_PREFIXES", transfer.NoAction, 0, nil},
		"the settings allow its store":       {[]func(*observation){ran, restricted("memcached-s3")}, 0, creates, "", "", transfer.NoAction, deletionPoll, nil},
		"its Memcached was deleted":          {[]func(*observation){ran, func(obs *observation) { obs.Memcached = nil }}, 0, creates, "", "", transfer.NoAction, deletionPoll, nil},
	} {
		t.Run(name, func(t *testing.T) {
			obs := observed(append(c.edits, deleted(c.age))...)
			p := obs.Plan(c.rejection)
			got, a := waits, p.Actions
			switch {
			case a.Finalizer == transfer.RemoveFinalizer:
				got = released
			case a.Create != nil:
				got = creates
			}
			if got != c.want || a.Job != c.job || got != released && a.RequeueAfter != c.after {
				t.Errorf("it %s, action %d, requeued after %s", got, a.Job, a.RequeueAfter)
			}
			var text string
			if c := meta.FindStatusCondition(p.Status.Conditions, v1beta1.ConditionReady); c != nil {
				text = c.Message
			}
			if c.event != "" {
				if len(p.Events) != 1 || p.Events[0].Reason != c.event {
					t.Fatalf("the events are %+v", p.Events)
				}
				text = p.Events[0].Message
			} else if len(p.Events) != 0 {
				t.Errorf("the events are %+v", p.Events)
			}
			if !strings.Contains(text, c.words) || strings.Contains(text, "Set a longer deadline") || strings.Contains(text, "Create another") { // not for a deletion
				t.Errorf("the message is %q", text)
			}
			if got == creates {
				if j := a.Create; j.Name != "delete-11111111-2222" || *j.Spec.ActiveDeadlineSeconds != transfer.DeleteDeadlineSeconds || len(j.Spec.Template.Spec.ImagePullSecrets) != 1 {
					t.Errorf("the Job is %+v", j)
				}
			}
		})
	}
	obs := observed(ran, deleted(0))
	obs.backup.Finalizers = nil
	if p := obs.Plan(nil); p.Actions != (transfer.Actions{}) || len(p.Events) != 0 {
		t.Errorf("without the finalizer: %+v", p)
	}
}

// A restore reads the snapshot of a backup by the backup's name, or by the path.
func TestObservationOfDeletionFindsActiveRestores(t *testing.T) {
	b := observed(begun("j"), deleted(0)).backup
	restore := func(name string, phase v1beta1.TransferPhase, edit func(*v1beta1.MemcachedRestoreSpec)) *v1beta1.MemcachedRestore {
		r := &v1beta1.MemcachedRestore{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name}}
		r.Status.Phase, r.Status.StartTime = phase, &metav1.Time{Time: now}
		r.Status.JobUID = "j"
		edit(&r.Spec)
		return r
	}
	byName := func(name string) func(*v1beta1.MemcachedRestoreSpec) {
		return func(s *v1beta1.MemcachedRestoreSpec) { s.BackupRef = &v1beta1.BackupReference{Name: name} }
	}
	byPath := func(path, subPath string) func(*v1beta1.MemcachedRestoreSpec) {
		return func(s *v1beta1.MemcachedRestoreSpec) {
			store := v1beta1.SnapshotStore{PersistentVolumeClaim: &v1beta1.PersistentVolumeClaimStore{ClaimName: "snapshots", SubPath: subPath}}
			s.Snapshot = &v1beta1.SnapshotSource{Path: path, Store: store}
		}
	}
	b.Spec.Store.PersistentVolumeClaim.FSGroup = new(int64(65532)) // a restore needs none
	path := transfer.SnapshotPath(b)
	restores := []client.Object{restore("by-name", v1beta1.TransferRunning, byName("nightly")), restore("by-path", v1beta1.TransferRunning, byPath(path, "cache")),
		restore("by-path-with-a-slash", v1beta1.TransferRunning, byPath(path+"/", "cache/")),
		restore("by-path-with-the-prefix", v1beta1.TransferRunning, byPath("cache/"+path, "")), restore("by-path-without-the-namespace", v1beta1.TransferRunning, byPath(strings.TrimPrefix(path, "team/"), "cache/team")),
		restore("complete", v1beta1.TransferComplete, byName("nightly")), restore("pending", v1beta1.TransferPending, byName("nightly")),
		restore("of-another", v1beta1.TransferRunning, byName("weekly")), restore("another-path", v1beta1.TransferRunning, byPath("team/cache/nightly-22222222", "cache")),
		restore("neither", v1beta1.TransferRunning, func(*v1beta1.MemcachedRestoreSpec) {})}
	live := fake.NewClientBuilder().WithScheme(simtest.Scheme()).WithObjects(restores...).Build()
	empty := fake.NewClientBuilder().WithScheme(simtest.Scheme()).Build()
	var want []string
	for _, name := range []string{"by-name", "by-path", "by-path-with-a-slash", "by-path-with-the-prefix", "by-path-without-the-namespace"} {
		want = append(want, "MemcachedRestore "+name)
	}
	// What the cache lacks is read from the API server before a Job deletes the snapshot.
	r := transfer.Observer{Cache: empty, API: live}
	obs, err := observe(t.Context(), r, transfer.Observation{Object: b, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, obs.activeRestores); diff != "" || obs.deletion.Name != "delete-11111111-2222" {
		t.Errorf("the restores of %s (-want +got):\n%s", obs.deletion.Name, diff)
	}
	for name, edit := range map[string]func(*v1beta1.MemcachedBackup){
		"no deletion":  func(b *v1beta1.MemcachedBackup) { b.DeletionTimestamp = nil },
		"no finalizer": func(b *v1beta1.MemcachedBackup) { b.Finalizers = nil },
	} {
		other := b.DeepCopy()
		edit(other)
		if obs, err := observe(t.Context(), r, transfer.Observation{Object: other, Now: now}); err != nil || obs.deletion.Name != "" || obs.activeRestores != nil {
			t.Errorf("%s: %v, %+v", name, err, obs)
		}
	}
}
