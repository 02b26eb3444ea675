package transfer

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	snapshotwire "github.com/memcached-operator/memcached-operator/internal/snapshot/wire"
)

var now = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// jobObservation returns a Job of that age with these pods, the newest first.
func jobObservation(age time.Duration, edit func(*batchv1.Job), pods ...corev1.Pod) JobObservation {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "backup-u", UID: "u", CreationTimestamp: metav1.NewTime(now.Add(-age))}}
	if edit != nil {
		edit(job)
	}
	return JobObservation{Name: "backup-u", Job: job, Pods: pods, Now: now}
}

// pod returns a pod of that age.
func pod(age time.Duration, phase corev1.PodPhase, state corev1.ContainerState, edits ...func(*corev1.Pod)) corev1.Pod {
	p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "backup-u-x", CreationTimestamp: metav1.NewTime(now.Add(-age))}}
	p.Spec.NodeName = "node1"
	p.Status.Phase = phase
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: Container, State: state}}
	for _, edit := range edits {
		edit(&p)
	}
	return p
}

func waiting(reason, message string) corev1.ContainerState {
	return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
}

func finished(kind batchv1.JobConditionType, reason string) func(*batchv1.Job) {
	return func(job *batchv1.Job) {
		job.Status.Conditions = []batchv1.JobCondition{{Type: kind, Status: corev1.ConditionTrue, Reason: reason, Message: "the Job controller says so"}}
	}
}

func terminatedState(code int32, reason, message string) corev1.ContainerState {
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason, Message: message}}
}

// twice lets a Job retry twice, but no failure that is final.
func twice(job *batchv1.Job) {
	job.Spec.BackoffLimit, job.Spec.PodFailurePolicy = new(int32(2)), failurePolicy()
}

// beside adds containers in that state before and after that of a pod.
func beside(state corev1.ContainerState, p corev1.Pod) corev1.Pod {
	own := p.Status.ContainerStatuses
	p.Status.ContainerStatuses = append([]corev1.ContainerStatus{{Name: "proxy", State: state}}, append(own, corev1.ContainerStatus{Name: "log", State: state})...)
	return p
}

