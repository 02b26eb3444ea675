package shard

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
)

func TestAgentThatDoesNotAnswerIsQueriedLessAndLess(t *testing.T) {
	revision := podRevision(t)
	f := newFixture(revision, revision, revision)
	for after, want := range map[time.Duration]time.Duration{-1: 0, 0: AgentRetryMin, 20 * time.Second: 5 * time.Second, 2 * time.Minute: maxAgentRetry, time.Hour: maxAgentRetry} {
		last := v1beta1.ShardStatus{Name: "cache-0", PodName: "first"}
		if after >= 0 {
			last.AgentUnreachableTime = &metav1.Time{Time: f.now.Add(-after)}
		}
		f.memcached.Status.Shards = []v1beta1.ShardStatus{last}
		s := f.evaluate()
		if got := s.AgentRetry(f.now); got != want {
			t.Errorf("after %s: %s, want %s", after, got, want)
		}
		last.PodName = "former" // its agent was another one
		if since := AgentUnreachableTime(last, "first", f.now); !since.Time.Equal(f.now) {
			t.Errorf("the agent of another pod was unreachable since %s", since)
		}
		if problem := AgentProblem([]v1beta1.ShardStatus{last}, f.now); (problem != nil) != (after >= agentGrace) {
			t.Errorf("after %s: %+v", after, problem)
		}
	}
}
