package memcached

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/memcached-operator/memcached-operator/controllers/memcached/manifests"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/rollout"
	"github.com/memcached-operator/memcached-operator/internal/agentapi"
)

// Until it ends, the container that failed serves on and says nothing of the one
// that follows.
func TestAShardThatWasTakenBackIsSettledOnceItsContainerIsAnother(t *testing.T) {
	for running, want := range map[string]rollout.Outcome{"failed": rollout.Pending, "next": rollout.Settled} {
		s := shard{
			Shard: rollout.Shard{Template: "before", Pod: rollout.Pod{Revision: "before", State: rollout.Serving}},
			pod: &corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
				Name: manifests.Container, ContainerID: running,
			}}}},
			step:  &step{Revision: "before", Class: rollout.Recreate, Container: "failed"},
			agent: &agentapi.Status{},
		}
		s.judge(&observed{})
		if s.Pod.Outcome != want {
			t.Errorf("while container %q runs it is %s, want %s", running, s.Pod.Outcome, want)
		}
	}
}
