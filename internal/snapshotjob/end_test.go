package snapshotjob

import (
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
)

// Kubernetes says Complete of a Job; what it did is what its pod told.
func TestACompleteJobIsASuccessOnlyWhenItsPodSaidSo(t *testing.T) {
	said := func(message string) corev1.Pod { return pod(0, corev1.PodSucceeded, ended(0, "Completed", message)) }
	for name, c := range map[string]struct {
		pods          []corev1.Pod
		stage         Stage
		reason, words string
	}{
		"it said so":               {[]corev1.Pod{said(`{"reason":"Succeeded","items":3}`)}, Succeeded, v1alpha1.ReasonSucceeded, ""},
		"it said something else":   {[]corev1.Pod{said(`{"reason":"ShardUnreachable","message":"shard 1 does not answer"}`)}, Failed, v1alpha1.ReasonShardUnreachable, "shard 1 does not answer"},
		"it said nothing":          {[]corev1.Pod{said("")}, Failed, v1alpha1.ReasonJobFailed, "make another one"},
		"its pod is gone":          {nil, Failed, v1alpha1.ReasonJobFailed, "make another one"},
		"a pod before said so":     {[]corev1.Pod{said(""), said(`{"reason":"Succeeded","items":3}`)}, Failed, v1alpha1.ReasonJobFailed, "make another one"},
		"it was cut amid its word": {[]corev1.Pod{said(`{"reason":"Succ`)}, Failed, v1alpha1.ReasonJobFailed, "make another one"},
	} {
		t.Run(name, func(t *testing.T) {
			v := Judge(seenJob(0, finished(batchv1.JobComplete, ""), c.pods...), claim)
			if v.Stage != c.stage || v.Reason != c.reason || !strings.Contains(v.Message, c.words) {
				t.Errorf("stage %d (%s): %s", v.Stage, v.Reason, v.Message)
			}
		})
	}
}
