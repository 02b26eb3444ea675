package transfer

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/internal/podresult"
	snapshotwire "github.com/memcached-operator/memcached-operator/internal/snapshot/wire"
)

// Stage is how far a Job is.
type Stage int

// The stages.
const (
	// Absent: there is no Job.
	Absent Stage = iota
	// Foreign: a Job of another owner has its name.
	Foreign
	// Terminating: it is being deleted.
	Terminating
	// Starting: no container runs yet, which takes time.
	Starting
	// Stuck: no container runs, which may require manual intervention.
	Stuck
	// Copying: its container runs.
	Copying
	// Succeeded: its pod reported success. Another container may keep the Job from being finished.
	Succeeded
	// Failed: it failed, or its pod did not report success.
	Failed
)

const (
	// startGrace is how long a pod may take to start before the status reports it.
	startGrace = 30 * time.Second
	// StuckTimeout is how long the operator waits for a pod that cannot start.
	StuckTimeout = 5 * time.Minute
)

// JobState is the evaluated state of a Job.
type JobState struct {
	Stage Stage
	// Reason and Message for the status.
	Reason, Message string
	// Since is when a Job became Stuck, at the latest. A Job without a pod, which NoPod
	// reports, may just have lost one.
	Since time.Time
	NoPod bool
	// Started is whether a container of the Job has run.
	Started bool
	// EndPod is a pod that terminates, or that the Job would retry, if another container let it; nil for none.
	EndPod *corev1.Pod
	// Outcome of a finished Job; nil when its pod did not report one.
	Outcome *snapshotwire.Outcome
	// Progress of a Job that copies; nil when its pod did not answer.
	Progress *snapshotwire.Progress
}

// Evaluate returns the state of a Job.
func Evaluate(obs JobObservation, store v1beta1.SnapshotStore) JobState {
	s := evaluate(obs, store)
	job := obs.Job
	// The Job controller also counts a pod that is deleted before it has run, with its Job.
	counted := job != nil && job.DeletionTimestamp == nil && job.Status.Failed+job.Status.Succeeded > 0
	s.Started = s.Stage == Copying || counted || slices.ContainsFunc(obs.Pods, hasRun)
	return s
}

// hasRun reports whether the container of a pod has run. The kubelet lets a pod fail that is deleted before that.
func hasRun(pod corev1.Pod) bool {
	switch podresult.Of(&pod, Container) {
	case podresult.Running, podresult.Succeeded:
		return true
	case podresult.Failed:
		return podresult.Container(&pod, Container).ContainerID != ""
	default:
		return false
	}
}

func evaluate(obs JobObservation, store v1beta1.SnapshotStore) JobState {
	job := obs.Job
	starting := func(format string, args ...any) JobState {
		return JobState{Stage: Starting, Reason: v1beta1.ReasonStarting, Message: fmt.Sprintf(format, args...)}
	}
	switch {
	case obs.Foreign:
		return JobState{Stage: Foreign, Reason: v1beta1.ReasonJobCannotStart,
			Message: fmt.Sprintf("Job %s already exists and belongs to another object", obs.Name)}
	case job == nil:
		return JobState{Stage: Absent}
	case isFinished(job):
		return finishedState(obs)
	case job.DeletionTimestamp != nil:
		return JobState{Stage: Terminating}
	case job.Spec.Suspend != nil && *job.Spec.Suspend:
		return suspendedState(job, starting("Job %s is suspended. Set its spec.suspend to false", job.Name))
	}
	pod := obs.newestPod()
	if pod == nil {
		s := starting("Job %s has no pod yet", job.Name)
		s.Since = job.CreationTimestamp.Time
		if s.NoPod = job.Status.Failed == 0; s.NoPod && obs.Now.Sub(s.Since) >= startGrace {
			s.Stage, s.Reason = Stuck, v1beta1.ReasonJobCannotStart
			s.Message = fmt.Sprintf("Job %s gets no pod, for example because of a quota or an admission policy. "+
				"See kubectl describe job %[1]s -n %s", job.Name, job.Namespace)
		}
		if s.NoPod && obs.Rejection != nil {
			s.Stage, s.Reason, s.Message = Stuck, v1beta1.ReasonJobCannotStart, fmt.Sprintf("the API server rejects the pod of Job %s: %s", job.Name, obs.Rejection)
		}
		return s
	}
	stage, lingers := podresult.Of(pod, Container), podresult.Lingers(pod, Container)
	switch {
	case stage == podresult.Succeeded:
		return reportedState(obs)
	case stage == podresult.Failed && lingers && obs.isFinal(podresult.Terminated(pod, Container).ExitCode):
		reason, message, outcome := failureOf(obs.Pods)
		return JobState{Stage: Failed, Reason: reason, Message: message, Outcome: outcome}
	case pod.DeletionTimestamp != nil:
		s := starting("pod %s is terminating and will be replaced, unless its deadline has passed", pod.Name)
		if lingers && ptr.Deref(pod.DeletionGracePeriodSeconds, 0) > endPodGrace {
			s.EndPod = pod
		}
		return s
	case stage == podresult.Failed || stage == podresult.Stopped:
		reason, message, _ := failureOf(obs.Pods)
		s := starting("pod %s failed (%s): %s. The Job will retry", pod.Name, reason, message)
		if lingers {
			s.EndPod = pod
		}
		return s
	case stage == podresult.Running:
		return JobState{Stage: Copying, Reason: v1beta1.ReasonCopying, Message: fmt.Sprintf("pod %s is running", pod.Name), Progress: obs.Progress}
	}
	s := starting("pod %s is starting", pod.Name)
	s.Since = pod.CreationTimestamp.Time
	if problem := podProblem(pod, store, obs.Now.Sub(s.Since)); problem != "" {
		s.Stage, s.Reason, s.Message = Stuck, v1beta1.ReasonJobCannotStart, fmt.Sprintf("pod %s cannot start: %s", pod.Name, problem)
	}
	return s
}

