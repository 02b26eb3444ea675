package host

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
	"github.com/memcached-operator/memcached-operator/test/internal/items"
	"github.com/memcached-operator/memcached-operator/test/internal/suite"
)

// The nodes of these tests, which add and remove them. Only pods of a Memcached that is onWorkers run there.
const (
	firstNode  = "node2"
	secondNode = "node3"
	workers    = "memcached-operator.io/worker" // their label and taint
)

// addingNodes belongs to the test that uses them.
var addingNodes sync.Mutex

// withNode is the space of a test beside others, with the first node.
func withNode(t *testing.T) *space {
	t.Helper()
	rest.events.Add(1)
	t.Cleanup(rest.events.Done)
	t.Parallel()
	addingNodes.Lock()
	t.Cleanup(addingNodes.Unlock)
	s := newSpace(t)
	s.addNode(firstNode)
	return s
}

func onWorkers(spec *v1beta1.MemcachedSpec) {
	spec.Pod.NodeSelector = map[string]string{workers: ""}
	spec.Pod.Tolerations = append(spec.Pod.Tolerations, corev1.Toleration{Key: workers, Operator: corev1.TolerationOpExists})
}

// While there is no other node, the pod stays and the status says what is missing. A drain of the other node waits for the
// move back.
func TestMovedShardIsOnAnotherNodeWithItsItems(t *testing.T) {
	const size = 10_000
	s := withNode(t)
	spec := suite.Small(1, suite.Handover(v1beta1.HandoverAvailable), onWorkers)
	m := s.Serve("cache", spec)
	set, stop, stopEndpoints := s.Written("cache", 0, size), s.Probes("cache", 1), s.EndpointProbes("cache", 1)
	pod := s.Shard(m, 0).PodName
	if code, output := s.plugin()("move", "cache", "0", "-n", s.Namespace); code != 0 {
		t.Fatalf("exit code %d\n%s", code, output)
	}
	s.Await("cache", "no other node", func(m *v1beta1.Memcached) error {
		if u := m.Status.Update; u == nil || !strings.Contains(u.Message, "moves from node "+firstNode) || !strings.Contains(u.Message, "node") || m.Status.Shards[0].PodName != pod {
			return fmt.Errorf("%+v", u)
		}
		return nil
	})
	s.Eventually("a budget that lets the pod go", func(ctx context.Context) error {
		var budget policyv1.PodDisruptionBudget
		if err := k.Get(ctx, s.Key("cache"), &budget); err != nil {
			return err
		}
		if b := budget.Status; b.ExpectedPods != 2 || b.DisruptionsAllowed != 1 {
			return fmt.Errorf("with the pending pod, it is %+v", b)
		}
		return nil
	})
	s.addNode(secondNode)
	m = s.Updated("cache")
	if shard := s.Shard(m, 0); shard.NodeName != secondNode || shard.StartResult != v1beta1.StartHandedOver {
		t.Errorf("the shard's status is %+v", shard)
	}
	spec.UpdateStrategy.Handover.NodeDrain.Mode = v1beta1.NodeDrainRequired
	s.Apply("cache", spec)
	s.Updated("cache")
	s.Finally(func(ctx context.Context) error { return k.Cordon(ctx, secondNode, false) })
	s.Must(k.Drain(s.Ctx, secondNode, s.Key("cache")))
	s.Event("cache", v1beta1.EventNodeLeaves, "cordoned")
	m = s.Updated("cache")
	if shard := s.Shard(m, 0); shard.NodeName != firstNode || shard.StartResult != v1beta1.StartHandedOver {
		t.Errorf("the shard's status after the drain is %+v", shard)
	}
	s.Address("cache", 0)
	kept, err := set.Keep(0.999)
	s.Must(err)
	t.Logf("kept %d of %d items", kept, size)
	stopEndpoints()
	stop()
}

