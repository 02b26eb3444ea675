package transfer

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	snapshotwire "github.com/memcached-operator/memcached-operator/internal/snapshot/wire"
	"github.com/memcached-operator/memcached-operator/internal/testnumbers"
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
		"it reported success":             {[]corev1.Pod{reported(`{"reason":"Succeeded","items":3}`)}, Succeeded, v1beta1.ReasonSucceeded, ""},
		"it reported a failure":           {[]corev1.Pod{reported(`{"reason":"ShardUnreachable","message":"shard 1 does not answer"}`)}, Failed, v1beta1.ReasonShardUnreachable, "shard 1 does not answer"},
		"it reported nothing":             {[]corev1.Pod{reported("")}, Failed, v1beta1.ReasonJobFailed, "could read the result"},
		"its pod was deleted":             {nil, Failed, v1beta1.ReasonJobFailed, "could read the result"},
		"an earlier pod reported success": {[]corev1.Pod{reported(""), reported(`{"reason":"Succeeded","items":3}`)}, Failed, v1beta1.ReasonJobFailed, "could read the result"},
		"its message is truncated":        {[]corev1.Pod{reported(`{"reason":"Succ`)}, Failed, v1beta1.ReasonJobFailed, "could read the result"},
	} {
		t.Run(name, func(t *testing.T) {
			v := Evaluate(jobObservation(0, finished(batchv1.JobComplete, ""), c.pods...), claim)
			if v.Stage != c.stage || v.Reason != c.reason || !strings.Contains(v.Message, c.words) {
				t.Errorf("stage %d (%s): %s", v.Stage, v.Reason, v.Message)
			}
		})
	}
}

// A Job's pod can run any program, and statuses and metrics contain its figures.
func TestNumbersThatAJobReportsAreBounded(t *testing.T) {
	for integer, valid := range map[int64]func(float64) bool{
		math.MinInt64: func(n float64) bool { return n == 0 },
		-5:            func(n float64) bool { return n == 0 },
		1200:          func(n float64) bool { return n == 1200 },
		math.MaxInt64: func(n float64) bool { return n == math.MaxInt32 || n == maxCount },
	} {
		check := func(name string, n float64) {
			if !valid(n) {
				t.Errorf("%s is %v when the Job reports %d", name, n, integer)
			}
		}
		var progress snapshotwire.Progress
		testnumbers.Set(&progress, integer, 0)
		testnumbers.Each(new(boundedProgress(progress)), check)
		outcome := snapshotwire.Outcome{Reason: snapshotwire.ReasonSucceeded}
		testnumbers.Set(&outcome, integer, 0)
		message, err := json.Marshal(outcome)
		if err != nil {
			t.Fatal(err)
		}
		testnumbers.Each(outcomeOf([]corev1.Pod{pod(0, corev1.PodSucceeded, terminatedState(0, "Completed", string(message)))}), check)
	}
}
