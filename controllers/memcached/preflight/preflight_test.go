package preflight

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/rollout"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/shard"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/shard/shardtest"
	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
)

var options = resources.Options{AgentImage: "agent", DefaultImage: "docker.io/library/memcached:1.6.45"}

// terminated is the status of a pod whose container has written a message. It runs while the pod does.
func terminated(phase corev1.PodPhase, message string) corev1.PodStatus {
	c := corev1.ContainerStatus{Name: resources.Container}
	if phase == corev1.PodSucceeded || phase == corev1.PodFailed {
		c.State.Terminated = &corev1.ContainerStateTerminated{Message: message}
	} else {
		c.State.Running = &corev1.ContainerStateRunning{}
	}
	if phase == corev1.PodFailed {
		c.State.Terminated.ExitCode = 1
	}
	return corev1.PodStatus{Phase: phase, ContainerStatuses: []corev1.ContainerStatus{c}}
}

// beside returns the status of a pod with another container, which is in that state, before and after it.
func beside(status corev1.PodStatus, phase corev1.PodPhase, state corev1.ContainerState) corev1.PodStatus {
	other := corev1.ContainerStatus{Name: "proxy", Image: "proxy:1", State: state}
	last := other
	last.Name = "log"
	status.Phase, status.ContainerStatuses = phase, append([]corev1.ContainerStatus{other}, append(status.ContainerStatuses, last)...)
	return status
}

