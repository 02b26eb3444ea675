package snapshotjob

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/internal/snapshotapi"
)

// Stage says how far a Job is.
type Stage int

// The stages.
const (
	// Absent: there is none.
	Absent Stage = iota
	// Foreign: somebody else's has its name.
	Foreign
	// Ending: it is being deleted.
	Ending
	// Starting: nothing runs yet, which is a matter of time.
	Starting
	// Stuck: nothing runs, and a person may have to do something.
	Stuck
	// Copying: its pod runs.
	Copying
	// Succeeded: it has ended well.
	Succeeded
	// Failed: it has ended, and not well.
	Failed
)

const (
	// quietStart is how long a pod may prepare itself before the status says so.
	quietStart = 30 * time.Second
	// StuckBound is how long a pod that cannot start is waited for.
	StuckBound = 5 * time.Minute
)

// Verdict is what a Job that was seen amounts to.
type Verdict struct {
	Stage Stage
	// Reason and Message of it, for the status.
	Reason, Message string
	// Since is when a Job that is Stuck began to be, at the latest. One that has had
	// NoPod may have lost one just now.
	Since time.Time
	NoPod bool
	// Outcome of one that has ended; nil when it left none.
	Outcome *snapshotapi.Outcome
	// Progress of one that copies; nil when it told none.
	Progress *snapshotapi.Progress
}

// Judge says how far a Job is.
func Judge(seen Observed, store v1alpha1.SnapshotStore) Verdict {
	job := seen.Job
	switch {
	case seen.Foreign:
		return Verdict{Stage: Foreign, Reason: v1alpha1.ReasonJobCannotStart,
			Message: fmt.Sprintf("a Job %s exists that belongs to another object: delete that Job, and make this object anew", seen.Name)}
	case job == nil:
		return Verdict{Stage: Absent}
	case isFinished(job):
		return judgeEnd(seen)
	case job.DeletionTimestamp != nil:
		return Verdict{Stage: Ending}
	case job.Spec.Suspend != nil && *job.Spec.Suspend:
		return Verdict{Stage: Starting, Reason: v1alpha1.ReasonStarting, Message: fmt.Sprintf("Job %s is suspended, and goes on once its spec.suspend is false", job.Name)}
	}
	pod := seen.newest()
	if pod == nil {
		v := Verdict{Stage: Starting, Reason: v1alpha1.ReasonStarting, Message: fmt.Sprintf("Job %s has no pod yet", job.Name), Since: job.CreationTimestamp.Time}
		if v.NoPod = job.Status.Failed == 0; v.NoPod && seen.Now.Sub(v.Since) >= quietStart {
			v.Stage, v.Reason = Stuck, v1alpha1.ReasonJobCannotStart
			v.Message = fmt.Sprintf("Job %s gets no pod: kubectl describe job %s tells why, such as a quota or an admission policy", job.Name, job.Name)
		}
		return v
	}
	switch {
	case pod.DeletionTimestamp != nil:
		return Verdict{Stage: Starting, Reason: v1alpha1.ReasonStarting, Message: fmt.Sprintf("pod %s ends, and another one takes its place", pod.Name)}
	case pod.Status.Phase == corev1.PodFailed:
		reason, message, _ := lastWords(seen.Pods)
		return Verdict{Stage: Starting, Reason: v1alpha1.ReasonStarting, Message: fmt.Sprintf("pod %s failed (%s): %s; another one follows", pod.Name, reason, message)}
	case pod.Status.Phase == corev1.PodRunning || pod.Status.Phase == corev1.PodSucceeded:
		return Verdict{Stage: Copying, Reason: v1alpha1.ReasonCopying, Message: fmt.Sprintf("pod %s is at work", pod.Name), Progress: seen.Progress}
	}
	v := Verdict{Stage: Starting, Reason: v1alpha1.ReasonStarting, Message: fmt.Sprintf("pod %s starts", pod.Name), Since: pod.CreationTimestamp.Time}
	if trouble := podTrouble(pod, store, seen.Now.Sub(v.Since)); trouble != "" {
		v.Stage, v.Reason, v.Message = Stuck, v1alpha1.ReasonJobCannotStart, fmt.Sprintf("pod %s cannot start: %s", pod.Name, trouble)
	}
	return v
}

