package simtest

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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/internal/annotations"
	"github.com/memcached-operator/memcached-operator/internal/podresult"
	snapshotwire "github.com/memcached-operator/memcached-operator/internal/snapshot/wire"
)

// Jobs is the Job controller, the kubelet and the garbage collector for the Jobs of backups and restores, and what their
// program does. It works beside a real API server, too.
type Jobs struct {
	Client    client.Client
	Namespace string
	Now       func() time.Time
	// Ends is how the pods of an action terminate, one after another; the last one is repeated. None is success.
	Ends map[snapshotwire.Action][]End
	// Hang has the pods of an action run until it is unset.
	Hang map[snapshotwire.Action]bool
	// Sidecar has each pod run another container, which never terminates by itself.
	Sidecar bool
	// Stuck is what containers wait for; nil starts them.
	Stuck *corev1.ContainerStateWaiting

	// Created counts the pods by the action.
	Created map[string]int
	// Snapshots are the paths of those in the stores.
	Snapshots []string

	// failing are the Jobs whose pod has a sidecar that runs on although the other container has failed.
	failing map[string]bool
}

// NewJobs returns the model for the Jobs of a namespace.
func NewJobs(c client.Client, namespace string, now func() time.Time) *Jobs {
	return &Jobs{Client: c, Namespace: namespace, Now: now, Created: map[string]int{}, failing: map[string]bool{}}
}

// End is how a pod terminates, with the exit code and the outcome that it reports.
type End struct {
	Exit    int32
	Outcome *snapshotwire.Outcome
}

// Progress is what a pod reports while it copies: nothing.
func (j *Jobs) Progress(context.Context, string) (snapshotwire.Progress, error) {
	return snapshotwire.Progress{}, errors.New("no route to host")
}

// Tick has each Job make one step, and reports whether there was one. A step that the operator's own writes overtake is
// repeated by the next tick.
func (j *Jobs) Tick() (moved bool, err error) {
	var jobs batchv1.JobList
	if err := j.Client.List(context.Background(), &jobs, client.InNamespace(j.Namespace)); err != nil {
		return false, err
	}
	for i := range jobs.Items {
		job := &jobs.Items[i]
		if metav1.GetControllerOf(job) == nil || job.Annotations[annotations.TransferOf] == "" {
			continue
		}
		stepped, err := j.run(job)
		switch {
		case apierrors.IsConflict(err) || apierrors.IsNotFound(err):
			stepped = true
		case err != nil:
			return moved, fmt.Errorf("running Job %s: %w", job.Name, err)
		}
		moved = moved || stepped
	}
	return moved, nil
}

// Task returns what a Job does.
func Task(job *batchv1.Job) (snapshotwire.Action, snapshotwire.Task) {
	args := job.Spec.Template.Spec.Containers[0].Args
	var task snapshotwire.Task
	if err := json.Unmarshal([]byte(args[2]), &task); err != nil {
		panic(err)
	}
	return snapshotwire.Action(args[0]), task
}

// run makes one step of a Job.
func (j *Jobs) run(job *batchv1.Job) (moved bool, err error) {
	ctx := context.Background()
	var list corev1.PodList
	if err := j.Client.List(ctx, &list, client.InNamespace(j.Namespace), client.MatchingLabels{batchv1.JobNameLabel: job.Name}); err != nil {
		return false, err
	}
	pods := list.Items
	slices.SortFunc(pods, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	finished := slices.ContainsFunc(job.Status.Conditions, func(c batchv1.JobCondition) bool { return c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed })
	switch {
	case job.DeletionTimestamp != nil:
		for i := range pods {
			err = errors.Join(err, client.IgnoreNotFound(j.Client.Delete(ctx, &pods[i], client.GracePeriodSeconds(0))))
		}
		job.Finalizers = nil
		return true, errors.Join(err, client.IgnoreNotFound(j.Client.Update(ctx, job)))
	case finished || job.Spec.Suspend != nil && *job.Spec.Suspend:
		return false, nil
	case len(pods) > 0 && pods[len(pods)-1].DeletionTimestamp != nil:
		return true, j.Client.Delete(ctx, &pods[len(pods)-1], client.GracePeriodSeconds(0))
	case len(pods) == 0 && j.failing[job.Name]: // its pod was deleted, and terminated with a failure
		delete(j.failing, job.Name)
		job.Status.Failed++
		return true, j.Client.Status().Update(ctx, job)
	case len(pods) == 0 || pods[len(pods)-1].Status.Phase == corev1.PodFailed:
		return true, j.createPod(ctx, job, len(pods)+int(job.Status.Failed))
	}
	return j.step(ctx, job, &pods[len(pods)-1], len(pods))
}

func (j *Jobs) createPod(ctx context.Context, job *batchv1.Job, number int) error {
	pod := &corev1.Pod{ObjectMeta: *job.Spec.Template.ObjectMeta.DeepCopy(), Spec: *job.Spec.Template.Spec.DeepCopy()}
	if pod.Labels == nil {
		pod.Labels = map[string]string{}
	}
	pod.Labels[batchv1.JobNameLabel] = job.Name // by the API server
	pod.Namespace, pod.Name = job.Namespace, fmt.Sprintf("%s-%02d", job.Name, number)
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))}
	pod.Spec.NodeName = "node1"
	action, _ := Task(job)
	j.Created[string(action)]++
	return j.Client.Create(ctx, pod)
}

