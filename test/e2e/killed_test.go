package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	memcachedac "github.com/memcached-operator/memcached-operator/api/v1alpha1/applyconfiguration/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
	"github.com/memcached-operator/memcached-operator/test/internal/items"
	"github.com/memcached-operator/memcached-operator/test/internal/operator"
	"github.com/memcached-operator/memcached-operator/test/internal/suite"
)

// The operator is killed after three writes of an upgrade in turn, each time with a cache of its own. The upgrade must end as
// one in which it was not killed. The simulation kills it after each write.
func TestUpgradeCompletesWhereverTheOperatorIsKilled(t *testing.T) {
	killAfterWrites(t, 10, operators.upgrade)
}

// killAfterWrites does work, which takes at least so many writes, and repeats it with an operator that is killed after the
// first, the middle and the last of them. Repeated writes don't count: how often the status is written depends on what is
// observed in between.
func killAfterWrites(t *testing.T, least int, work func(operators, *testing.T, operator.Write) upgrade) {
	t.Helper()
	operators := withoutOperator(t)
	var whole upgrade
	if !t.Run("nowhere", func(t *testing.T) { whole = work(operators, t, operator.Write{}) }) {
		return
	}
	t.Logf("done after %s and %d writes, and it ends so:\n%s", whole.took, len(whole.writes), whole.end)
	if len(whole.writes) < least {
		t.Fatalf("the operator made %d writes, which cannot be all: %q", len(whole.writes), whole.writes)
	}
	writes := slices.DeleteFunc(slices.Clone(whole.writes), func(w operator.Write) bool { return w.Time > 1 })
	for _, w := range []operator.Write{writes[0], writes[len(writes)/2], writes[len(writes)-1]} {
		t.Run("after "+w.String(), func(t *testing.T) {
			t.Parallel()
			u := work(operators, t, w)
			if !u.killed {
				t.Errorf("there was no such write among %q", u.writes)
			}
			t.Logf("done after %s and %d writes", u.took, len(u.writes))
			if u.end != whole.end {
				t.Errorf("it ends so:\n%s\nand otherwise when the operator is not killed:\n%s", u.end, whole.end)
			}
		})
	}
}

// operators are how to run the operator beside the tests as it runs in its pod.
type operators struct{ environment []string }

// program is the operator in the image of the tests.
const program = "/manager"

// withoutOperator deletes the operator that the other tests use, until the end of the test.
func withoutOperator(t *testing.T) operators {
	t.Helper()
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	d := &appsv1.Deployment{}
	must(k.Get(ctx, client.ObjectKey{Namespace: cluster.OperatorNamespace, Name: cluster.OperatorDeployment}, d))
	environment, err := operator.Environment(d)
	must(err)
	again := &appsv1.Deployment{Spec: d.Spec, ObjectMeta: metav1.ObjectMeta{
		Namespace: d.Namespace, Name: d.Name, Labels: d.Labels, Annotations: d.Annotations, OwnerReferences: d.OwnerReferences,
	}}
	t.Cleanup(func() { // whatever happened: the other tests need it
		ctx := context.Background()
		if err := k.Create(ctx, again, client.FieldOwner("kubectl")); err != nil {
			t.Errorf("creating the operator's Deployment again: %v", err)
		}
		if err := k.OperatorReady(ctx); err != nil {
			t.Error(err)
		}
	})
	// Not scaled to 0: a run that is cut short would leave what looks like an operator.
	must(k.Delete(ctx, d))
	must(cluster.Eventually(ctx, suite.Soon, "no operator", func(ctx context.Context) error {
		pods, err := k.OperatorPods(ctx)
		if err == nil && len(pods) > 0 {
			err = fmt.Errorf("%s is there", pods[0].Name)
		}
		return err
	}))
	return operators{environment}
}