// suspendedState returns the state of a suspended Job. Kubernetes doesn't count the time in
// which a queue suspends it, so it is Stuck in time to be deleted at its deadline.
func suspendedState(job *batchv1.Job, s JobState) JobState {
	if deadline := job.Spec.ActiveDeadlineSeconds; deadline != nil {
		s.Stage, s.Reason = Stuck, v1beta1.ReasonJobCannotStart
		s.Since = job.CreationTimestamp.Add(time.Duration(*deadline)*time.Second - StuckTimeout)
	}
	return s
}

func podProblem(pod *corev1.Pod, store v1beta1.SnapshotStore, age time.Duration) string {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
			return "no node fits: " + withoutRepetition(c.Message)
		}
	}
	for _, c := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		w := c.State.Waiting
		if w == nil || w.Reason == "" || w.Reason == "ContainerCreating" || w.Reason == "PodInitializing" {
			continue
		}
		return strings.TrimSuffix(fmt.Sprintf("%s: %s", w.Reason, w.Message), ": ")
	}
	switch {
	case age < startGrace:
		return ""
	case pod.Spec.NodeName == "":
		return "no scheduler has processed it"
	default:
		return fmt.Sprintf("node %s has been preparing it for %s. Check that %s: kubectl describe pod %s -n %s",
			pod.Spec.NodeName, age.Truncate(time.Second*30), requirement(store), pod.Name, pod.Namespace)
	}
}

// withoutRepetition returns a message without its last sentence, if the sentence before ends like it: the scheduler appends
// why preemption doesn't help.
func withoutRepetition(message string) string {
	if i := strings.LastIndex(message, ". "); i >= 0 && strings.HasSuffix(message[:i], message[i+2:]) {
		return message[:i]
	}
	return message
}

// isFinal reports whether the Job would fail with a pod whose container exits with that code, and not retry.
func (obs JobObservation) isFinal(code int32) bool {
	spec := obs.Job.Spec
	return spec.BackoffLimit != nil && obs.Job.Status.Failed >= *spec.BackoffLimit ||
		spec.PodFailurePolicy != nil && slices.ContainsFunc(spec.PodFailurePolicy.Rules, func(r batchv1.PodFailurePolicyRule) bool {
			return r.Action == batchv1.PodFailurePolicyActionFailJob && r.OnExitCodes != nil && slices.Contains(r.OnExitCodes.Values, code)
		})
}

// reportedState returns the state of a Job whose container has exited with 0.
func reportedState(obs JobObservation) JobState {
	outcome := outcomeOf(obs.Pods)
	switch {
	case outcome == nil:
		return JobState{Stage: Failed, Reason: v1beta1.ReasonJobFailed,
			Message: fmt.Sprintf("Job %s succeeded, but its pod was deleted before the operator could read the result", obs.Name)}
	case outcome.Reason != v1beta1.ReasonSucceeded:
		return JobState{Stage: Failed, Reason: outcome.Reason, Message: outcome.Message, Outcome: outcome}
	default:
		return JobState{Stage: Succeeded, Reason: v1beta1.ReasonSucceeded, Message: outcome.Message, Outcome: outcome}
	}
}

