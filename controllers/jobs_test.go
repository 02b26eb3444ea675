package controllers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers/transfer"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
	snapshotwire "github.com/memcached-operator/memcached-operator/internal/snapshot/wire"
)

// jobs does, beside a real API server, what the Job controller, the kubelet and the
// garbage collector do with the Jobs of one namespace, and keeps the stores. A tick
// of it is about a second.
type jobs struct {
	*world
	// created counts the pods of each Job by the first word of its name.
	created map[string]int
	// snapshots that are in the stores, by path.
	snapshots []string
	// ends is how pods of an action end, one after another; the last one stays. None
	// is success.
	ends map[snapshotwire.Action][]end
	// hang keeps pods of an action at work.
	hang map[snapshotwire.Action]bool
	// stuck keeps pods from starting: what the container waits for.
	stuck *corev1.ContainerStateWaiting
	// progress by pod IP.
	progress map[string]snapshotwire.Progress
}

// end is how a pod ends.
type end struct {
	exit    int32
	reason  string
	outcome *snapshotwire.Outcome
	// mute reports no snapshot.
	mute bool
}

func failed(exit int32, reason, message string) end {
	return end{exit: exit, outcome: &snapshotwire.Outcome{Reason: reason, Message: message, Final: exit == snapshotwire.ExitFinal, Items: 10, TotalItems: 100}}
}

// Progress answers as the Job's pod would.
func (j *jobs) Progress(_ context.Context, podIP string) (snapshotwire.Progress, error) {
	p, ok := j.progress[podIP]
	if !ok {
		return p, errors.New("no route to host")
	}
	return p, nil
}

// tick advances every Job by one step, and reports whether there was one.
func (j *jobs) tick() bool {
	j.Helper()
	var all batchv1.JobList
	j.must(admin.List(j.ctx, &all, client.InNamespace(j.namespace)))
	moved := false
	for i := range all.Items {
		if job := &all.Items[i]; metav1.GetControllerOf(job) != nil && job.Labels[v1alpha1.LabelName] == annotations.SnapshotName {
			moved = j.run(job) || moved
		}
	}
	return moved
}

func taskOf(job *batchv1.Job) (snapshotwire.Action, snapshotwire.Task) {
	args := job.Spec.Template.Spec.Containers[0].Args
	var task snapshotwire.Task
	if err := json.Unmarshal([]byte(args[2]), &task); err != nil {
		panic(err)
	}
	return snapshotwire.Action(args[0]), task
}

func (j *jobs) pods(job *batchv1.Job) []corev1.Pod {
	j.Helper()
	var pods corev1.PodList
	j.must(admin.List(j.ctx, &pods, client.InNamespace(j.namespace), client.MatchingLabels{batchv1.JobNameLabel: job.Name}))
	slices.SortFunc(pods.Items, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return pods.Items
}

// run takes one step of a Job.
func (j *jobs) run(job *batchv1.Job) bool {
	j.Helper()
	pods := j.pods(job)
	if job.DeletionTimestamp != nil {
		for i := range pods {
			j.must(client.IgnoreNotFound(admin.Delete(j.ctx, &pods[i], client.GracePeriodSeconds(0))))
		}
		job.Finalizers = nil
		j.must(client.IgnoreNotFound(admin.Update(j.ctx, job)))
		return true
	}
	for _, c := range job.Status.Conditions {
		if c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed {
			return false
		}
	}
	if late := job.CreationTimestamp.Add(time.Duration(*job.Spec.ActiveDeadlineSeconds) * time.Second); j.clock.Now().After(late) {
		for i := range pods {
			if pods[i].Status.Phase != corev1.PodFailed {
				j.must(admin.Delete(j.ctx, &pods[i], client.GracePeriodSeconds(0)))
			}
		}
		j.finish(job, batchv1.JobFailed, batchv1.JobReasonDeadlineExceeded, "Job was active longer than specified deadline")
		return true
	}
	if len(pods) == 0 || pods[len(pods)-1].Status.Phase == corev1.PodFailed {
		j.create(job, len(pods))
		return true
	}
	return j.step(job, &pods[len(pods)-1], len(pods))
}

// create creates the next pod of a Job.
func (j *jobs) create(job *batchv1.Job, number int) {
	j.Helper()
	pod := &corev1.Pod{ObjectMeta: *job.Spec.Template.ObjectMeta.DeepCopy(), Spec: job.Spec.Template.Spec}
	pod.Namespace, pod.Name = job.Namespace, fmt.Sprintf("%s-%02d", job.Name, number)
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))}
	pod.Spec.NodeName = "node1"
	j.must(admin.Create(j.ctx, pod))
	action, _ := taskOf(job)
	j.created[string(action)]++
}

