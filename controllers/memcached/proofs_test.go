package memcached

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/manifests"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/rollout"
)

func TestHowFarAProofIs(t *testing.T) {
	said := func(phase corev1.PodPhase, text string) corev1.PodStatus {
		return corev1.PodStatus{Phase: phase, ContainerStatuses: []corev1.ContainerStatus{{Name: manifests.Container,
			State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: text}}}}}
	}
	pulls := corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{{Name: manifests.Container,
		State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "no such image"}}}}}
	for name, c := range map[string]struct {
		status  corev1.PodStatus
		version string
		want    rollout.Progress
		reason  string
	}{
		"it has begun":                             {corev1.PodStatus{Phase: corev1.PodPending}, "1.6.45", rollout.Underway, ""},
		"it told the version that it should":       {said(corev1.PodSucceeded, `{"version":"1.6.45"}`), "1.6.45", rollout.Done, ""},
		"it told one, and the image does not say":  {said(corev1.PodSucceeded, `{"version":"1.6.45"}`), "", rollout.Done, ""},
		"it told another version":                  {said(corev1.PodSucceeded, `{"version":"1.6.38"}`), "1.6.45", rollout.Refused, v1alpha1.ReasonVersionMismatch},
		"it told no version":                       {said(corev1.PodSucceeded, `{}`), "1.6.45", rollout.Refused, v1alpha1.ReasonImageUnusable},
		"it told nothing":                          {said(corev1.PodSucceeded, ""), "", rollout.Refused, v1alpha1.ReasonImageUnusable},
		"it failed":                                {said(corev1.PodFailed, "no memcached in this image"), "1.6.45", rollout.Refused, v1alpha1.ReasonImageUnusable},
		"its node cannot pull the image":           {pulls, "1.6.45", rollout.Refused, v1alpha1.ReasonImageUnusable},
		"what it told while it ran is not the end": {said(corev1.PodRunning, `{"version":"1.6.45"}`), "1.6.45", rollout.Underway, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, trouble := proofOf(&corev1.Pod{Status: c.status}, c.version)
			reason := ""
			if trouble != nil {
				reason = trouble.reason
			}
			if got != c.want || (reason == "") != (c.reason == "") {
				t.Errorf("%s, %+v; want %s, %s", got, trouble, c.want, c.reason)
			}
			if c.status.Phase != corev1.PodPending && reason != c.reason {
				t.Errorf("the reason is %s, want %s", reason, c.reason)
			}
		})
	}
}

// proving is a Memcached whose shards are on nodes and get another image.
func proving(t *testing.T, nodes ...string) (*plan, *observed, manifests.Asked) {
	t.Helper()
	old, wanted := askedBy(t), askedBy(t, version("1.6.38"))
	p := &plan{target: wanted, image: wanted.Image}
	var seen *observed
	for i, node := range nodes {
		s := shardAt(old, old, wanted)
		s.pod.Spec.NodeName = node
		looked := s.look()
		looked.Name = manifests.ShardName("cache", i)
		p.shards, seen = append(p.shards, looked), s.seen
	}
	seen.memcached.Name, seen.memcached.UID, seen.memcached.Spec.Size = "cache", "uid", ptr.To(int32(len(nodes))) //nolint:gosec // a few
	return p, seen, wanted
}

// ended is a proof of the plan that is to be made, as a pod that has ended.
func ended(o manifests.Object, phase corev1.PodPhase, message string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: o.Key.Name, UID: types.UID(o.Key.Name)}}
	pod.Status = corev1.PodStatus{Phase: phase, ContainerStatuses: []corev1.ContainerStatus{{Name: manifests.Container,
		State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: message}}}}}
	return pod
}

