package transfer

import (
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/apiserver"
	"github.com/memcached-operator/memcached-operator/controllers/event"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	snapshotwire "github.com/memcached-operator/memcached-operator/internal/snapshot/wire"
)

// The operator may have been away between the status that says Running and the Job.
func TestTransferIsCheckedAgainBeforeItsJobIsCreated(t *testing.T) {
	wait := WaitFor(v1beta1.ReasonShardsStarting, "waiting")
	for name, c := range map[string]struct {
		blocker   *Blocker
		rejection error
		age       time.Duration // since it was created; it started a minute later
		phase     v1beta1.TransferPhase
		reason    string
		requeue   time.Duration
	}{
		"nothing blocks it":                    {nil, nil, time.Hour, v1beta1.TransferRunning, v1beta1.ReasonStarting, progressPoll},
		"it waits":                             {wait, nil, time.Hour, v1beta1.TransferPending, v1beta1.ReasonShardsStarting, time.Hour},
		"it waits until its deadline":          {wait, nil, 2 * time.Hour, v1beta1.TransferFailed, v1beta1.ReasonDeadlineExceeded, 0},
		"it never can":                         {Reject(v1beta1.ReasonMemcachedNotFound, "none"), nil, time.Hour, v1beta1.TransferFailed, v1beta1.ReasonMemcachedNotFound, 0},
		"it waits for a missing object":        {WaitForMissing(v1beta1.ReasonMemcachedNotFound, "none"), nil, 4 * time.Minute, v1beta1.TransferPending, v1beta1.ReasonMemcachedNotFound, time.Minute},
		"it has waited for it":                 {WaitForMissing(v1beta1.ReasonMemcachedNotFound, "none"), nil, 5 * time.Minute, v1beta1.TransferFailed, v1beta1.ReasonMemcachedNotFound, 0},
		"the API server rejects its Job":       {wait, terminating(), time.Hour, v1beta1.TransferRunning, v1beta1.ReasonStarting, 0},
		"it was rejected by another condition": {wait, errNotAllowed, time.Hour, v1beta1.TransferRunning, v1beta1.ReasonJobCannotStart, apiserver.RejectionRecheck},
	} {
		t.Run(name, func(t *testing.T) {
			b := begun(runs)
			b.CreationTimestamp, b.Status.StartTime = metav1.NewTime(now), &metav1.Time{Time: now.Add(time.Minute)}
			b.Spec.DeadlineSeconds = new(int32((2 * time.Hour).Seconds()))
			p := stub{Observation: Observation{Object: b, Now: now.Add(c.age)}, blocker: c.blocker}.Plan(c.rejection)
			s := p.Status
			if s.Phase != c.phase || s.Reason() != c.reason || !s.IsFinished() && p.Actions.RequeueAfter != c.requeue {
				t.Errorf("it is %s (%s), and requeued after %s", s.Phase, s.Reason(), p.Actions.RequeueAfter)
			}
			if creates := c.blocker == nil && c.rejection == nil; (p.Actions.Create != nil) != creates {
				t.Errorf("it creates the Job: %t", p.Actions.Create != nil)
			}
			if isPending := s.Phase == v1beta1.TransferPending; (s.JobName == "") != isPending || (s.StartTime == nil) != isPending {
				t.Errorf("it has started Job %q at %v", s.JobName, s.StartTime)
			}
		})
	}
}

// The pod of a node that doesn't respond terminates only when the node is deleted.
func TestTransferWhoseJobNeverStopsFails(t *testing.T) {
	for age, want := range map[time.Duration]v1beta1.TransferPhase{2*time.Hour + 9*time.Minute: v1beta1.TransferRunning, 2*time.Hour + 10*time.Minute: v1beta1.TransferFailed} {
		b := begun(runs)
		b.Status.StartTime, b.Spec.DeadlineSeconds = &metav1.Time{Time: now}, new(int32(3600))
		obs := Observation{Object: b, Job: jobObservation(0, func(j *batchv1.Job) { j.DeletionTimestamp = &metav1.Time{Time: now} }), Now: now.Add(age)}
		if s := (stub{Observation: obs}).Plan(nil).Status; s.Phase != want || s.IsFinished() && s.Reason() != v1beta1.ReasonDeadlineExceeded {
			t.Errorf("after %s it is %s (%s)", age, s.Phase, s.Reason())
		}
	}
}