// A pod that is deleted with the grace period of a save ends once only another container keeps it.
func TestPodThatIsDeletedEndsWhenItsSaveHasStopped(t *testing.T) {
	running, stopped := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}, terminatedState(143, "Error", "")
	for name, c := range map[string]struct {
		state corev1.ContainerState
		grace int64
		ends  bool
	}{
		"it still deletes its chunks":       {running, 540, false},
		"another container keeps the pod":   {stopped, 540, true},
		"the pod was already given so much": {stopped, endPodGrace, false},
	} {
		obs := jobObservation(time.Hour, twice, beside(running, pod(time.Minute, corev1.PodRunning, c.state, func(p *corev1.Pod) {
			p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &metav1.Time{Time: now}, &c.grace
		})))
		if got := evaluate(obs, v1beta1.SnapshotStore{}); (got.EndPod != nil) != c.ends || got.Stage != Starting {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestEvaluateReturnsStateOfJob(t *testing.T) {
	unschedulable := func(p *corev1.Pod) {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
			Message: `persistentvolumeclaim "snapshots" not found`}}
	}
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	outcome, success := `{"reason":"ShardUnreachable","message":"shard 1 does not answer"}`, `{"reason":"Succeeded","items":3}`
	for name, test := range map[string]struct {
		job    JobObservation
		stage  Stage
		reason string
		words  string
		since  time.Duration
	}{
		"there is no Job":           {job: JobObservation{}, stage: Absent},
		"the Job has another owner": {JobObservation{Name: "backup-u", Foreign: true}, Foreign, v1beta1.ReasonJobCannotStart, "Job backup-u already exists", 0},
		"it is being deleted":       {job: jobObservation(0, func(j *batchv1.Job) { j.DeletionTimestamp = &metav1.Time{} }), stage: Terminating},
		"it is suspended":           {jobObservation(time.Hour, func(j *batchv1.Job) { j.Spec.Suspend = new(true) }), Starting, v1beta1.ReasonStarting, "spec.suspend", 0},
		"it has no pod yet":         {jobObservation(time.Second, nil), Starting, v1beta1.ReasonStarting, "no pod yet", time.Second},
		"the API server rejects its pod": {func() JobObservation {
			obs := jobObservation(time.Second, nil)
			obs.Rejection = errNotAllowed
			return obs
		}(), Stuck, v1beta1.ReasonJobCannotStart, errNotAllowed.Error(), time.Second},
		"it gets no pod":                                    {jobObservation(time.Minute, nil), Stuck, v1beta1.ReasonJobCannotStart, "kubectl describe job backup-u -n shop", time.Minute},
		"it has no pod between tries":                       {jobObservation(time.Hour, func(j *batchv1.Job) { j.Status.Failed = 1 }), Starting, v1beta1.ReasonStarting, "no pod yet", time.Hour},
		"its pod starts":                                    {jobObservation(time.Hour, nil, pod(time.Second, corev1.PodPending, waiting("ContainerCreating", ""))), Starting, v1beta1.ReasonStarting, "is starting", time.Second},
		"its volume is not mounted":                         {jobObservation(time.Hour, nil, pod(time.Minute, corev1.PodPending, waiting("ContainerCreating", ""))), Stuck, v1beta1.ReasonJobCannotStart, "PersistentVolumeClaim snapshots exists and can be mounted: kubectl describe pod backup-u-x -n shop", time.Minute},
		"its claim is missing":                              {jobObservation(time.Hour, nil, pod(time.Second, corev1.PodPending, corev1.ContainerState{}, unschedulable)), Stuck, v1beta1.ReasonJobCannotStart, `"snapshots" not found`, time.Second},
		"its Secret is missing":                             {jobObservation(time.Hour, nil, pod(time.Second, corev1.PodPending, waiting("CreateContainerConfigError", `secret "s" not found`))), Stuck, v1beta1.ReasonJobCannotStart, `CreateContainerConfigError: secret "s" not found`, time.Second},
		"its image cannot be pulled":                        {jobObservation(time.Hour, nil, pod(time.Second, corev1.PodPending, waiting("ImagePullBackOff", ""))), Stuck, v1beta1.ReasonJobCannotStart, "ImagePullBackOff", time.Second},
		"no scheduler processes it":                         {jobObservation(time.Hour, nil, pod(time.Minute, corev1.PodPending, corev1.ContainerState{}, func(p *corev1.Pod) { p.Spec.NodeName = "" })), Stuck, v1beta1.ReasonJobCannotStart, "no scheduler", time.Minute},
		"its pod is running":                                {jobObservation(time.Hour, nil, pod(time.Minute, corev1.PodRunning, running)), Copying, v1beta1.ReasonCopying, "is running", 0},
		"its pod has just succeeded":                        {jobObservation(time.Hour, nil, pod(time.Minute, corev1.PodSucceeded, terminatedState(0, "Completed", success))), Succeeded, v1beta1.ReasonSucceeded, "", 0},
		"it succeeded beside a container that runs on":      {jobObservation(time.Hour, twice, beside(running, pod(time.Minute, corev1.PodRunning, terminatedState(0, "Completed", success)))), Succeeded, v1beta1.ReasonSucceeded, "", 0},
		"it succeeded beside a container that fails":        {jobObservation(time.Hour, twice, beside(terminatedState(1, "Error", ""), pod(time.Minute, corev1.PodFailed, terminatedState(0, "Completed", success)))), Succeeded, v1beta1.ReasonSucceeded, "", 0},
		"it succeeded, and a container ran on for too long": {jobObservation(0, finished(batchv1.JobFailed, batchv1.JobReasonDeadlineExceeded), beside(terminatedState(137, "Error", ""), pod(time.Minute, corev1.PodFailed, terminatedState(0, "Completed", success)))), Succeeded, v1beta1.ReasonSucceeded, "", 0},
		"it succeeded, and its pod is evicted":              {jobObservation(time.Hour, twice, pod(time.Minute, corev1.PodRunning, terminatedState(0, "Completed", success), func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{} })), Succeeded, v1beta1.ReasonSucceeded, "", 0},
		"another container starts first":                    {jobObservation(time.Hour, twice, beside(running, pod(time.Second, corev1.PodRunning, waiting("PodInitializing", "")))), Starting, v1beta1.ReasonStarting, "is starting", time.Second},
		"another container can't be pulled":                 {jobObservation(time.Hour, twice, beside(waiting("ErrImagePull", "no proxy"), pod(time.Second, corev1.PodPending, waiting("PodInitializing", "")))), Stuck, v1beta1.ReasonJobCannotStart, "no proxy", time.Second},
		"it copies beside another container":                {jobObservation(time.Hour, twice, beside(terminatedState(1, "Error", ""), pod(time.Minute, corev1.PodRunning, running))), Copying, v1beta1.ReasonCopying, "", 0},
		"a failure beside a container that runs on":         {jobObservation(time.Hour, twice, beside(running, pod(time.Minute, corev1.PodRunning, terminatedState(1, "Error", outcome)))), Starting, v1beta1.ReasonStarting, "shard 1 does not answer. The Job will retry", 0},
		"a final failure beside a container that runs on":   {jobObservation(time.Hour, twice, beside(running, pod(time.Minute, corev1.PodRunning, terminatedState(snapshotwire.ExitFinal, "Error", outcome)))), Failed, v1beta1.ReasonShardUnreachable, "shard 1 does not answer", 0},
		"the last failure beside a container that runs on":  {jobObservation(time.Hour, func(j *batchv1.Job) { twice(j); j.Status.Failed = 2 }, beside(running, pod(time.Minute, corev1.PodRunning, terminatedState(1, "Error", outcome)))), Failed, v1beta1.ReasonShardUnreachable, "shard 1 does not answer", 0},
		"its pod is evicted":                                {jobObservation(time.Hour, nil, pod(time.Minute, corev1.PodRunning, running, func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{} })), Starting, v1beta1.ReasonStarting, "will be replaced", 0},
		"the Job will retry":                                {jobObservation(time.Hour, nil, pod(time.Minute, corev1.PodFailed, terminatedState(1, "Error", outcome))), Starting, v1beta1.ReasonStarting, "(ShardUnreachable): shard 1 does not answer. The Job will retry", 0},
		"it succeeded":                                      {jobObservation(0, finished(batchv1.JobComplete, ""), pod(0, corev1.PodSucceeded, terminatedState(0, "Completed", `{"reason":"Succeeded","items":3}`))), Succeeded, v1beta1.ReasonSucceeded, "", 0},
		"it failed":                                         {jobObservation(0, finished(batchv1.JobFailed, batchv1.JobReasonBackoffLimitExceeded), pod(0, corev1.PodFailed, terminatedState(1, "Error", outcome))), Failed, v1beta1.ReasonShardUnreachable, "shard 1 does not answer", 0},
		"it failed without a pod":                           {jobObservation(0, finished(batchv1.JobFailed, batchv1.JobReasonBackoffLimitExceeded)), Failed, v1beta1.ReasonJobFailed, "the Job controller says so", 0},
		"its pod was evicted for good": {jobObservation(0, finished(batchv1.JobFailed, ""), pod(0, corev1.PodFailed, corev1.ContainerState{}, func(p *corev1.Pod) {
			p.Status.Reason, p.Status.Message = "Evicted", "The node was low on resource: ephemeral-storage."
		})), Failed, v1beta1.ReasonJobFailed, "Evicted: The node was low on resource", 0},
		"it exceeded its memory limit": {jobObservation(0, finished(batchv1.JobFailed, ""), pod(0, corev1.PodFailed, terminatedState(137, "OOMKilled", ""))), Failed, v1beta1.ReasonJobFailed, "exceeded its memory limit", 0},
		"a message that is no outcome": {jobObservation(0, finished(batchv1.JobFailed, ""), pod(0, corev1.PodFailed, terminatedState(2, "Error", "panic: x"))), Failed, v1beta1.ReasonJobFailed, "panic: x", 0},
		"it exceeded its deadline and reported why": {jobObservation(0, finished(batchv1.JobFailed, batchv1.JobReasonDeadlineExceeded), pod(0, corev1.PodFailed, terminatedState(1, "Error", outcome))), Failed, v1beta1.ReasonDeadlineExceeded,
			"Its last pod reported ShardUnreachable", 0},
	} {
		t.Run(name, func(t *testing.T) {
			v := Evaluate(test.job, claim)
			if v.Stage != test.stage || v.Reason != test.reason || !strings.Contains(v.Message, test.words) {
				t.Errorf("stage %d (%s): %s", v.Stage, v.Reason, v.Message)
			}
			if test.since != 0 && now.Sub(v.Since) != test.since {
				t.Errorf("since %s", v.Since)
			}
		})
	}
}

