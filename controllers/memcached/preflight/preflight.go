// Package preflight checks an image on the nodes of the shards before any shard is updated:
// the kubelet stops the running container before it pulls another image, so an image that it
// can't pull or run has to be found before. The functions are pure.
package preflight

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/rollout"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/shard"
	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
	"github.com/memcached-operator/memcached-operator/internal/podresult"
)

// retryAfter is how long a failed preflight pod is kept before the check is repeated.
const retryAfter = 5 * time.Minute

// Verdict begins the message of a check that failed.
const Verdict = "preflight check failed"

// Result is the progress of the check on all nodes that need it.
type Result struct {
	Progress rollout.Progress
	// Message describes the least advanced check.
	Message string
	// Problem is why a check failed, or nil.
	Problem *shard.Problem
	// Images are those of the pods that check, by the names of the shards. Admission may have changed the references.
	Images map[string]string
	// Create are the preflight pods that are missing.
	Create []resources.Object
}

// Evaluate returns how far the check of a revision's image is on the nodes of those shards
// whose container has to be recreated for it. Another attempt checks again.
func Evaluate(build *resources.Builder, pods []*corev1.Pod, shards []shard.State, update resources.PodRevision) Result {
	r := Result{Progress: rollout.Done, Images: map[string]string{}}
	for _, s := range shards {
		if s.Active == nil || s.Active.Spec.NodeName == "" || s.Rollout.ToTarget.Method != rollout.Recreate || s.Rollout.Pod.Revision == update.Hash() {
			continue
		}
		want := build.PreflightPod(s.Active, update, s.Attempt)
		progress, message := rollout.Needed, fmt.Sprintf("checking image %s on node %s", update.Image.Reference, s.Active.Spec.NodeName)
		if i := slices.IndexFunc(pods, func(p *corev1.Pod) bool { return p.Name == want.Key.Name }); i >= 0 {
			r.Images[s.Name] = resources.ImageOf(pods[i])
			var problem *shard.Problem
			if progress, problem = podResult(pods[i], update.Image.Version, &update.Spec); problem != nil && progress != rollout.Refused {
				message = fmt.Sprintf("the preflight check on node %s had no result, and is repeated: %s", pods[i].Spec.NodeName, problem.Message)
			} else if problem != nil {
				message = fmt.Sprintf(Verdict+" on node %s, and no shard was changed: %s", pods[i].Spec.NodeName, problem.Message)
				r.Problem = cmp.Or(r.Problem, problem)
			}
		} else if !slices.ContainsFunc(r.Create, func(o resources.Object) bool { return o.Key == want.Key }) {
			r.Create = append(r.Create, want)
		}
		if urgency(progress) > urgency(r.Progress) {
			r.Progress, r.Message = progress, message
		}
	}
	return r
}

// urgency orders progress by what decides when nodes differ.
func urgency(p rollout.Progress) int {
	return slices.Index([]rollout.Progress{rollout.Done, rollout.Underway, rollout.Needed, rollout.Refused}, p)
}

// Obsolete returns the preflight pods that aren't needed any more: the rollout is done, the
// revision is another one, or a failed check will be repeated. retryIn is when the next
// failed check will be repeated; 0 is never.
func Obsolete(pods []*corev1.Pod, done bool, update resources.PodRevision, now time.Time) (obsolete []*corev1.Pod, retryIn time.Duration) {
	for _, pod := range pods {
		if pod.DeletionTimestamp != nil {
			continue
		}
		left := retryAfter - now.Sub(pod.CreationTimestamp.Time)
		stage := podresult.Of(pod, resources.Container)
		progress, _ := podResult(pod, update.Image.Version, &update.Spec)
		failed := stage == podresult.Failed || stage == podresult.Stopped || stage == podresult.Succeeded && progress != rollout.Done
		switch {
		case done, pod.Annotations[annotations.Revision] != update.Hash(), failed && left <= 0:
			obsolete = append(obsolete, pod)
		case failed && (retryIn == 0 || left < retryIn):
			retryIn = left
		}
	}
	return obsolete, retryIn
}

// podResult returns how far a check is, and why it failed or has to be repeated. version is the version in the reference of the
// image; empty if there is none. The image may contain a version that the spec doesn't support.
func podResult(pod *corev1.Pod, version string, spec *v1beta1.MemcachedSpec) (rollout.Progress, *shard.Problem) {
	pod = podresult.Only(pod, resources.Container)
	output, problem := "", shard.PodProblem(pod)
	if t := podresult.Terminated(pod, resources.Container); t != nil {
		output = strings.TrimSpace(t.Message)
	}
	stage := podresult.Of(pod, resources.Container)
	switch stage {
	case podresult.Succeeded:
		var found agentwire.Preflight
		if json.Unmarshal([]byte(output), &found) != nil || found.Version == "" {
			return rollout.Refused, &shard.Problem{Reason: v1beta1.ReasonImageUnusable, Message: "the preflight check did not report memcached's version"}
		}
		if version != "" && found.Version != version {
			return rollout.Refused, &shard.Problem{Reason: v1beta1.ReasonVersionMismatch,
				Message: fmt.Sprintf("the image contains memcached %s, but its tag says %s", found.Version, version)}
		}
		if unsupported := resources.UnsupportedVersion(found.Version, spec.TLS, spec.Auth); unsupported != "" {
			return rollout.Refused, &shard.Problem{Reason: v1beta1.ReasonVersionUnsupported, Message: "the image contains an unsupported version: " + unsupported}
		}
		return rollout.Done, nil
	case podresult.Failed, podresult.Stopped:
		message := cmp.Or(output, pod.Status.Message, pod.Status.Reason)
		if message == "" && problem != nil {
			message = problem.Message
		}
		message = cmp.Or(message, "the preflight check failed")
		switch {
		case isVerdict(pod):
			return rollout.Refused, &shard.Problem{Reason: v1beta1.ReasonImageUnusable, Message: message}
		case isFull(pod):
			return rollout.Refused, &shard.Problem{Reason: v1beta1.ReasonUnschedulable, Message: message}
		}
		return rollout.Underway, &shard.Problem{Reason: v1beta1.ReasonRetrying, Message: message}
	case podresult.Waiting:
		if problem != nil && problem.Reason != v1beta1.ReasonNodeLost {
			return rollout.Refused, problem
		}
	case podresult.Running:
		if problem != nil && problem.Reason != v1beta1.ReasonNodeLost {
			problem = nil // of a container that has let this one start
		}
	}
	return rollout.Underway, problem
}

// signaled is the least exit code of a container that a signal has terminated, less one.
const signaled = 128

// isVerdict reports whether a check that failed says something about the image: its container exited by itself, and not because
// memcached was slow. A pod has a reason if the kubelet or the control plane has terminated it: it was evicted, its
// node shuts down or is lost, the pull took too long. A signal is theirs too, or the kernel's for lack of memory.
func isVerdict(pod *corev1.Pod) bool {
	t := podresult.Terminated(pod, resources.Container)
	return pod.Status.Reason == "" && t != nil && t.ExitCode != agentwire.ExitTimedOut && t.ExitCode <= signaled
}

// isFull reports whether the kubelet rejected a pod because its node has no room: it has as many pods as it may, or their requests
// have taken its CPU or memory. The reason is OutOf with the resource.
func isFull(pod *corev1.Pod) bool { return strings.HasPrefix(pod.Status.Reason, "OutOf") }