func TestAnImageIsProvenOnEveryNodeThatNeedsIt(t *testing.T) {
	const good = `{"version":"1.6.38"}`
	progress := func(t *testing.T, proofs func(made []manifests.Object) []*corev1.Pod) (rollout.Progress, int) {
		t.Helper()
		p, seen, _ := proving(t, "node1", "node2", "node1")
		p.planProofs(seen, smallOptions)
		if len(p.proofs) != 2 {
			t.Fatalf("%d proofs are to be made for two nodes", len(p.proofs))
		}
		made := p.proofs
		p, seen, _ = proving(t, "node1", "node2", "node1")
		seen.proofs = proofs(made)
		p.planProofs(seen, smallOptions)
		for _, s := range p.shards {
			if s.Forward.Proof != p.shards[0].Forward.Proof {
				t.Errorf("%s is not where the others are: %s", s.Name, s.Forward.Proof)
			}
		}
		return p.shards[0].Forward.Proof, len(p.proofs)
	}
	for name, c := range map[string]struct {
		proofs func(made []manifests.Object) []*corev1.Pod
		want   rollout.Progress
		make   int
	}{
		"on none":             {func([]manifests.Object) []*corev1.Pod { return nil }, rollout.Needed, 2},
		"on the first alone":  {func(m []manifests.Object) []*corev1.Pod { return []*corev1.Pod{ended(m[0], corev1.PodSucceeded, good)} }, rollout.Needed, 1},
		"on the second alone": {func(m []manifests.Object) []*corev1.Pod { return []*corev1.Pod{ended(m[1], corev1.PodSucceeded, good)} }, rollout.Needed, 1},
		"on both": {func(m []manifests.Object) []*corev1.Pod {
			return []*corev1.Pod{ended(m[0], corev1.PodSucceeded, good), ended(m[1], corev1.PodSucceeded, good)}
		}, rollout.Done, 0},
		"on one, and it goes on upon the other": {func(m []manifests.Object) []*corev1.Pod {
			return []*corev1.Pod{ended(m[0], corev1.PodSucceeded, good), ended(m[1], corev1.PodPending, "")}
		}, rollout.Underway, 0},
		"on one, and the other refuses it": {func(m []manifests.Object) []*corev1.Pod {
			return []*corev1.Pod{ended(m[0], corev1.PodSucceeded, good), ended(m[1], corev1.PodFailed, "no")}
		}, rollout.Refused, 0},
		"one refuses it, the other has to begin": {func(m []manifests.Object) []*corev1.Pod { return []*corev1.Pod{ended(m[0], corev1.PodFailed, "no")} }, rollout.Refused, 1},
	} {
		t.Run(name, func(t *testing.T) {
			if got, n := progress(t, c.proofs); got != c.want || n != c.make {
				t.Errorf("it is %s, and %d are to be made; want %s, %d", got, n, c.want, c.make)
			}
		})
	}
}

func TestAProofIsEndedWhenItHasServedOrIsToBeTriedAgain(t *testing.T) {
	for name, c := range map[string]struct {
		phase    corev1.PodPhase
		age      time.Duration
		revision bool // another one than the target's
		done     bool
		going    bool
		want     bool
		again    time.Duration
	}{
		"it goes on":                         {phase: corev1.PodRunning, age: time.Hour},
		"it is good, and the update goes on": {phase: corev1.PodSucceeded, age: time.Hour},
		"the update is over":                 {phase: corev1.PodSucceeded, age: time.Minute, done: true, want: true},
		"the target is another":              {phase: corev1.PodSucceeded, age: time.Minute, revision: true, want: true},
		"it failed, to be looked at":         {phase: corev1.PodFailed, age: time.Minute, again: 4 * time.Minute},
		"it failed, and is tried again":      {phase: corev1.PodFailed, age: 5 * time.Minute, want: true},
		"it goes already":                    {phase: corev1.PodFailed, age: time.Hour, going: true},
	} {
		t.Run(name, func(t *testing.T) {
			p, seen, wanted := proving(t, "node1")
			if p.decision = (rollout.Decision{Shard: "cache-0"}); c.done {
				p.decision = rollout.Decision{}
			}
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "proof", CreationTimestamp: metav1.NewTime(seen.now.Add(-c.age)),
				Annotations: map[string]string{v1alpha1.AnnotationRevision: wanted.Revision()}}, Status: corev1.PodStatus{Phase: c.phase}}
			if c.revision {
				pod.Annotations[v1alpha1.AnnotationRevision] = "another"
			}
			if c.going {
				pod.DeletionTimestamp = &metav1.Time{Time: seen.now}
			}
			seen.proofs = []*corev1.Pod{pod}
			p.planProofDeletes(seen)
			if got := len(p.deletes) > 0; got != c.want || p.requeueAfter != c.again {
				t.Errorf("it is ended: %v, looked at again after %s; want %v, %s", got, p.requeueAfter, c.want, c.again)
			}
		})
	}
}

// Nothing of it may be the same: the credentials, the agent's image.
func TestAProofOfADeletedMemcachedOfThisNameProvesNothing(t *testing.T) {
	w := newWorld(t)
	m := w.create("cache", "size: 1")
	w.settle("cache")
	proof := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Labels: manifests.ProofLabels("cache")}}
	proof.Spec.Containers = []corev1.Container{{Name: manifests.Container, Image: "memcached"}}
	for name, uid := range map[string]types.UID{"own": m.UID, "before": "before"} {
		pod := proof.DeepCopy()
		pod.Name = name
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Memcached", Name: "cache", UID: uid, Controller: ptr.To(true)}}
		w.must(admin.Create(w.ctx, pod))
	}
	seen, err := w.reconciler.observe(w.ctx, w.get("cache"))
	w.must(err)
	if len(seen.proofs) != 1 || seen.proofs[0].Name != "own" {
		t.Errorf("%d proofs are taken for its own", len(seen.proofs))
	}
}
