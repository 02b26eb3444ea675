package shard

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/shard/shardtest"
	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
)

func TestAgentDescribesTheLatestStartOfThisPod(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "this", Annotations: map[string]string{v1beta1.AnnotationRestart: "second"}}}
	answer := agentwire.Status{PodUID: "this", Restart: "second", Phase: agentwire.PhaseServing, Start: agentwire.Start{Result: agentwire.StartWarm}}
	for name, c := range map[string]struct {
		change func(*agentwire.Status)
		want   bool
	}{
		"serving":                                {func(*agentwire.Status) {}, true},
		"draining":                               {func(s *agentwire.Status) { s.Phase = agentwire.PhaseDraining }, true},
		"another pod took over the address":      {func(s *agentwire.Status) { s.PodUID = "another" }, false},
		"the restart is pending":                 {func(s *agentwire.Status) { s.Restart = "first" }, false},
		"memcached restarts":                     {func(s *agentwire.Status) { s.Phase = agentwire.PhaseRestarting }, false},
		"memcached starts for the first time":    {func(s *agentwire.Status) { s.Phase = agentwire.PhaseStarting }, false},
		"the result of the start is unknown yet": {func(s *agentwire.Status) { s.Start.Result = "" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			status := answer
			c.change(&status)
			if got := IsLatestStart(status, pod); got != c.want {
				t.Errorf("latest start: %v", got)
			}
		})
	}
}

// A pod must not be replaced on a guess.
func TestRevisionThatCannotBeParsedIsTheUpdateRevision(t *testing.T) {
	old, update := podRevision(t), podRevision(t, memory("128Mi"))
	for name, text := range map[string]string{"invalid JSON": "{", "incomplete": "{}", "empty": "", "unreadable quantity": `{"memory":"1e1.5"}`} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(old, old, update)
			f.set.Spec.Template.Annotations[annotations.Spec] = text
			shardtest.Annotate(f.pods[0], annotations.Spec, text)
			s := f.evaluate()
			if s.Template.Hash() != update.Hash() || s.PodRevision.Hash() != update.Hash() {
				t.Errorf("template %s, pod %s; want %s", s.Template.Hash(), s.PodRevision.Hash(), update.Hash())
			}
			if s.Rollout.ToTarget.Method != 0 {
				t.Errorf("the pod would be changed by %s", s.Rollout.ToTarget.Method)
			}
		})
	}
	f := newFixture(old, old, update)
	delete(f.pods[0].Annotations, annotations.Spec)
	if s := f.evaluate(); s.PodRevision.Hash() != update.Hash() || s.Template.Hash() != old.Hash() {
		t.Errorf("without the annotation: template %s, pod %s", s.Template.Hash(), s.PodRevision.Hash())
	}
}

// The ReplicaSet replaces the pod that is being deleted: a third one waits until the operator wants one pod again.
func TestOldestPodThatCanReceiveItemsReceivesThem(t *testing.T) {
	revision := podRevision(t)
	pod := func(name string, age time.Duration) *corev1.Pod {
		p := shardtest.Pod(name, revision)
		p.CreationTimestamp = metav1.NewTime(time.Now().Add(-age))
		p.Status.PodIP = "10.0.0.1"
		p.Status.ContainerStatuses[0].State.Running = &corev1.ContainerStateRunning{}
		shardtest.Annotate(p, annotations.Handover, "key")
		return p
	}
	old, receiver, waits := pod("cache-0-z", time.Hour), pod("cache-0-b", time.Minute), pod("cache-0-a", time.Second)
	old.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	shardtest.Starting(receiver)
	shardtest.Starting(waits)
	pods := []*corev1.Pod{waits, receiver, old}
	slices.SortFunc(pods, ComparePods)
	observation := (&Observer{Status: &v1beta1.MemcachedStatus{}, Update: revision}).Observe(0, shardtest.ReplicaSet("cache-0", revision), pods)
	if got := observation.Receiver; got != receiver {
		t.Errorf("pod %s receives the items", got.Name)
	}
}