// stub is a transfer that nothing blocks unless it says so.
type stub struct {
	Observation
	blocker *Blocker
	failure string
}

func (s stub) Blocker() *Blocker            { return s.blocker }
func (s stub) Summary() string              { return "" }
func (s stub) Store() v1beta1.SnapshotStore { return claim }
func (s stub) Plan(rejection error) Plan    { return MakePlan(s, rejection) }
func (s stub) NewJob() *batchv1.Job {
	return s.Options.Job(JobSpec{Prefix: Backup, Owner: s.Object, Store: claim, Action: snapshotwire.ActionSave, Basis: s.Basis()})
}

func (s stub) Record(is Status, _ *snapshotwire.Outcome) (recorded Status, summary, failure string) {
	return is, "copied all", s.failure
}

// observation returns one of a backup that has this status.
func observation(s v1beta1.TransferStatus, job JobObservation) Observation {
	b := owner.DeepCopy()
	b.Generation, b.Status.TransferStatus = 1, s
	return Observation{Object: b, Job: job, Now: now}
}

func TestPlanActsOnJob(t *testing.T) {
	run := func(phase v1beta1.TransferPhase, uid string) v1beta1.TransferStatus {
		return v1beta1.TransferStatus{Phase: phase, JobUID: uid}
	}
	copied := run(v1beta1.TransferRunning, "u")
	copied.Progress = &v1beta1.TransferProgress{}
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	expires, success := finished(batchv1.JobComplete, ""), terminatedState(0, "Completed", `{"reason":"Succeeded"}`)
	complete := run(v1beta1.TransferComplete, "u")
	complete.CompletionTime = &metav1.Time{Time: now.Add(-59 * time.Second)}
	for name, test := range map[string]struct {
		status v1beta1.TransferStatus
		job    JobObservation
		want   Action
	}{
		"before it starts":                               {run("", ""), JobObservation{}, NoAction},
		"it has started":                                 {run(v1beta1.TransferRunning, ""), JobObservation{}, NoAction},
		"the Job was deleted":                            {run(v1beta1.TransferRunning, "u"), JobObservation{}, NoAction},
		"the Job runs":                                   {run(v1beta1.TransferRunning, "u"), jobObservation(time.Hour, nil, pod(time.Hour, corev1.PodRunning, running)), NoAction},
		"the Job has had no pod for a short time":        {run(v1beta1.TransferRunning, "u"), jobObservation(StuckTimeout-time.Second, nil), NoAction},
		"the Job gets no pod":                            {run(v1beta1.TransferRunning, "u"), jobObservation(StuckTimeout, nil), DeleteJob},
		"the Job has just lost its pod":                  {copied, jobObservation(time.Hour, nil), NoAction},
		"its pod has been stuck for a short time":        {run(v1beta1.TransferRunning, "u"), jobObservation(time.Hour, nil, pod(StuckTimeout-time.Second, corev1.PodPending, waiting("ErrImagePull", ""))), NoAction},
		"its pod cannot start":                           {run(v1beta1.TransferRunning, "u"), jobObservation(time.Hour, nil, pod(StuckTimeout, corev1.PodPending, waiting("ErrImagePull", ""))), DeleteJob},
		"it succeeded, and the Job will":                 {run(v1beta1.TransferRunning, "u"), jobObservation(time.Hour, nil, pod(time.Hour, corev1.PodSucceeded, success)), NoAction},
		"it succeeded, and a sidecar of Kubernetes runs": {run(v1beta1.TransferRunning, "u"), jobObservation(time.Hour, nil, pod(time.Hour, corev1.PodRunning, success)), NoAction},
		"it succeeded, and another container runs on":    {run(v1beta1.TransferRunning, "u"), jobObservation(time.Hour, nil, beside(running, pod(time.Hour, corev1.PodRunning, success))), DeleteJob},
		"it succeeded, and the Job would retry":          {run(v1beta1.TransferRunning, "u"), jobObservation(time.Hour, nil, beside(terminatedState(1, "Error", ""), pod(time.Hour, corev1.PodFailed, success))), DeleteJob},
		"the Job hasn't noticed yet":                     {complete, jobObservation(0, nil), NoAction},
		"the status lacks the result of the Job":         {run(v1beta1.TransferRunning, "u"), jobObservation(0, expires), NoAction},
		"the status has the result of the Job":           {run(v1beta1.TransferComplete, "u"), jobObservation(0, expires), ExpireJob},
		"the Job expires already":                        {run(v1beta1.TransferFailed, "u"), jobObservation(0, func(j *batchv1.Job) { expires(j); j.Spec.TTLSecondsAfterFinished = new(int32(600)) }), NoAction},
		"the Job runs although the transfer failed":      {run(v1beta1.TransferFailed, "u"), jobObservation(0, nil), DeleteJob},
	} {
		a := stub{Observation: observation(test.status, test.job)}.Plan(nil).Actions
		if creates := name == "it has started"; a.Job != test.want || (a.Create != nil) != creates {
			t.Errorf("%s: action %d, want %d; it creates a Job: %t", name, a.Job, test.want, a.Create != nil)
		}
	}
}

