package transfer

import (
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
)

// Kubernetes reports that a Job is Complete; what it did is in the termination message of its pod.
func TestCompleteJobSucceedsOnlyIfItsPodReportsSuccess(t *testing.T) {
	reported := func(message string) corev1.Pod {
		return pod(0, corev1.PodSucceeded, terminatedState(0, "Completed", message))
	}
	for name, c := range map[string]struct {
		pods          []corev1.Pod
		stage         Stage
		reason, words string
	}{
		"it reported success":             {[]corev1.Pod{reported(`{"reason":"Succeeded","items":3}`)}, Succeeded, v1alpha1.ReasonSucceeded, ""},
		"it reported a failure":           {[]corev1.Pod{reported(`{"reason":"ShardUnreachable","message":"shard 1 does not answer"}`)}, Failed, v1alpha1.ReasonShardUnreachable, "shard 1 does not answer"},
		"it reported nothing":             {[]corev1.Pod{reported("")}, Failed, v1alpha1.ReasonJobFailed, "Recreate this object"},
		"its pod was deleted":             {nil, Failed, v1alpha1.ReasonJobFailed, "Recreate this object"},
		"an earlier pod reported success": {[]corev1.Pod{reported(""), reported(`{"reason":"Succeeded","items":3}`)}, Failed, v1alpha1.ReasonJobFailed, "Recreate this object"},
		"its message is truncated":        {[]corev1.Pod{reported(`{"reason":"Succ`)}, Failed, v1alpha1.ReasonJobFailed, "Recreate this object"},
	} {
		t.Run(name, func(t *testing.T) {
			v := Evaluate(jobObservation(0, finished(batchv1.JobComplete, ""), c.pods...), claim)
			if v.Stage != c.stage || v.Reason != c.reason || !strings.Contains(v.Message, c.words) {
				t.Errorf("stage %d (%s): %s", v.Stage, v.Reason, v.Message)
			}
		})
	}
}