// Objects may be created in any order. One that doesn't exist is waited for as long as a pod waits for a claim.
func TestTransferWaitsForMissingObject(t *testing.T) {
	for name, c := range map[string]struct {
		deadline, age time.Duration
		phase         v1beta1.TransferPhase
		requeue       time.Duration
	}{
		"at first":                     {time.Hour, 0, v1beta1.TransferPending, 5 * time.Minute},
		"until five minutes have gone": {time.Hour, 5*time.Minute - 1, v1beta1.TransferPending, 1},
		"after five minutes":           {time.Hour, 5 * time.Minute, v1beta1.TransferFailed, 0},
		"until its deadline":           {time.Minute, time.Minute - 1, v1beta1.TransferPending, 1},
		"after its deadline":           {time.Minute, time.Minute, v1beta1.TransferFailed, 0},
	} {
		b := begun(v1beta1.TransferStatus{})
		b.CreationTimestamp, b.Spec.DeadlineSeconds = metav1.NewTime(now), new(int32(c.deadline.Seconds()))
		p := stub{Observation: Observation{Object: b, Now: now.Add(c.age)}, blocker: WaitForMissing(v1beta1.ReasonBackupNotFound, "none")}.Plan(nil)
		if p.Status.Phase != c.phase || p.Status.Reason() != v1beta1.ReasonBackupNotFound || p.Actions.RequeueAfter != c.requeue {
			t.Errorf("%s: it is %s (%s), and requeued after %s", name, p.Status.Phase, p.Status.Reason(), p.Actions.RequeueAfter)
		}
	}
}

var errNotAllowed = apiError("exceeded quota")

type apiError string

func (e apiError) Error() string { return string(e) }

func TestResultOfJobIsReported(t *testing.T) {
	succeeded := finished(batchv1.JobComplete, "")
	report := func(text string) corev1.Pod {
		return pod(0, corev1.PodSucceeded, terminatedState(0, "Completed", text))
	}
	for name, c := range map[string]struct {
		job     JobObservation
		failure string
		phase   v1beta1.TransferPhase
		reason  string
		words   string
		event   event.Event
		percent int32
	}{
		"success": {jobObservation(0, succeeded, report(`{"reason":"Succeeded","items":100,"totalItems":100}`)), "",
			v1beta1.TransferComplete, v1beta1.ReasonSucceeded, "", event.Normal(v1beta1.EventBackupComplete, "copied all"), 100},
		"success without what the kind needs": {jobObservation(0, succeeded, report(`{"reason":"Succeeded"}`)), "no snapshot",
			v1beta1.TransferFailed, v1beta1.ReasonJobFailed, "no snapshot", event.Warning(v1beta1.EventBackupFailed, "JobFailed: no snapshot"), 100},
		"a failure after 30 of 100 items": {jobObservation(0, finished(batchv1.JobFailed, ""), pod(0, corev1.PodFailed, terminatedState(3, "Error", `{"reason":"StoreFull","message":"full","items":30,"totalItems":100}`))), "",
			v1beta1.TransferFailed, v1beta1.ReasonStoreFull, "full", event.Warning(v1beta1.EventBackupFailed, "StoreFull: full"), 30},
		"a deadline": {jobObservation(0, finished(batchv1.JobFailed, batchv1.JobReasonDeadlineExceeded)), "",
			v1beta1.TransferFailed, v1beta1.ReasonDeadlineExceeded, "it did not finish within its deadline. Set a longer deadline", event.Event{}, 0},
		"a reason that isn't one": {jobObservation(0, succeeded, report(`{"reason":"not a reason!","message":"x"}`)), "",
			v1beta1.TransferFailed, v1beta1.ReasonJobFailed, "x", event.Warning(v1beta1.EventBackupFailed, "JobFailed: x"), 0},
		"a Job that was deleted": {JobObservation{}, "",
			v1beta1.TransferFailed, v1beta1.ReasonJobDeleted, "was deleted before it finished", event.Warning(v1beta1.EventBackupFailed, "JobDeleted: Job backup-u was deleted before it finished. Create another MemcachedBackup"), 0},
		"a Job of another owner": {JobObservation{Name: "backup-u", Foreign: true}, "",
			v1beta1.TransferFailed, v1beta1.ReasonJobCannotStart, "belongs to another object. Create another MemcachedBackup", event.Event{}, 0},
		"a pod that the kubelet evicted": {jobObservation(0, finished(batchv1.JobFailed, ""), pod(0, corev1.PodFailed, corev1.ContainerState{}, func(p *corev1.Pod) {
			p.Status.Reason, p.Status.Message = "Evicted", "The node was low on resource: memory. "
		})), "",
			v1beta1.TransferFailed, v1beta1.ReasonJobFailed, "resource: memory. Create another MemcachedBackup", event.Event{}, 0},
		"a Job whose pod was deleted": {jobObservation(0, succeeded), "",
			v1beta1.TransferFailed, v1beta1.ReasonJobFailed, "could read the result. Create another MemcachedBackup", event.Event{}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			status := runs
			status.JobUID, status.JobName = "u", "backup-u"
			p := stub{Observation: observation(status, c.job), failure: c.failure}.Plan(nil)
			s := p.Status
			if s.Phase != c.phase || s.Reason() != c.reason || !strings.Contains(s.Message(), c.words) || s.CompletionTime == nil || p.Actions.RequeueAfter != 0 {
				t.Errorf("it is %s (%s): %s, at %v, and requeued after %s", s.Phase, s.Reason(), s.Message(), s.CompletionTime, p.Actions.RequeueAfter)
			}
			if len(p.Events) != 1 || c.event != (event.Event{}) && p.Events[0] != c.event {
				t.Errorf("the events are %+v", p.Events)
			}
			if s.Progress != nil && s.Progress.Percent != c.percent || s.Progress == nil && c.percent > 0 {
				t.Errorf("the progress is %+v", s.Progress)
			}
			conditions := map[string]metav1.ConditionStatus{}
			for _, condition := range s.Conditions {
				conditions[condition.Type] = condition.Status
			}
			complete, failed := metav1.ConditionTrue, metav1.ConditionFalse
			if c.phase == v1beta1.TransferFailed {
				complete, failed = failed, complete
			}
			want := map[string]metav1.ConditionStatus{v1beta1.ConditionSucceeded: complete, v1beta1.ConditionReady: complete,
				v1beta1.ConditionStalled: failed, v1beta1.ConditionReconciling: metav1.ConditionFalse}
			if diff := cmp.Diff(want, conditions); diff != "" {
				t.Errorf("the conditions (-want +got):\n%s", diff)
			}
		})
	}
}