// step takes a pod one step further.
func (j *jobs) step(job *batchv1.Job, pod *corev1.Pod, number int) bool {
	j.Helper()
	action, task := taskOf(job)
	ip := fmt.Sprintf("10.0.0.%d", number)
	switch {
	case pod.Status.Phase != corev1.PodRunning && j.stuck != nil:
		known := len(pod.Status.ContainerStatuses) > 0
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: transfer.Container, State: corev1.ContainerState{Waiting: j.stuck}}}
		pod.Status.Phase = corev1.PodPending
		j.must(admin.Status().Update(j.ctx, pod))
		return !known
	case pod.Status.Phase != corev1.PodRunning:
		pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, PodIP: ip, PodIPs: []corev1.PodIP{{IP: ip}},
			ContainerStatuses: []corev1.ContainerStatus{{Name: transfer.Container, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}}
		j.must(admin.Status().Update(j.ctx, pod))
		return true
	case j.hang[action]:
		return false
	}
	e := j.next(action, task)
	state := &corev1.ContainerStateTerminated{ExitCode: e.exit, Reason: e.reason, FinishedAt: metav1.NewTime(j.clock.Now())}
	if e.outcome != nil {
		state.Message = asJSON(e.outcome)
	}
	pod.Status.Phase = corev1.PodSucceeded
	if e.exit != 0 {
		pod.Status.Phase = corev1.PodFailed
	}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: transfer.Container, State: corev1.ContainerState{Terminated: state}}}
	j.must(admin.Status().Update(j.ctx, pod))
	final := slices.ContainsFunc(job.Spec.PodFailurePolicy.Rules, func(r batchv1.PodFailurePolicyRule) bool {
		return r.OnExitCodes != nil && slices.Contains(r.OnExitCodes.Values, e.exit)
	})
	switch {
	case e.exit == 0:
		j.finish(job, batchv1.JobComplete, "CompletionsReached", "")
	case final:
		j.finish(job, batchv1.JobFailed, batchv1.JobReasonPodFailurePolicy, "Container snapshot failed with exit code 3")
	case int32(number) > *job.Spec.BackoffLimit: //nolint:gosec // a few
		j.finish(job, batchv1.JobFailed, batchv1.JobReasonBackoffLimitExceeded, "Job has reached the specified backoff limit")
	}
	return true
}

// next returns the result of the next pod, and changes the stores as it does.
func (j *jobs) next(action snapshotwire.Action, task snapshotwire.Task) end {
	e := end{outcome: &snapshotwire.Outcome{Reason: v1alpha1.ReasonSucceeded, Message: "done", Items: 100, TotalItems: 100, Bytes: 5000, ItemsPerSecond: 50}}
	if planned := j.ends[action]; len(planned) > 0 {
		if e = planned[0]; len(planned) > 1 {
			j.ends[action] = planned[1:]
		}
	}
	if e.exit != 0 {
		return e
	}
	switch action {
	case snapshotwire.ActionSave:
		j.snapshots = append(j.snapshots, task.Path)
	case snapshotwire.ActionDelete:
		j.snapshots = slices.DeleteFunc(j.snapshots, func(path string) bool { return path == task.Path })
	case snapshotwire.ActionLoad:
		if e.outcome != nil {
			e.outcome.Restored, e.outcome.Kept, e.outcome.Expired, e.outcome.Rejected = 90, 5, 4, 1
		}
	}
	if e.outcome != nil && action != snapshotwire.ActionDelete && e.outcome.Snapshot == nil && !e.mute {
		e.outcome.Snapshot = &snapshotwire.Snapshot{TakenAt: j.clock.Now(), Shards: len(task.Servers), Items: 100, Bytes: 5000, StoredBytes: 3000, FormatVersion: 1}
	}
	return e
}

// finish finishes a Job as the Job controller would.
func (j *jobs) finish(job *batchv1.Job, kind batchv1.JobConditionType, reason, message string) {
	j.Helper()
	now := metav1.Now()
	start := metav1.NewTime(now.Add(-time.Second))
	job.Status.StartTime = &start
	before, counted := batchv1.JobFailureTarget, "failed"
	if kind == batchv1.JobComplete {
		before, counted = batchv1.JobSuccessCriteriaMet, "succeeded"
	}
	if counted == "succeeded" {
		job.Status.Succeeded, job.Status.CompletionTime = 1, &now
	} else {
		job.Status.Failed = 1
	}
	job.Status.UncountedTerminatedPods = &batchv1.UncountedTerminatedPods{}
	job.Status.Conditions = append(job.Status.Conditions,
		batchv1.JobCondition{Type: before, Status: corev1.ConditionTrue, Reason: reason, Message: message, LastTransitionTime: now},
		batchv1.JobCondition{Type: kind, Status: corev1.ConditionTrue, Reason: reason, Message: message, LastTransitionTime: now})
	j.must(admin.Status().Update(j.ctx, job))
}

// job returns the Job of an object, or nil.
func (w *world) job(prefix transfer.Prefix, o client.Object) *batchv1.Job {
	w.Helper()
	job := &batchv1.Job{}
	if !w.exists(transfer.Name(prefix, o.GetUID()), job) {
		return nil
	}
	return job
}