func TestBlockedTransferIsPendingUntilItsDeadline(t *testing.T) {
	b := owner.DeepCopy()
	b.CreationTimestamp, b.Spec.DeadlineSeconds = metav1.NewTime(now), new(int32(60))
	wait := WaitFor(v1beta1.ReasonShardsStarting, "waiting")
	for name, test := range map[string]struct {
		blocker *Blocker
		age     time.Duration
		phase   v1beta1.TransferPhase
		reason  string
		requeue time.Duration
	}{
		"before the deadline": {wait, 20 * time.Second, v1beta1.TransferPending, v1beta1.ReasonShardsStarting, 40 * time.Second},
		"at the deadline":     {wait, time.Minute, v1beta1.TransferFailed, v1beta1.ReasonDeadlineExceeded, 0},
		"a final blocker":     {Reject(v1beta1.ReasonNoShards, "no shards"), 0, v1beta1.TransferFailed, v1beta1.ReasonNoShards, 0},
		"no blocker":          {nil, 20 * time.Second, v1beta1.TransferRunning, v1beta1.ReasonStarting, 0},
	} {
		p := stub{Observation: Observation{Object: b, Now: now.Add(test.age)}, blocker: test.blocker}.Plan(nil)
		if s := p.Status; s.Phase != test.phase || s.Reason() != test.reason || p.Actions.RequeueAfter != test.requeue {
			t.Errorf("%s: it is %s (%s), and requeued after %s", name, s.Phase, s.Reason(), p.Actions.RequeueAfter)
		}
	}
}