func TestPodResult(t *testing.T) {
	pulling := corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{{Name: resources.Container, Image: "i:1",
		State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "no such image"}}}}}
	exited := func(code int32, message string) corev1.PodStatus {
		status := terminated(corev1.PodFailed, message)
		status.ContainerStatuses[0].Image = "i:1"
		status.ContainerStatuses[0].State.Terminated.ExitCode, status.ContainerStatuses[0].State.Terminated.Reason = code, "Error"
		return status
	}
	timedOut, evicted := exited(agentwire.ExitTimedOut, "memcached did not respond within 1m0s"), exited(1, "")
	evicted.Reason, evicted.Message = "Evicted", "the node was low on memory"
	lost := corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{
		{Type: corev1.PodReady, Status: corev1.ConditionFalse}, {Type: corev1.ContainersReady, Status: corev1.ConditionTrue}}}
	plain := v1beta1.MemcachedSpec{}
	const good = `{"version":"1.6.45"}`
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	crashed := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Message: "the proxy crashed"}}
	for name, c := range map[string]struct {
		status  corev1.PodStatus
		version string
		spec    v1beta1.MemcachedSpec
		want    rollout.Progress
		problem *shard.Problem
	}{
		"pending":                       {corev1.PodStatus{Phase: corev1.PodPending}, "1.6.45", plain, rollout.Underway, nil},
		"the expected version":          {terminated(corev1.PodSucceeded, `{"version":"1.6.45"}`), "1.6.45", plain, rollout.Done, nil},
		"any version where none is due": {terminated(corev1.PodSucceeded, `{"version":"1.6.45"}`), "", plain, rollout.Done, nil},
		"running":                       {terminated(corev1.PodRunning, ""), "1.6.45", plain, rollout.Underway, nil},
		// An image by digest, or with the tag latest.
		"an old version without a login": {terminated(corev1.PodSucceeded, `{"version":"1.6.38"}`), "", plain, rollout.Done, nil},
		"an old version with a login": {terminated(corev1.PodSucceeded, `{"version":"1.6.38"}`), "", v1beta1.MemcachedSpec{Auth: v1beta1.AuthSpec{Mode: v1beta1.AuthRequired}}, rollout.Refused,
			&shard.Problem{Reason: v1beta1.ReasonVersionUnsupported, Message: "the image contains an unsupported version: " + resources.UnsupportedVersion("1.6.38", v1beta1.TLSSpec{}, v1beta1.AuthSpec{Mode: v1beta1.AuthRequired})}},
		"an old version with TLS": {terminated(corev1.PodSucceeded, `{"version":"1.6.38"}`), "", v1beta1.MemcachedSpec{TLS: v1beta1.TLSSpec{Mode: v1beta1.TLSRequired}}, rollout.Refused,
			&shard.Problem{Reason: v1beta1.ReasonVersionUnsupported, Message: "the image contains an unsupported version: " + resources.UnsupportedVersion("1.6.38", v1beta1.TLSSpec{Mode: v1beta1.TLSRequired}, v1beta1.AuthSpec{})}},
		"a version with remote crashes": {terminated(corev1.PodSucceeded, `{"version":"1.6.2"}`), "", plain, rollout.Refused,
			&shard.Problem{Reason: v1beta1.ReasonVersionUnsupported, Message: "the image contains an unsupported version: " + resources.UnsupportedVersion("1.6.2", v1beta1.TLSSpec{}, v1beta1.AuthSpec{})}},
		"another version": {terminated(corev1.PodSucceeded, `{"version":"1.6.38"}`), "1.6.45", plain, rollout.Refused,
			&shard.Problem{Reason: v1beta1.ReasonVersionMismatch, Message: "the image contains memcached 1.6.38, but its tag says 1.6.45"}},
		"no version": {terminated(corev1.PodSucceeded, `{}`), "1.6.45", plain, rollout.Refused,
			&shard.Problem{Reason: v1beta1.ReasonImageUnusable, Message: "the preflight check did not report memcached's version"}},
		"no output": {terminated(corev1.PodSucceeded, ""), "", plain, rollout.Refused,
			&shard.Problem{Reason: v1beta1.ReasonImageUnusable, Message: "the preflight check did not report memcached's version"}},
		"failed": {terminated(corev1.PodFailed, "no memcached in this image"), "1.6.45", plain, rollout.Refused,
			&shard.Problem{Reason: v1beta1.ReasonImageUnusable, Message: "no memcached in this image"}},
		"a node that is too slow": {timedOut, "1.6.45", plain, rollout.Underway,
			&shard.Problem{Reason: v1beta1.ReasonRetrying, Message: "memcached did not respond within 1m0s"}},
		"a pull that takes an hour": {corev1.PodStatus{Phase: corev1.PodFailed, Reason: "DeadlineExceeded", Message: "active for too long"}, "1.6.45", plain, rollout.Underway,
			&shard.Problem{Reason: v1beta1.ReasonRetrying, Message: "active for too long"}},
		"an image that the runtime can't start": {exited(128, "exec format error"), "1.6.45", plain, rollout.Refused,
			&shard.Problem{Reason: v1beta1.ReasonImageUnusable, Message: "exec format error"}},
		"failed without output": {exited(1, ""), "1.6.45", plain, rollout.Refused,
			&shard.Problem{Reason: v1beta1.ReasonImageUnusable, Message: "image i:1: Error, exit code 1"}},
		"an eviction": {evicted, "1.6.45", plain, rollout.Underway,
			&shard.Problem{Reason: v1beta1.ReasonRetrying, Message: "the node was low on memory"}},
		"a node without memory": {exited(137, ""), "1.6.45", plain, rollout.Underway,
			&shard.Problem{Reason: v1beta1.ReasonRetrying, Message: "image i:1: Error, exit code 137"}},
		"a kubelet that rejects the pod": {corev1.PodStatus{Phase: corev1.PodFailed, Reason: "OutOfcpu", Message: "not enough CPU"}, "1.6.45", plain, rollout.Refused,
			&shard.Problem{Reason: v1beta1.ReasonUnschedulable, Message: "not enough CPU"}},
		"a node that has as many pods as it may": {corev1.PodStatus{Phase: corev1.PodFailed, Reason: "OutOfpods", Message: "too many pods"}, "1.6.45", plain, rollout.Refused,
			&shard.Problem{Reason: v1beta1.ReasonUnschedulable, Message: "too many pods"}},
		"a more important pod that takes its place": {corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Preempting", Message: "preempted"}, "1.6.45", plain, rollout.Underway,
			&shard.Problem{Reason: v1beta1.ReasonRetrying, Message: "preempted"}},
		"another container that runs on":             {beside(terminated(corev1.PodSucceeded, good), corev1.PodRunning, running), "1.6.45", plain, rollout.Done, nil},
		"another container that fails":               {beside(terminated(corev1.PodSucceeded, good), corev1.PodFailed, crashed), "1.6.45", plain, rollout.Done, nil},
		"another container that fails while it runs": {beside(terminated(corev1.PodRunning, ""), corev1.PodRunning, crashed), "1.6.45", plain, rollout.Underway, nil},
		"another container that the node can't pull": {beside(corev1.PodStatus{}, corev1.PodPending, pulling.ContainerStatuses[0].State), "1.6.45", plain, rollout.Underway, nil},
		"a failure beside another container that runs on": {beside(exited(1, "no memcached in this image"), corev1.PodRunning, running), "1.6.45", plain, rollout.Refused,
			&shard.Problem{Reason: v1beta1.ReasonImageUnusable, Message: "no memcached in this image"}},
		"an agent that can't be copied": {corev1.PodStatus{Phase: corev1.PodFailed}, "1.6.45", plain, rollout.Underway,
			&shard.Problem{Reason: v1beta1.ReasonRetrying, Message: "the preflight check failed"}},
		"a node that is lost": {lost, "1.6.45", plain, rollout.Underway,
			&shard.Problem{Reason: v1beta1.ReasonNodeLost, Message: "node node1 doesn't respond; Kubernetes replaces the pod when its tolerations expire"}},
		"the node can't pull the image": {pulling, "1.6.45", plain, rollout.Refused,
			&shard.Problem{Reason: v1beta1.ReasonImageCannotBePulled, Message: "image i:1: ImagePullBackOff: no such image"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, problem := podResult(&corev1.Pod{Spec: corev1.PodSpec{NodeName: "node1"}, Status: c.status}, c.version, &c.spec)
			if got != c.want || (problem == nil) != (c.problem == nil) || problem != nil && *problem != *c.problem {
				t.Errorf("%s, %+v; want %s, %+v", got, problem, c.want, c.problem)
			}
		})
	}
}