// The last known progress stays while a pod doesn't answer, and the first one is empty.
func TestStatusKeepsLastProgress(t *testing.T) {
	copying := jobObservation(time.Minute, nil, pod(time.Minute, corev1.PodRunning, corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}))
	answers := copying
	answers.Progress = &snapshotwire.Progress{Items: 50, TotalItems: 200, Bytes: 10, ItemsPerSecond: 5}
	s := after(runs, jobObservation(0, nil, pod(0, corev1.PodPending, waiting("ContainerCreating", ""))), 0)
	if s.Progress != nil {
		t.Errorf("a pod that has not run has progress %+v", s.Progress)
	}
	s = after(s, copying, 0)
	if s.Progress == nil || *s.Progress != (v1beta1.TransferProgress{}) {
		t.Errorf("a pod that does not answer has progress %+v", s.Progress)
	}
	want := &v1beta1.TransferProgress{Items: 50, TotalItems: 200, Bytes: 10, Percent: 25, ItemsPerSecond: 5}
	for _, job := range []JobObservation{answers, copying} {
		s = after(s, job, 0)
		if diff := cmp.Diff(want, s.Progress); diff != "" {
			t.Errorf("the progress (-want +got):\n%s", diff)
		}
	}
}

func TestSuspendedJobIsDeletedAtItsDeadline(t *testing.T) {
	suspended := func(age time.Duration) JobObservation {
		return jobObservation(age, func(j *batchv1.Job) {
			j.Spec.Suspend, j.Spec.ActiveDeadlineSeconds = new(true), new(int64(3600))
		})
	}
	status := runs
	status.JobUID = "u"
	for age, want := range map[time.Duration]Action{time.Hour - time.Second: NoAction, time.Hour: DeleteJob} {
		p := stub{Observation: observation(status, suspended(age))}.Plan(nil)
		if s := p.Status; p.Actions.Job != want || s.Reason() != v1beta1.ReasonJobCannotStart || !strings.Contains(s.Message(), "spec.suspend") {
			t.Errorf("after %s: action %d, %s: %s", age, p.Actions.Job, s.Reason(), s.Message())
		}
	}
}