// start starts the operator for one namespace until the end of the test.
func (o operators) start(s *space) *operator.Operator {
	s.Helper()
	one, err := operator.Start(operator.Options{Program: program, Environment: o.environment, Namespace: s.Namespace, Dir: s.TempDir()})
	s.Must(err)
	s.Cleanup(func() {
		if err := one.Stop(); err != nil {
			s.Error(err)
		}
		if s.Failed() {
			s.Log("what the operator logged:\n" + one.Log())
		}
	})
	return one
}

// upgrade is what there was of an upgrade.
type upgrade struct {
	writes []operator.Write
	killed bool
	// took is the time until everything was up to date.
	took time.Duration
	// end describes the state, as far as it is the same in each run.
	end string
}

// upgrade upgrades a cache that holds items, to another number of threads too. The
// operator is killed after the last write; it is not when that is zero.
func (o operators) upgrade(t *testing.T, last operator.Write) upgrade {
	t.Helper()
	const size = 2000
	s := newSpace(t)
	one := o.start(s)
	s.Apply("cache", suite.Small(2).WithVersion(versions[len(versions)/2]))
	s.Available("cache")
	sets := []*items.Set{s.Written("cache", 0, size), s.Written("cache", 1, size)}
	before := s.Lives("cache")

	one.Note(last)
	began := time.Now()
	spec := suite.Small(2).WithVersion(versions[len(versions)-1]).WithThreads(2)
	s.Apply("cache", spec)
	s.Updated("cache")
	u := upgrade{took: time.Since(began).Round(100 * time.Millisecond)}
	var err error
	u.writes, u.killed, err = one.Noted()
	s.Must(err)
	// An operator that was killed last has had no say yet. It has once it answers
	// another spec with the same shards.
	s.Apply("cache", spec.WithUpdateStrategy(memcachedac.UpdateStrategy().WithMinIntervalSeconds(1)))
	m := s.Updated("cache")

	s.Restarted("cache", before, map[string]int32{"cache-0": 1, "cache-1": 1})
	s.NoPreflightPods()
	for ordinal, set := range sets {
		s.Address("cache", ordinal) // answers again
		s.Holds(set)
		if shard := s.Shard(m, ordinal); shard.ItemsBefore < size || shard.Items < size {
			t.Errorf("the shard's status is %+v", shard)
		}
	}
	u.end = s.state(m)
	return u
}

// end describes a Memcached and its objects, without what differs from run
// to run.
func (s *space) state(m *v1alpha1.Memcached) string {
	s.Helper()
	var lines []string
	add := func(format string, a ...any) { lines = append(lines, fmt.Sprintf(format, a...)) }
	var pods corev1.PodList
	s.Must(k.List(s.Ctx, &pods, client.InNamespace(s.Namespace)))
	for _, pod := range pods.Items {
		agent, err := cluster.AgentStatus(s.Ctx, pod)
		s.Must(err)
		add("a pod of shard %s: ready %t, image %s, spec %s, %s", pod.Labels[v1alpha1.LabelShard], suite.IsReady(pod), pod.Spec.Containers[0].Image,
			pod.Annotations[annotations.Arguments], pod.Annotations[annotations.Spec])
		add("the agent of shard %s: version %s, arguments %q, rejected %q, start %s, announced stop %q", pod.Labels[v1alpha1.LabelShard],
			agent.Version, agent.Arguments, agent.ArgumentsError, agent.Start.Result, agent.AnnouncedStop)
	}
	var sets appsv1.ReplicaSetList
	s.Must(k.List(s.Ctx, &sets, client.InNamespace(s.Namespace)))
	for _, set := range sets.Items {
		template := set.Spec.Template
		add("ReplicaSet %s: %d, image %s, spec %s, failed %q", set.Name, *set.Spec.Replicas,
			template.Spec.Containers[0].Image, template.Annotations[annotations.Spec], set.Annotations[annotations.Failed])
	}
	for _, shard := range m.Status.Shards {
		add("status of %s: current %t, version %s, ready %t, start %s, %s", shard.Name, shard.Current, shard.Version, shard.Ready, shard.Start, shard.Message)
	}
	for _, c := range m.Status.Conditions {
		add("%s is %s: %s: %s", c.Type, c.Status, c.Reason, c.Message)
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}
