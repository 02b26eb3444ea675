package shard

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/rollout"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/shard/shardtest"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
)

// requestMove lets the user want the first pod on another node.
func (f *fixture) requestMove() {
	f.pods[0].Spec.NodeName = "node1"
	shardtest.Annotate(f.pods[0], v1beta1.AnnotationMove, "1")
	shardtest.Annotate(f.pods[0], annotations.Handover, "Strict")
}

// startMove lets the ReplicaSet have the record of the move.
func (f *fixture) startMove() {
	f.requestMove()
	record(f.set, UpdateRecord{Revision: f.update.Hash(), From: f.update.Hash(), Method: rollout.Replace, MovedPod: "first"})
}

func TestShardIsMovedOnceItsUpdateIsOver(t *testing.T) {
	old, update := podRevision(t), podRevision(t, version("1.6.38"))
	for name, c := range map[string]struct {
		change func(*fixture)
		moves  bool
	}{
		"it has the update":           {func(*fixture) {}, true},
		"it isn't requested":          {func(f *fixture) { delete(f.pods[0].Annotations, v1beta1.AnnotationMove) }, false},
		"its pod is deleted anyway":   {func(f *fixture) { f.pods[0].DeletionTimestamp = &metav1.Time{} }, false},
		"its pod starts":              {func(f *fixture) { shardtest.Starting(f.pods[0]) }, true},
		"its pod is broken":           {func(f *fixture) { shardtest.Crashing(f.pods[0]) }, false},
		"its pod will be updated":     {func(f *fixture) { shardtest.Annotate(f.pods[0], annotations.Spec, old.String()) }, false},
		"its template isn't promoted": {func(f *fixture) { f.set.Spec.Template.Annotations = resources.PodAnnotations(old) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(update, update, update)
			f.requestMove()
			c.change(f)
			s := f.evaluate()
			if moves := s.Rollout.Target != update.Hash(); moves != c.moves || moves != (s.Target.MovedPod == "first") {
				t.Errorf("the target is %s", s.Rollout.Target)
			}
		})
	}
}

func TestRequestsOfAShardWaitUntilAllShardsHaveTheUpdate(t *testing.T) {
	old, update := podRevision(t), podRevision(t, version("1.6.38"))
	for name, c := range map[string]struct {
		template, pod resources.PodRevision
		waits         bool
	}{
		"the other shard has it":           {update, update, false},
		"its pod doesn't":                  {update, old, true},
		"its next pod doesn't":             {old, update, true},
		"it hasn't been updated":           {old, old, true},
		"it is without a pod and has it":   {template: update},
		"it is without a pod, and has not": {template: old, waits: true},
	} {
		f := newFixture(update, update, update)
		f.requestMove()
		observer := Observer{Status: &f.memcached.Status, Update: update}
		var pods []*corev1.Pod
		if c.pod.String() != "" {
			pods = append(pods, shardtest.Pod("other", c.pod))
		}
		shards := EvaluateAll([]Observation{observer.Observe(0, f.set, f.pods), observer.Observe(1, shardtest.ReplicaSet("cache-1", c.template), pods)},
			Inputs{Memcached: f.memcached, Update: update, Now: f.now, Resizing: f.can})
		if waits := shards[0].Target.MovedPod == ""; waits != c.waits || shards[1].Rollout.Target != update.Hash() {
			t.Errorf("%s: the targets are %s and %s", name, shards[0].Rollout.Target, shards[1].Rollout.Target)
		}
	}
}

// The template has the target and the pod hasn't, as in every replacement.
func TestMoveThatHasStartedIsAReplacement(t *testing.T) {
	old, update := podRevision(t), podRevision(t, version("1.6.38"))
	f := newFixture(update, update, update)
	f.startMove()
	s := f.evaluate()
	if r := s.Rollout; r.Template != r.Target || r.Pod.Revision != update.Hash() || r.Target == update.Hash() || !s.Surges {
		t.Errorf("%+v, two pods: %t", r, s.Surges)
	}
	if !s.Rollout.ToTarget.HandsOver || s.Rollout.ToTarget.Method != rollout.Replace || s.IsUpdatedTo(update.Hash()) {
		t.Errorf("%+v, updated: %t", s.Rollout.ToTarget, s.IsUpdatedTo(update.Hash()))
	}
	delete(f.pods[0].Annotations, v1beta1.AnnotationMove)
	if s := f.evaluate(); s.Rollout.Template != update.Hash() || s.Rollout.Target != update.Hash() || s.Surges {
		t.Errorf("without the annotation: %+v, two pods: %t", s.Rollout, s.Surges)
	}
	receiver := f.addPod("second", update)
	shardtest.Annotate(receiver, annotations.Receive, string(f.pods[0].UID))
	if s := f.evaluate(); s.Rollout.Template != s.Rollout.Target || s.Rollout.Next == nil || !s.Surges {
		t.Errorf("without the annotation, in the handover: %+v, two pods: %t", s.Rollout, s.Surges)
	}
	shardtest.Crashing(receiver)
	if s := f.evaluate(); s.Rollout.Target != update.Hash() || s.Surges {
		t.Errorf("without the annotation, to a pod that crashes: %+v, two pods: %t", s.Rollout, s.Surges)
	}
	f.startMove()
	f.pods = []*corev1.Pod{shardtest.Pod("second", update)}
	if s := f.evaluate(); s.Rollout.Template != update.Hash() || s.Rollout.Target != update.Hash() || !s.IsUpdatedTo(update.Hash()) {
		t.Errorf("with the pod on the other node: %+v", s.Rollout)
	}
	f = newReplacement(old, update) // which avoids the node, too
	f.startMove()
	if s := f.evaluate(); s.Rollout.Template != s.Rollout.Target || s.Rollout.Pod.Revision != old.Hash() || s.Rollout.ToTarget.Method != rollout.Recreate {
		t.Errorf("an update that moves the shard: %+v", s.Rollout)
	}
}

// No other shard waits for a move. The first pod serves until there is a node.
func TestPodOnAnotherNodeThatDoesNotStartFailsNoUpdate(t *testing.T) {
	old, update := podRevision(t), podRevision(t, version("1.6.38"))
	rejected := func(f *fixture) {
		f.set.Status.Conditions = []appsv1.ReplicaSetCondition{{Type: appsv1.ReplicaSetReplicaFailure, Status: corev1.ConditionTrue, Message: "exceeded quota"}}
	}
	crashes := func(f *fixture) { shardtest.Crashing(f.addPod("second", update)) }
	for name, fail := range map[string]func(*fixture){"it crashes": crashes, "the API server rejects it": rejected} {
		whileUpdated := map[string]rollout.State{"it crashes": rollout.Broken, "the API server rejects it": rollout.Starting}[name]
		for pod, want := range map[string]rollout.State{update.String(): rollout.Starting, old.String(): whileUpdated} {
			f := newFixture(update, update, update)
			f.startMove()
			shardtest.Annotate(f.pods[0], annotations.Spec, pod)
			if pod == old.String() {
				f.pods[0].Spec.Containers[0].Image = old.Image.Reference
				f.memcached.Spec.UpdateStrategy.Type = v1beta1.UpdateHandover
			}
			fail(f)
			if next := f.evaluate().Rollout.Next; next == nil || next.State != want || next.Reason == "" {
				t.Errorf("%s: the second pod is %+v, want %s", name, next, want)
			}
		}
	}
}