func TestNoJobUsesCredentialsThatTheSettingsDontAllow(t *testing.T) {
	restrictions, err := resources.ParseRestrictions(func(name string) string {
		return map[string]string{"ALLOWED_SECRET_PREFIXES": "memcached-", "ALLOWED_SERVICE_ACCOUNTS": "memcached"}[name]
	})
	if err != nil {
		t.Fatal(err)
	}
	m := cache()
	for name, c := range map[string]struct {
		auth  v1beta1.AuthSpec
		store v1beta1.S3Store
		want  string // empty if it is allowed
	}{
		"another Secret of the Memcached": {v1beta1.AuthSpec{Mode: v1beta1.AuthRequired, SecretName: "admin-token"}, v1beta1.S3Store{}, "Memcached cache: spec.auth with the Secret admin-token isn't allowed: ALLOWED_SECRET_PREFIXES"},
		"its Secret":                      {v1beta1.AuthSpec{Mode: v1beta1.AuthRequired, SecretName: "memcached-users"}, v1beta1.S3Store{}, ""},
		"another key":                     {v1beta1.AuthSpec{}, v1beta1.S3Store{CredentialsSecretName: "admin"}, "credentialsSecretName admin of the store isn't allowed: ALLOWED_SECRET_PREFIXES of the operator is memcached-"},
		"another CA":                      {v1beta1.AuthSpec{}, v1beta1.S3Store{CredentialsSecretName: "memcached-s3", CASecretName: "admin"}, "caSecretName admin of the store isn't allowed: ALLOWED_SECRET_PREFIXES"},
		"another account":                 {v1beta1.AuthSpec{}, v1beta1.S3Store{ServiceAccountName: "admin"}, "serviceAccountName admin of the store isn't allowed: ALLOWED_SERVICE_ACCOUNTS of the operator is memcached;"},
		"a key":                           {v1beta1.AuthSpec{}, v1beta1.S3Store{CredentialsSecretName: "memcached-s3", CASecretName: "memcached-ca"}, ""},
		"an account":                      {v1beta1.AuthSpec{}, v1beta1.S3Store{ServiceAccountName: "memcached"}, ""},
	} {
		m.Spec.Auth = c.auth
		blocker := Observation{Memcached: m, Options: Options{Restrictions: restrictions}}.NotAllowed(v1beta1.SnapshotStore{S3: &c.store})
		switch {
		case c.want == "" && blocker != nil:
			t.Errorf("%s: %s", name, blocker.Message)
		case c.want != "" && (blocker == nil || blocker.Reason != v1beta1.ReasonNotAllowed || !blocker.Transient || !strings.Contains(blocker.Message, c.want)):
			t.Errorf("%s: %+v", name, blocker)
		}
	}
}

// A Job would copy the items of another owner's server, or write into it.
func TestTransferWaitsForTheServiceOfEachShard(t *testing.T) {
	const first, second, other = "cache-0.team.svc.cluster.local:11211", "cache-1.team.svc.cluster.local:11211", "cache-2.team.svc.cluster.local:11211"
	m := cache()
	m.UID = "m"
	former := m.DeepCopy()
	former.UID = "f"
	service := func(m *v1beta1.Memcached, ordinal int) client.Object {
		s := &corev1.Service{ObjectMeta: resources.OwnedMeta(m)}
		s.Name = resources.ShardName(m.Name, ordinal)
		return s
	}
	ours := []client.Object{service(m, 0), service(m, 1)}
	elsewhere := service(m, 1)
	elsewhere.SetNamespace("other")
	for name, c := range map[string]struct {
		servers  []string
		services []client.Object
		shards   []int32 // that are restored
		want     string
	}{
		"all":                           {[]string{first, second}, ours, nil, ""},
		"one isn't listed":              {[]string{first}, ours, nil, "status.servers"},
		"the first isn't":               {[]string{second, other}, ours, nil, "status.servers"},
		"one too many is":               {[]string{first, second, other}, ours, nil, "status.servers"},
		"in another order":              {[]string{second, first}, ours, nil, "status.servers"},
		"one has no Service of its own": {[]string{first, second}, ours[:1], nil, "manage a Service cache-1"},
		"one has that of a former one":  {[]string{first, second}, []client.Object{ours[0], service(former, 1)}, nil, "manage a Service cache-1"},
		"one is in another namespace":   {[]string{first, second}, []client.Object{ours[0], elsewhere}, nil, "manage a Service cache-1"},
		"the other one is restored":     {[]string{first, second}, ours[:1], []int32{0}, ""},
		"the one without it is, too":    {[]string{first, second}, ours[:1], []int32{0, 1}, "manage a Service cache-1"},
	} {
		m.Spec.Size, m.Status.Servers = new(int32(2)), c.servers
		b := newFixture(t, append(slices.Clone(c.services), m.DeepCopy())...)
		obs, err := b.observer().observe(t.Context(), begun(v1beta1.TransferStatus{Phase: v1beta1.TransferPending}), Options{})
		if err != nil {
			t.Fatal(err)
		}
		blocker := obs.Unreachable(c.shards...)
		if (blocker == nil) != (c.want == "") || blocker != nil &&
			(!blocker.Transient || blocker.Reason != v1beta1.ReasonShardsStarting || !strings.Contains(blocker.Message, c.want)) {
			t.Errorf("%s: it is blocked by %+v", name, blocker)
		}
	}
}