// podTrouble returns what keeps a pod from starting, or nothing.
func podTrouble(pod *corev1.Pod, store v1alpha1.SnapshotStore, age time.Duration) string {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
			return "no node takes it: " + c.Message
		}
	}
	for _, c := range pod.Status.ContainerStatuses {
		w := c.State.Waiting
		if w == nil || w.Reason == "" || w.Reason == "ContainerCreating" || w.Reason == "PodInitializing" {
			continue
		}
		return strings.TrimSuffix(fmt.Sprintf("%s: %s", w.Reason, w.Message), ": ")
	}
	switch {
	case age < quietStart:
		return ""
	case pod.Spec.NodeName == "":
		return "no scheduler has looked at it"
	default:
		return fmt.Sprintf("node %s prepares it for %s; is %s there, and can it be mounted? kubectl describe pod %s tells", pod.Spec.NodeName,
			age.Truncate(time.Second*30), needs(store), pod.Name)
	}
}

// judgeEnd says how a Job has ended.
func judgeEnd(seen Observed) Verdict {
	if _, ok := jobCondition(seen.Job, batchv1.JobComplete); ok {
		outcome := outcomeOf(seen.Pods)
		switch {
		case outcome == nil:
			return Verdict{Stage: Failed, Reason: v1alpha1.ReasonJobFailed,
				Message: fmt.Sprintf("Job %s succeeded, but its pod was deleted before the operator could read the result: make another one", seen.Name)}
		case outcome.Reason != v1alpha1.ReasonSucceeded:
			return Verdict{Stage: Failed, Reason: outcome.Reason, Message: outcome.Message, Outcome: outcome}
		default:
			return Verdict{Stage: Succeeded, Reason: v1alpha1.ReasonSucceeded, Message: outcome.Message, Outcome: outcome}
		}
	}
	failed, _ := jobCondition(seen.Job, batchv1.JobFailed)
	reason, message, outcome := lastWords(seen.Pods)
	if failed.Reason == batchv1.JobReasonDeadlineExceeded {
		deadline := time.Duration(0)
		if s := seen.Job.Spec.ActiveDeadlineSeconds; s != nil {
			deadline = time.Duration(*s) * time.Second
		}
		text := fmt.Sprintf("it did not end within its deadline of %s: give it a longer one, or a higher rate limit", deadline)
		if outcome != nil {
			text += fmt.Sprintf("; its last pod said %s: %s", outcome.Reason, outcome.Message)
		}
		return Verdict{Stage: Failed, Reason: v1alpha1.ReasonDeadlineExceeded, Message: text, Outcome: outcome}
	}
	if message == "" {
		message = cmp.Or(failed.Message, "it left no pod that tells why")
	}
	return Verdict{Stage: Failed, Reason: reason, Message: message, Outcome: outcome}
}

// lastWords returns why the newest pod failed.
func lastWords(pods []corev1.Pod) (reason, message string, outcome *snapshotapi.Outcome) {
	if outcome := outcomeOf(pods); outcome != nil {
		return outcome.Reason, outcome.Message, outcome
	}
	if len(pods) == 0 {
		return v1alpha1.ReasonJobFailed, "", nil
	}
	pod := &pods[0]
	t := terminated(pod)
	switch {
	case t != nil && t.Reason == "OOMKilled":
		return v1alpha1.ReasonJobFailed, fmt.Sprintf("pod %s took more memory than its limit and was killed", pod.Name), nil
	case pod.Status.Reason != "":
		return v1alpha1.ReasonJobFailed, strings.TrimSuffix(fmt.Sprintf("pod %s failed: %s: %s", pod.Name, pod.Status.Reason, pod.Status.Message), ": "), nil
	case t != nil:
		return v1alpha1.ReasonJobFailed, fmt.Sprintf("pod %s failed: %s, exit code %d; its log may tell why: %s", pod.Name, t.Reason, t.ExitCode, strings.TrimSpace(t.Message)), nil
	default:
		return v1alpha1.ReasonJobFailed, fmt.Sprintf("pod %s failed and left no word of it", pod.Name), nil
	}
}