// newShards returns a Memcached with a shard on each of the nodes, which get another image.
func newShards(t *testing.T, nodes ...string) (*v1beta1.Memcached, []shard.State, resources.PodRevision) {
	t.Helper()
	old, update := shardtest.Revision(t), shardtest.Revision(t, shardtest.Version("1.6.38"))
	m := &v1beta1.Memcached{ObjectMeta: metav1.ObjectMeta{Name: "cache", UID: "uid"}}
	m.Spec.Size = ptr.To(int32(len(nodes))) //nolint:gosec // a few
	observer := shard.Observer{Status: &m.Status, Update: update}
	var shards []shard.Observation
	for i, node := range nodes {
		pod := shardtest.Pod("first", old)
		pod.Spec.NodeName = node
		shards = append(shards, observer.Observe(i, shardtest.ReplicaSet(resources.ShardName("cache", i), old), []*corev1.Pod{pod}))
	}
	return m, shard.EvaluateAll(shards, shard.Inputs{
		Memcached: m, Update: update, Agents: map[string]agentwire.Status{}, Now: time.Unix(1000, 0), Resizing: resources.ResizeAll,
	}), update
}

// finished returns the pod that Evaluate wants to create, with a status.
func finished(o resources.Object, phase corev1.PodPhase, message string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: o.Key.Name, UID: types.UID(o.Key.Name)}, Status: terminated(phase, message)}
}

func TestImageIsCheckedOnEachNodeThatNeedsIt(t *testing.T) {
	const good = `{"version":"1.6.38"}`
	m, shards, update := newShards(t, "node1", "node2", "node1")
	all := Evaluate(resources.NewBuilder(m, options), nil, shards, update).Create
	if len(all) != 2 {
		t.Fatalf("%d preflight pods for two nodes", len(all))
	}
	for name, c := range map[string]struct {
		pods   []*corev1.Pod
		want   rollout.Progress
		create int
	}{
		"no pods":                   {nil, rollout.Needed, 2},
		"only the first succeeded":  {[]*corev1.Pod{finished(all[0], corev1.PodSucceeded, good)}, rollout.Needed, 1},
		"only the second succeeded": {[]*corev1.Pod{finished(all[1], corev1.PodSucceeded, good)}, rollout.Needed, 1},
		"both succeeded":            {[]*corev1.Pod{finished(all[0], corev1.PodSucceeded, good), finished(all[1], corev1.PodSucceeded, good)}, rollout.Done, 0},
		"one is running":            {[]*corev1.Pod{finished(all[0], corev1.PodSucceeded, good), finished(all[1], corev1.PodPending, "")}, rollout.Underway, 0},
		"one failed":                {[]*corev1.Pod{finished(all[0], corev1.PodSucceeded, good), finished(all[1], corev1.PodFailed, "no")}, rollout.Refused, 0},
		"one failed, one to start":  {[]*corev1.Pod{finished(all[0], corev1.PodFailed, "no")}, rollout.Refused, 1},
	} {
		t.Run(name, func(t *testing.T) {
			m, shards, update := newShards(t, "node1", "node2", "node1")
			r := Evaluate(resources.NewBuilder(m, options), c.pods, shards, update)
			if r.Progress != c.want || len(r.Create) != c.create {
				t.Errorf("%s with %d pods to create; want %s with %d", r.Progress, len(r.Create), c.want, c.create)
			}
			if failed := c.want == rollout.Refused; failed != (r.Problem != nil) || failed && r.Problem.Message != "no" {
				t.Errorf("problem %+v", r.Problem)
			}
		})
	}
}