// Both nodes are drained at once, so no replacement can start at first. The shards serve until they hand over, those of
// mode Available without a failed connection.
func TestDrainedNodesHandOverTheItemsOfTheirShards(t *testing.T) {
	const size = 10_000
	s := withNode(t)
	s.addNode(secondNode)
	s.Apply("cache", suite.Small(2, onWorkers))
	s.Apply("both", suite.Small(2, suite.Handover(v1beta1.HandoverAvailable), onWorkers))
	both, m := s.Available("both"), s.Available("cache")
	for _, m := range []*v1beta1.Memcached{both, m} {
		if on := shardsOn(m, firstNode); len(on) != 1 {
			t.Fatalf("two shards on two nodes are not spread: %v are on %s", on, firstNode)
		}
	}
	sets := []*items.Set{s.Written("cache", 0, size), s.Written("cache", 1, size)}
	bothSets, stop := []*items.Set{s.Written("both", 0, size), s.Written("both", 1, size)}, s.Probes("both", 2)
	check := func(what string, before map[string]corev1.Pod) {
		t.Helper()
		for ordinal, set := range sets {
			pod, moves := before[cluster.ShardName("cache", ordinal)]
			if moves {
				m = s.Replaced("cache", ordinal, pod)
			}
			shard := s.Shard(m, ordinal)
			if moves && (shard.StartResult != v1beta1.StartHandedOver || float64(shard.Items) < 0.999*size) {
				t.Errorf("%s: the shard's status is %+v", what, shard)
			}
			s.Address("cache", ordinal)
			kept, err := set.Keep(0.999)
			s.Must(err)
			t.Logf("%s: %s kept %d of %d items", what, shard.Name, kept, size)
		}
	}
	nodes := []string{firstNode, secondNode}
	for _, node := range nodes {
		s.Finally(func(ctx context.Context) error { return k.Cordon(ctx, node, false) })
		s.Must(k.Cordon(s.Ctx, node, true))
	}
	before := s.Pods("cache")
	maps.Copy(before, s.Pods("both"))
	for _, pod := range before {
		s.Must(k.Delete(s.Ctx, &pod))
	}
	for _, name := range []string{"cache", "both"} {
		s.Eventually("replacements of "+name+" that no node accepts", func(ctx context.Context) error {
			var pods corev1.PodList
			if err := k.List(ctx, &pods, client.InNamespace(s.Namespace), client.MatchingLabels{v1beta1.LabelInstance: name}); err != nil {
				return err
			}
			pending := 0
			for _, pod := range pods.Items {
				if pod.Spec.NodeName == "" && slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Reason == corev1.PodReasonUnschedulable }) {
					pending++
				}
			}
			if pending != 2 {
				return fmt.Errorf("%d of %d pods are pending", pending, len(pods.Items))
			}
			return nil
		})
	}
	for _, set := range slices.Concat(sets, bothSets) {
		s.Holds(set)
	}
	for _, node := range nodes {
		s.Must(k.Cordon(s.Ctx, node, false))
	}
	for _, pod := range before {
		s.Gone(&pod, pod.Name)
	}
	check("both nodes drained at once", before)
	stop()
	for ordinal, set := range bothSets {
		both = s.Replaced("both", ordinal, before[cluster.ShardName("both", ordinal)])
		if shard := s.Shard(both, ordinal); shard.StartResult != v1beta1.StartHandedOver || shard.GapMilliseconds != 0 {
			t.Errorf("the shard's status is %+v", shard)
		}
		_, err := set.Keep(0.999)
		s.Must(err)
	}
	s.Must(k.Delete(s.Ctx, both))

	node, moving := s.Shard(m, 0).NodeName, s.Pods("cache")
	maps.DeleteFunc(moving, func(_ string, pod corev1.Pod) bool { return pod.Spec.NodeName != node })
	s.Must(k.Drain(s.Ctx, node, s.Key("cache")))
	check("one node drained", moving)
	if left := shardsOn(m, node); len(left) > 0 {
		t.Errorf("shards %v are still on %s", left, node)
	}
}

func TestLostNodeIsReportedAndItsShardsMove(t *testing.T) {
	s := withNode(t)
	s.addNode(secondNode)
	// Kubernetes waits five minutes before it moves pods from a node that does not
	// answer, unless they say otherwise. Until then the operator reports it, which may be late.
	spec := suite.Small(3, onWorkers)
	spec.Pod.Tolerations = append(spec.Pod.Tolerations, corev1.Toleration{
		Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(15)),
	})
	m := s.Serve("cache", spec)
	lost := shardsOn(m, secondNode)
	if len(lost) == 0 || len(lost) == 3 {
		t.Fatalf("three shards on two nodes are not spread: %v are on %s", lost, secondNode)
	}
	others := s.Lives("cache")
	for _, name := range lost {
		delete(others, name)
	}

	_, err := cluster.Local(s.Ctx, "node", "kill", secondNode)
	s.Must(err)
	// The pods are reported one by one, in no order, and moved soon after. An event stays.
	s.Event("cache", v1beta1.ReasonNodeLost, "shard cache-", "node "+secondNode+" doesn't respond")
	s.Untouched("cache", others)

	m = s.Available("cache")
	if left := shardsOn(m, secondNode); len(left) > 0 {
		t.Errorf("shards %v are reported on the lost node", left)
	}
	s.Untouched("cache", others)
	for _, name := range lost {
		s.Event("cache", v1beta1.EventShardStartedEmpty, name)
	}
	_, err = cluster.Local(s.Ctx, "node", "remove", secondNode)
	s.Must(err)
	s.Available("cache")
	s.Untouched("cache", others)
}

// addNode starts a node for the time of the test.
func (s *space) addNode(name string) {
	s.Helper()
	_, err := cluster.Local(s.Ctx, "node", "add", name)
	s.Must(err)
	s.Finally(func(ctx context.Context) error {
		_, err := cluster.Local(ctx, "node", "remove", name)
		return err
	})
}

func shardsOn(m *v1beta1.Memcached, node string) []string {
	var names []string
	for _, shard := range m.Status.Shards {
		if shard.NodeName == node {
			names = append(names, shard.Name)
		}
	}
	return names
}