// ExitedWithZero reports whether the container of a Job has exited with 0, whether or not its pod still exists.
func (obs JobObservation) ExitedWithZero() bool {
	pod := obs.newestPod()
	if pod != nil && podresult.Of(pod, Container) == podresult.Succeeded {
		return true
	}
	if obs.Job == nil {
		return false
	}
	_, complete := jobCondition(obs.Job, batchv1.JobComplete)
	return complete
}

func finishedState(obs JobObservation) JobState {
	if obs.ExitedWithZero() {
		return reportedState(obs)
	}
	failed, _ := jobCondition(obs.Job, batchv1.JobFailed)
	reason, message, outcome := failureOf(obs.Pods)
	if failed.Reason == batchv1.JobReasonDeadlineExceeded {
		message = "it did not finish within its deadline"
		if s := obs.Job.Spec.ActiveDeadlineSeconds; s != nil {
			message += fmt.Sprintf(" of %s", time.Duration(*s)*time.Second)
		}
		if outcome != nil {
			message += fmt.Sprintf(". Its last pod reported %s: %s", outcome.Reason, outcome.Message)
		}
		reason = v1beta1.ReasonDeadlineExceeded
	}
	return JobState{Stage: Failed, Reason: reason, Message: cmp.Or(message, failed.Message, "it left no pod that says why"), Outcome: outcome}
}

func failureOf(pods []corev1.Pod) (reason, message string, outcome *snapshotwire.Outcome) {
	if outcome := outcomeOf(pods); outcome != nil {
		return outcome.Reason, outcome.Message, outcome
	}
	if len(pods) == 0 {
		return v1beta1.ReasonJobFailed, "", nil
	}
	pod := &pods[0]
	switch t := podresult.Terminated(pod, Container); {
	case t != nil && t.Reason == "OOMKilled":
		message = fmt.Sprintf("pod %s was killed because it exceeded its memory limit", pod.Name)
	case pod.Status.Reason != "":
		message = strings.TrimRight(fmt.Sprintf("pod %s failed: %s: %s", pod.Name, pod.Status.Reason, pod.Status.Message), ":. ")
	case t != nil:
		message = fmt.Sprintf("pod %s failed: %s, exit code %d. See its log: %s", pod.Name, t.Reason, t.ExitCode, strings.TrimSpace(t.Message))
	default:
		message = fmt.Sprintf("pod %s failed without a termination message", pod.Name)
	}
	return v1beta1.ReasonJobFailed, message, nil
}

// Action is what to do about a Job.
type Action int

// The actions.
const (
	// NoAction leaves it as it is.
	NoAction Action = iota
	// DeleteJob deletes the Job, which exists until its pod is deleted.
	DeleteJob
	// ExpireJob lets it expire some time after it has finished.
	ExpireJob
)

// actionFor returns what to do about the Job of a transfer that isn't finished.
func actionFor(s v1beta1.TransferStatus, obs JobObservation, state JobState) Action {
	switch {
	case state.Stage == Stuck && state.NoPod && s.Progress != nil:
		return NoAction // it has copied before, and its deadline bounds it
	case state.Stage == Stuck && obs.Now.Sub(state.Since) >= StuckTimeout:
		return DeleteJob
	default:
		return NoAction
	}
}

// finishGrace is how long a Job may take to notice that its pod has terminated, and Kubernetes to terminate a pod's sidecars.
const finishGrace = time.Minute

// cleanup returns what to do about the Job of a transfer that has finished at a time.
func (obs Observation) cleanup(at *metav1.Time) Actions {
	action := obs.Job.Cleanup()
	if left := finishGrace - obs.Now.Sub(ptr.Deref(at, metav1.Time{}).Time); action == DeleteJob && left > 0 {
		return Actions{RequeueAfter: left}
	}
	return Actions{Job: action}
}

// stop returns what to do about a Job whose transfer finishes: it is deleted if another container of its pod runs on, or has failed, so
// that the Job would copy again.
func (obs JobObservation) stop() Action {
	pod := obs.newestPod()
	if pod != nil && (podresult.Lingers(pod, Container) || podresult.FailsOtherwise(pod, Container)) {
		return obs.Cleanup()
	}
	return NoAction
}

// Cleanup returns what to do about a Job that isn't needed any more.
func (obs JobObservation) Cleanup() Action {
	switch job := obs.Job; {
	case job == nil || job.DeletionTimestamp != nil:
		return NoAction
	case !isFinished(job):
		return DeleteJob
	case job.Spec.TTLSecondsAfterFinished == nil:
		return ExpireJob
	default:
		return NoAction
	}
}

// IsActive reports whether there is a Job whose pod may still write.
func (obs JobObservation) IsActive() bool { return obs.Job != nil && !isFinished(obs.Job) }