// The node can be overloaded, which says nothing about the image.
func TestCheckThatTookTooLongDoesNotRefuseTheImage(t *testing.T) {
	m, shards, update := newShards(t, "node1")
	build := resources.NewBuilder(m, options)
	pod := finished(Evaluate(build, nil, shards, update).Create[0], corev1.PodFailed, "memcached did not print its version within 1m0s")
	pod.Spec.NodeName = "node1"
	pod.Status.ContainerStatuses[0].State.Terminated.ExitCode = agentwire.ExitTimedOut
	r := Evaluate(build, []*corev1.Pod{pod}, shards, update)
	want := "the preflight check on node node1 had no result, and is repeated: memcached did not print its version within 1m0s"
	if r.Progress != rollout.Underway || r.Problem != nil || r.Message != want {
		t.Errorf("%+v", r)
	}
}

func TestPreflightPodIsDeletedWhenItIsObsolete(t *testing.T) {
	now, update := time.Unix(1000, 0), shardtest.Revision(t, shardtest.Version("1.6.38"))
	for name, c := range map[string]struct {
		phase       corev1.PodPhase
		version     string
		age         time.Duration
		revision    string
		done        bool
		terminating bool
		obsolete    bool
		retryIn     time.Duration
	}{
		"running":                        {phase: corev1.PodRunning, age: time.Hour},
		"succeeded during the rollout":   {phase: corev1.PodSucceeded, version: "1.6.38", age: time.Hour},
		"another version, kept to see":   {phase: corev1.PodSucceeded, version: "1.6.37", age: time.Minute, retryIn: 4 * time.Minute},
		"another version, repeated":      {phase: corev1.PodSucceeded, version: "1.6.37", age: 5 * time.Minute, obsolete: true},
		"the rollout is done":            {phase: corev1.PodSucceeded, age: time.Minute, done: true, obsolete: true},
		"the update revision is another": {phase: corev1.PodSucceeded, age: time.Minute, revision: "another", obsolete: true},
		"failed, kept for users to see":  {phase: corev1.PodFailed, age: time.Minute, retryIn: 4 * time.Minute},
		"failed, and the check repeats":  {phase: corev1.PodFailed, age: 5 * time.Minute, obsolete: true},
		"terminating":                    {phase: corev1.PodFailed, age: time.Hour, terminating: true},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "preflight", CreationTimestamp: metav1.NewTime(now.Add(-c.age)),
				Annotations: map[string]string{annotations.Revision: update.Hash()}}, Status: terminated(c.phase, fmt.Sprintf(`{"version":%q}`, c.version))}
			if c.revision != "" {
				pod.Annotations[annotations.Revision] = c.revision
			}
			if c.terminating {
				pod.DeletionTimestamp = &metav1.Time{Time: now}
			}
			obsolete, retryIn := Obsolete([]*corev1.Pod{pod}, c.done, update, now)
			if (len(obsolete) > 0) != c.obsolete || retryIn != c.retryIn {
				t.Errorf("obsolete: %v, retry in %s; want %v, %s", len(obsolete) > 0, retryIn, c.obsolete, c.retryIn)
			}
		})
	}
}