func TestSnapshotOfEachBackupHasItsOwnPath(t *testing.T) {
	b := begun(v1beta1.TransferStatus{})
	if got := SnapshotPath(b); got != "team/cache/nightly-11111111" {
		t.Errorf("the path is %s", got)
	}
	b.UID = "short"
	if got := SnapshotPath(b); got != "team/cache/nightly-short" {
		t.Errorf("the path is %s", got)
	}
	// 1.1.0 stored it under its name in S3, and failed on a volume.
	b.Name = strings.Repeat("n", 253)
	for store, want := range map[*v1beta1.SnapshotStore]int{&claim: 255, &s3: len(b.Name + "-short")} {
		b.Spec.Store = *store
		if got := path.Base(SnapshotPath(b)); len(got) != want || !strings.HasSuffix(got, "n-short") {
			t.Errorf("the directory in %+v is %s, of %d bytes", store, got, len(got))
		}
	}
}

// A year of more than four digits, which the API server rejects, has no place in a status.
func TestSnapshotIsReportedAsTheAPIServerAcceptsIt(t *testing.T) {
	if SnapshotOf(nil, "p") != nil {
		t.Error("there is a snapshot without a report of one")
	}
	taken := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	want := &v1beta1.SnapshotStatus{Path: "p", SnapshotTime: metav1.NewTime(taken), Shards: 2, Items: 100, Bytes: 5000, StoredBytes: 3000, FormatVersion: 1}
	if diff := cmp.Diff(want, SnapshotOf(&snapshotwire.Snapshot{TakenAt: taken, Shards: 2, Items: 100, Bytes: 5000, StoredBytes: 3000, FormatVersion: 1}, "p")); diff != "" {
		t.Errorf("the snapshot (-want +got):\n%s", diff)
	}
	for _, at := range []time.Time{{}, time.Date(9999, 12, 31, 23, 59, 59, 0, time.FixedZone("", -10*3600))} {
		if got := SnapshotOf(&snapshotwire.Snapshot{TakenAt: at}, "p").SnapshotTime; got.UTC().Year() > 9999 {
			t.Errorf("%s is reported as %s", at, got)
		}
	}
}

func TestSizeOfCacheIsThatOfItsShards(t *testing.T) {
	m := cache()
	if got := CacheSizeOf(m); got != (CacheSize{}) {
		t.Errorf("it is %+v", got)
	}
	m.Spec.Size, m.Spec.Memory = new(int32(3)), new(resource.MustParse("64Mi"))
	m.Status.Servers = []string{"cache-0.team.svc:11211", "cache-1.team.svc:11211"}
	for paused, shards := range map[bool]int64{false: 3, true: 2} {
		m.Spec.Paused = paused
		if got := CacheSizeOf(m); got != (CacheSize{Shards: shards, Memory: 64 << 20}) {
			t.Errorf("paused %t: it is %+v", paused, got)
		}
	}
}

func TestDeletionThatWaitsLeavesSucceeded(t *testing.T) {
	obs := observation(runs, JobObservation{})
	obs.Object.SetGeneration(3)
	failed := obs.LastStatus()
	failed.TransferStatus = finish(failed.TransferStatus, obs, v1beta1.TransferFailed, v1beta1.ReasonStoreFull, "full")
	s := WithStart(WithDeletion(failed, obs, strings.Repeat("x", 2000)), JobState{Started: true})
	ready := meta.FindStatusCondition(s.Conditions, v1beta1.ConditionReady)
	if len(ready.Message) > maxMessage || ready.Reason != v1beta1.ReasonDeleting || ready.Status != metav1.ConditionFalse || s.Progress == nil ||
		!meta.IsStatusConditionTrue(s.Conditions, v1beta1.ConditionReconciling) || meta.IsStatusConditionTrue(s.Conditions, v1beta1.ConditionStalled) {
		t.Errorf("the status is %+v", s)
	}
	if s.Reason() != v1beta1.ReasonStoreFull || s.Message() != "full" {
		t.Errorf("Succeeded is %s: %s", s.Reason(), s.Message())
	}
}