// step takes a pod one step further.
func (j *Jobs) step(ctx context.Context, job *batchv1.Job, pod *corev1.Pod, number int) (moved bool, err error) {
	action, task := Task(job)
	state := func(phase corev1.PodPhase, s corev1.ContainerState) error {
		pod.Status.Phase, pod.Status.ContainerStatuses = phase, []corev1.ContainerStatus{{Name: pod.Spec.Containers[0].Name, State: s}}
		if j.Sidecar && s.Waiting == nil {
			sidecar := corev1.ContainerStatus{Name: "proxy", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
			pod.Status.Phase, pod.Status.ContainerStatuses = corev1.PodRunning, append([]corev1.ContainerStatus{sidecar}, pod.Status.ContainerStatuses...)
		}
		return j.Client.Status().Update(ctx, pod)
	}
	switch {
	case pod.Status.Phase != corev1.PodRunning && j.Stuck != nil:
		known := len(pod.Status.ContainerStatuses) > 0
		return !known, state(corev1.PodPending, corev1.ContainerState{Waiting: j.Stuck})
	case pod.Status.Phase != corev1.PodRunning:
		pod.Status.PodIP = fmt.Sprintf("10.0.0.%d", number)
		pod.Status.PodIPs = []corev1.PodIP{{IP: pod.Status.PodIP}}
		return true, state(corev1.PodRunning, corev1.ContainerState{Running: &corev1.ContainerStateRunning{}})
	case j.Hang[action], j.Sidecar && podresult.Terminated(pod, pod.Spec.Containers[0].Name) != nil:
		return false, nil
	}
	e := j.end(action, task)
	terminated := &corev1.ContainerStateTerminated{ExitCode: e.Exit, FinishedAt: metav1.NewTime(j.Now())}
	if e.Outcome != nil {
		message, err := json.Marshal(e.Outcome)
		if err != nil {
			return false, err
		}
		terminated.Message = string(message)
	}
	phase := corev1.PodSucceeded
	if e.Exit != 0 {
		phase = corev1.PodFailed
	}
	if err := state(phase, corev1.ContainerState{Terminated: terminated}); err != nil {
		return false, err
	}
	switch {
	case j.Sidecar:
		j.failing[job.Name] = e.Exit != 0
		return true, nil
	case e.Exit == 0:
		return true, j.finish(ctx, job, batchv1.JobComplete, "CompletionsReached")
	case e.Exit == snapshotwire.ExitFinal || int32(number) > *job.Spec.BackoffLimit: //nolint:gosec // a few
		return true, j.finish(ctx, job, batchv1.JobFailed, batchv1.JobReasonBackoffLimitExceeded)
	}
	return true, nil
}

// end returns how the next pod terminates, and changes the stores as it does.
func (j *Jobs) end(action snapshotwire.Action, task snapshotwire.Task) End {
	e := End{Outcome: &snapshotwire.Outcome{Reason: snapshotwire.ReasonSucceeded, Message: "done", Items: 100, TotalItems: 100, Bytes: 5000, ItemsPerSecond: 50}}
	if action == snapshotwire.ActionLoad {
		e.Outcome.Restored, e.Outcome.Kept, e.Outcome.Expired, e.Outcome.Rejected = 90, 5, 4, 1
	}
	if action != snapshotwire.ActionDelete {
		e.Outcome.Snapshot = &snapshotwire.Snapshot{TakenAt: j.Now(), Shards: len(task.Servers), Items: 100, Bytes: 5000, StoredBytes: 3000, FormatVersion: 1}
	}
	if planned := j.Ends[action]; len(planned) > 0 {
		e, j.Ends[action] = planned[0], planned[min(1, len(planned)-1):]
	}
	switch {
	case e.Exit != 0:
	case action == snapshotwire.ActionSave:
		j.Snapshots = append(j.Snapshots, task.Path)
	case action == snapshotwire.ActionDelete:
		j.Snapshots = slices.DeleteFunc(j.Snapshots, func(path string) bool { return path == task.Path })
	}
	return e
}

// finish writes the status of a finished Job as the API server requires it.
func (j *Jobs) finish(ctx context.Context, job *batchv1.Job, kind batchv1.JobConditionType, reason string) error {
	now := metav1.NewTime(j.Now())
	job.Status.StartTime = &metav1.Time{Time: now.Add(-time.Second)}
	before := batchv1.JobFailureTarget
	if kind == batchv1.JobComplete {
		before = batchv1.JobSuccessCriteriaMet
		job.Status.Succeeded, job.Status.CompletionTime = 1, &now
	} else {
		job.Status.Failed = 1
	}
	job.Status.UncountedTerminatedPods = &batchv1.UncountedTerminatedPods{}
	for _, condition := range []batchv1.JobConditionType{before, kind} {
		job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{Type: condition, Status: corev1.ConditionTrue, Reason: reason, LastTransitionTime: now})
	}
	return j.Client.Status().Update(ctx, job)
}