// after returns the status that follows one in a reconcile, so long after now.
func after(s v1beta1.TransferStatus, job JobObservation, d time.Duration) v1beta1.TransferStatus {
	obs := observation(s, job)
	obs.Now = now.Add(d)
	return next(s, obs, Evaluate(job, claim))
}

func TestStatusKeepsReasonWhileJobIsDeleted(t *testing.T) {
	started := begin(v1beta1.TransferStatus{JobUID: "u"}, observation(v1beta1.TransferStatus{}, JobObservation{}), "")
	stuck := after(started, jobObservation(time.Hour, nil, pod(time.Second, corev1.PodPending, waiting("CreateContainerConfigError", "no secret"))), 0)
	terminating := after(stuck, jobObservation(0, func(j *batchv1.Job) { j.DeletionTimestamp = &metav1.Time{} }), 0)
	if terminating.Reason() != v1beta1.ReasonJobCannotStart || terminating.Phase != v1beta1.TransferRunning {
		t.Errorf("it is %+v", terminating)
	}
	deleted := after(terminating, JobObservation{}, 0)
	if deleted.Phase != v1beta1.TransferFailed || deleted.Reason() != v1beta1.ReasonJobCannotStart || !strings.Contains(deleted.Message(), "no secret") {
		t.Errorf("after the Job was deleted, it is %+v", deleted)
	}
}

func TestRejectedJobFailsAfterTimeout(t *testing.T) {
	obs := observation(v1beta1.TransferStatus{}, JobObservation{})
	s := withPhase(begin(v1beta1.TransferStatus{}, obs, ""), obs, v1beta1.TransferRunning, v1beta1.ReasonJobCannotStart, "exceeded quota")
	if next := after(s, JobObservation{}, StuckTimeout-time.Second); next.IsFinished() {
		t.Errorf("it has finished: %+v", next)
	}
	if next := after(s, JobObservation{}, StuckTimeout); next.Phase != v1beta1.TransferFailed || next.Message() != "exceeded quota" {
		t.Errorf("it is %+v", next)
	}
}

