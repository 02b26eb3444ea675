package memcached

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/internal/agentapi"
)

func TestWhichPodOfAShardComesFirst(t *testing.T) {
	made := func(name string, at int64, ready, going bool, phase corev1.PodPhase) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.Unix(at, 0)}}
		if p.Status.Phase = phase; ready {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		}
		if going {
			p.DeletionTimestamp = &metav1.Time{Time: time.Unix(at+1, 0)}
		}
		return p
	}
	want := []*corev1.Pod{
		made("serves, the newer one", 20, true, false, corev1.PodRunning),
		made("serves", 10, true, false, corev1.PodRunning),
		made("serves and goes", 30, true, true, corev1.PodRunning),
		made("starts", 40, false, false, corev1.PodPending),
		made("starts since longer, a", 5, false, false, corev1.PodPending),
		made("starts since longer, b", 5, false, false, corev1.PodPending),
		made("has ended", 60, false, false, corev1.PodFailed),
		made("goes", 50, false, true, corev1.PodRunning),
	}
	pods := slices.Clone(want)
	slices.Reverse(pods)
	slices.SortFunc(pods, comparePods)
	for i := range want {
		if pods[i] != want[i] {
			t.Errorf("place %d: the one that %s, want the one that %s", i, pods[i].Name, want[i].Name)
		}
	}
}

func TestAnAnswerIsOfThisPodAndItsNewestStart(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "this", Annotations: map[string]string{v1alpha1.AnnotationRestart: "second"}}}
	answer := agentapi.Status{PodUID: "this", Restart: "second", Phase: agentapi.PhaseServing, Start: agentapi.Start{Result: agentapi.StartWarm}}
	for name, c := range map[string]struct {
		change func(*agentapi.Status)
		want   bool
	}{
		"it is":                                {func(*agentapi.Status) {}, true},
		"it drains":                            {func(s *agentapi.Status) { s.Phase = agentapi.PhaseDraining }, true},
		"another pod took over the address":    {func(s *agentapi.Status) { s.PodUID = "another" }, false},
		"the restart is yet to come":           {func(s *agentapi.Status) { s.Restart = "first" }, false},
		"memcached restarts":                   {func(s *agentapi.Status) { s.Phase = agentapi.PhaseRestarting }, false},
		"memcached starts for the first time":  {func(s *agentapi.Status) { s.Phase = agentapi.PhaseStarting }, false},
		"it is not known yet how it has begun": {func(s *agentapi.Status) { s.Start.Result = "" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			status := answer
			c.change(&status)
			if got := tellsStart(status, pod); got != c.want {
				t.Errorf("it is taken: %v", got)
			}
		})
	}
}

// A question costs the shard a little and the reconcile a round trip.
func TestASettledShardIsNotAsked(t *testing.T) {
	asked := askedBy(t)
	for name, c := range map[string]struct {
		change func(s *smallShard)
		want   bool
	}{
		"it is settled":                   {func(*smallShard) {}, false},
		"its start is not told of":        {func(s *smallShard) { s.seen.memcached.Status.Shards = nil }, true},
		"its container is another":        {func(s *smallShard) { s.pod.Status.ContainerStatuses[0].ContainerID = "containerd://next" }, true},
		"it was to restart":               {func(s *smallShard) { s.pod.Annotations[v1alpha1.AnnotationRestart] = "now" }, true},
		"what was asked of it is another": {func(s *smallShard) { s.seen.memcached.Status.Revisions["cache-0"] = "before" }, true},
		"a stop is announced to it":       {func(s *smallShard) { s.pod.Annotations[v1alpha1.AnnotationStop] = "token" }, true},
		"it is to be changed next":        {func(s *smallShard) { s.target = askedBy(t, version("1.6.38")) }, true},
		"it does not serve":               {func(s *smallShard) { s.seen.memcached.Status.Shards = nil; starts(s.pod) }, false},
		"its pod has no address":          {func(s *smallShard) { s.seen.memcached.Status.Shards = nil; s.pod.Status.PodIP = "" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := shardAt(asked, asked, asked)
			s.pod.Status.PodIP = "10.0.0.1"
			m := s.seen.memcached
			m.Name = "cache"
			m.Status.Shards = []v1alpha1.ShardStatus{{Name: "cache-0", Start: v1alpha1.StartCold, ContainerID: "containerd://runs"}}
			m.Status.Revisions = map[string]string{"cache-0": asked.Revision()}
			c.change(s)
			s.seen.target, s.seen.shards = s.target, []shard{s.read()}
			if got := len(toAsk(s.seen)) > 0; got != c.want {
				t.Errorf("it is asked: %v", got)
			}
		})
	}
}