func TestProgressIs100PercentOnlyWhenComplete(t *testing.T) {
	for _, test := range []struct {
		items, total int64
		want         int32
	}{{0, 0, 0}, {5, 0, 0}, {0, 10, 0}, {5, 10, 50}, {10, 10, 99}, {1999, 2000, 99}, {20, 10, 99}, {1 << 62, 1 << 62, 99}} {
		if got := percent(test.items, test.total); got != test.want {
			t.Errorf("%d of %d is %d per cent, want %d", test.items, test.total, got, test.want)
		}
	}
}

func TestLongMessageIsTruncatedBetweenCharacters(t *testing.T) {
	s := withPhase(v1beta1.TransferStatus{}, observation(v1beta1.TransferStatus{}, JobObservation{}), v1beta1.TransferPending, "R", "x"+strings.Repeat("ä", 2000))
	if len(s.Message()) > 1024 || !utf8.ValidString(s.Message()) || !strings.HasSuffix(s.Message(), "ä…") {
		t.Errorf("%d bytes, ending in %q", len(s.Message()), s.Message()[len(s.Message())-8:])
	}
}

// The kubelet fails a pod that is deleted before its container runs, as one without its Secret, and the Job controller counts it.
func TestPodThatIsDeletedBeforeItRunsHasNotStarted(t *testing.T) {
	counted := func(job *batchv1.Job) { job.Status.Failed = 1 }
	deleted := func(job *batchv1.Job) { counted(job); job.DeletionTimestamp = &metav1.Time{Time: now} }
	failed := func(container string) corev1.Pod {
		p := pod(0, corev1.PodFailed, terminatedState(137, "ContainerStatusUnknown", ""))
		p.Status.ContainerStatuses[0].ContainerID = container
		return p
	}
	for name, c := range map[string]struct {
		job  JobObservation
		want bool
	}{
		"a Job that is deleted before its pod has run": {jobObservation(0, deleted, failed("")), false},
		"without its pod":                            {jobObservation(0, deleted), false},
		"a Job that is deleted while its pod runs":   {jobObservation(0, deleted, failed("containerd://1")), true},
		"a Job whose pod has failed and was deleted": {jobObservation(0, counted), true},
		"a pod that runs":                            {jobObservation(0, nil, pod(0, corev1.PodRunning, corev1.ContainerState{Running: &corev1.ContainerStateRunning{}})), true},
		"a pod that waits":                           {jobObservation(0, nil, pod(0, corev1.PodPending, waiting("ErrImagePull", ""))), false},
	} {
		if got := Evaluate(c.job, claim).Started; got != c.want {
			t.Errorf("%s has started: %t", name, got)
		}
	}
}

func TestMessageOfTheSchedulerIsNotRepeated(t *testing.T) {
	for message, want := range map[string]string{
		`persistentvolumeclaim "snapshots" not found. not found`:                `persistentvolumeclaim "snapshots" not found`,
		"0/3 nodes are available: 3 Insufficient memory. preemption: 0/3 nodes": "0/3 nodes are available: 3 Insufficient memory. preemption: 0/3 nodes",
		"not found": "not found",
	} {
		if got := withoutRepetition(message); got != want {
			t.Errorf("%q became %q", message, got)
		}
	}
}

func TestPodThatDoesNotStartNamesWhatItNeeds(t *testing.T) {
	job := jobObservation(time.Hour, nil, pod(time.Minute, corev1.PodPending, waiting("ContainerCreating", "")))
	for want, store := range map[string]v1beta1.SnapshotStore{
		"Check that PersistentVolumeClaim snapshots exists and can be mounted: kubectl": claim,
		"Check that Secret minio-ca exists, with the key ca.crt: kubectl":               s3,
		"Check that its image can be pulled: kubectl":                                   {S3: &v1beta1.S3Store{}},
	} {
		if got := Evaluate(job, store).Message; !strings.Contains(got, want) {
			t.Errorf("%q", got)
		}
	}
}
