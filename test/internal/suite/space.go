package suite

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/shard"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
	"github.com/memcached-operator/memcached-operator/test/internal/items"
	"github.com/memcached-operator/memcached-operator/test/internal/probe"
)

// Owner of the fields that tests set.
const Owner = client.FieldOwner("e2e")

// Space is a test's own namespace and what it does there. Whatever goes wrong ends the test.
type Space struct {
	*testing.T
	Ctx       context.Context
	Namespace string
	// err stopped the test.
	err error
}

// New creates a namespace that is deleted with the test. When the test fails, it first logs the state there.
func New(t *testing.T) *Space {
	t.Helper()
	s := NewKept(t)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("how things stand:\n%s\nstopped by: %v", K.Describe(context.Background(), s.Namespace), s.err)
		}
		if err := Delete(context.Background(), s.Namespace); err != nil {
			t.Error(err)
		}
	})
	return s
}

// Delete starts the deletion of a namespace. It deletes the Memcacheds first, and their Services with them: a namespace
// keeps Services until its pods are deleted, and a pod keeps serving while its Service exists and no other pod answers.
func Delete(ctx context.Context, namespace string) error {
	if err := K.DeleteAllOf(ctx, &v1beta1.Memcached{}, client.InNamespace(namespace)); err != nil {
		return fmt.Errorf("deleting the Memcacheds of %s: %w", namespace, err)
	}
	err := K.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting namespace %s: %w", namespace, err)
	}
	return nil
}

// NewKept creates a namespace that the caller deletes.
func NewKept(t *testing.T) *Space {
	t.Helper()
	s := &Space{T: t, Ctx: t.Context()}
	namespace, err := K.CreateNamespace(s.Ctx, "e2e-")
	s.Must(err)
	s.Namespace = namespace
	return s
}

// Key names an object in the test's namespace.
func (s *Space) Key(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: s.Namespace, Name: name}
}

// Must ends the test unless there is no error.
func (s *Space) Must(err error) {
	s.Helper()
	if err != nil {
		s.err = err
		s.Fatal(err)
	}
}

// Small returns a spec whose shards ask for so little of the CPU that many fit a small node.
func Small(size int32, changes ...Change) v1beta1.MemcachedSpec {
	spec := v1beta1.MemcachedSpec{
		Size:      &size,
		Resources: &v1beta1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1m")}},
	}
	for _, change := range changes {
		change(&spec)
	}
	return spec
}

// Change is a difference of a spec.
type Change = func(*v1beta1.MemcachedSpec)

// Version sets spec.version.
func Version(version string) Change {
	return func(spec *v1beta1.MemcachedSpec) { spec.Version = version }
}

// Image sets spec.pod.image.
func Image(image string) Change {
	return func(spec *v1beta1.MemcachedSpec) { spec.Pod.Image = image }
}

// Memory sets spec.memory.
func Memory(memory string) Change {
	return func(spec *v1beta1.MemcachedSpec) { spec.Memory = new(resource.MustParse(memory)) }
}

// Threads sets spec.config.threads.
func Threads(threads int32) Change {
	return func(spec *v1beta1.MemcachedSpec) { spec.Config.Threads = &threads }
}

// Arguments sets spec.config.extraArgs.
func Arguments(arguments ...string) Change {
	return func(spec *v1beta1.MemcachedSpec) { spec.Config.ExtraArgs = arguments }
}

// Handover sets spec.updateStrategy.handover.mode.
func Handover(mode v1beta1.HandoverMode) Change {
	return func(spec *v1beta1.MemcachedSpec) { spec.UpdateStrategy.Handover.Mode = mode }
}

// Apply writes the desired state of a Memcached.
func (s *Space) Apply(name string, spec v1beta1.MemcachedSpec) {
	s.Helper()
	s.Must(K.ApplyMemcached(s.Ctx, s.Key(name), spec, Owner))
}

// Serve applies the desired state of a Memcached and waits until it is available.
func (s *Space) Serve(name string, spec v1beta1.MemcachedSpec) *v1beta1.Memcached {
	s.Helper()
	s.Apply(name, spec)
	return s.Available(name)
}

// Available waits until every shard of a Memcached serves and it is up to date.
func (s *Space) Available(name string) *v1beta1.Memcached {
	s.Helper()
	return s.Await(name, "available and up to date", cluster.Available)
}

// Await waits until the status of a Memcached is up to date and check returns nil.
func (s *Space) Await(name, what string, check func(*v1beta1.Memcached) error) *v1beta1.Memcached {
	s.Helper()
	m, err := K.Await(s.Ctx, s.Key(name), what, check)
	s.Must(err)
	return m
}

// Replaced waits until a shard serves from another pod than before, the status describes how it started, and all is up to date.
func (s *Space) Replaced(name string, ordinal int, before corev1.Pod) *v1beta1.Memcached {
	s.Helper()
	s.Await(name, fmt.Sprintf("shard %d in another pod", ordinal), func(m *v1beta1.Memcached) error {
		if slices.Contains(m.Status.Nodes, before.Name) {
			return fmt.Errorf("pods are %v", m.Status.Nodes)
		}
		if id := s.Shard(m, ordinal).ContainerID; id == "" || id == shard.ContainerID(&before) {
			return fmt.Errorf("the status describes the start of container %q", id)
		}
		return nil
	})
	return s.Available(name)
}

// Eventually waits until check returns nil.
func (s *Space) Eventually(what string, check func(context.Context) error) {
	s.Helper()
	s.Must(cluster.Eventually(s.Ctx, what, check))
}

// Degraded waits until a Memcached is Degraded for that reason, and returns it with the sentence.
func (s *Space) Degraded(name, reason string) (*v1beta1.Memcached, string) {
	s.Helper()
	var sentence string
	m := s.Await(name, "Degraded: "+reason, func(m *v1beta1.Memcached) error {
		c := meta.FindStatusCondition(m.Status.Conditions, v1beta1.ConditionDegraded)
		if c == nil || c.Status != metav1.ConditionTrue || c.Reason != reason {
			return fmt.Errorf("Degraded is %+v", c)
		}
		sentence = c.Message
		return nil
	})
	return m, sentence
}

// Event waits for an event about a Memcached that says all of the words.
func (s *Space) Event(name, reason string, words ...string) {
	s.Helper()
	s.Must(K.HasEvent(s.Ctx, s.Key(name), reason, words...))
}

// Shard returns a shard of the status of a Memcached.
func (s *Space) Shard(m *v1beta1.Memcached, ordinal int) v1beta1.ShardStatus {
	s.Helper()
	shard, err := cluster.Shard(m, ordinal)
	s.Must(err)
	return shard
}

// Pods returns the pods of a Memcached by shard.
func (s *Space) Pods(name string) map[string]corev1.Pod {
	s.Helper()
	pods, err := K.Pods(s.Ctx, s.Key(name))
	s.Must(err)
	return pods
}

// Lives returns what changes when a pod or its container is another one, by shard.
func (s *Space) Lives(name string) map[string]cluster.Life {
	s.Helper()
	return cluster.LivesOf(s.Pods(name))
}

// Untouched ends the test unless the pods of a Memcached, or those of the shards
// that were there before, are the same as before.
func (s *Space) Untouched(name string, before map[string]cluster.Life) {
	s.Helper()
	now := s.Lives(name)
	maps.DeleteFunc(now, func(shard string, _ cluster.Life) bool { _, was := before[shard]; return !was })
	if !maps.Equal(before, now) {
		s.Fatalf("pods of %s should be unchanged: they were %v and are %v", name, before, now)
	}
}

// Address returns the address of a shard, once that answers: the node's proxy learns of a pod a Moment after it is ready.
func (s *Space) Address(name string, ordinal int) string {
	s.Helper()
	address, err := K.AnsweringAddress(s.Ctx, s.Namespace, cluster.ShardName(name, ordinal))
	s.Must(err)
	return address
}

// Items returns a set of items behind the address of one shard.
func (s *Space) Items(name string, ordinal, size int) *items.Set {
	s.Helper()
	set := items.New(cluster.ShardName(name, ordinal), size, s.Address(name, ordinal))
	s.Cleanup(func() { _ = set.Close() })
	return set
}

// Written returns a set of items that were written to a shard.
func (s *Space) Written(name string, ordinal, size int) *items.Set {
	s.Helper()
	set := s.Items(name, ordinal, size)
	s.Must(set.Write())
	return set
}

// Holds ends the test unless the whole set is there.
func (s *Space) Holds(set *items.Set) {
	s.Helper()
	_, err := set.Keep(1)
	s.Must(err)
}

// Kept is what a Memcached is to keep: its pods and containers, and the items of its shards.
type Kept struct {
	name  string
	lives map[string]cluster.Life
	sets  []*items.Set
}

// Filled writes items to each shard of a Memcached.
func (s *Space) Filled(name string, shards, perShard int) Kept {
	s.Helper()
	kept := Kept{name: name, lives: s.Lives(name)}
	for ordinal := range shards {
		kept.sets = append(kept.sets, s.Written(name, ordinal, perShard))
	}
	return kept
}

// Keeps ends the test unless a Memcached has kept everything.
func (s *Space) Keeps(kept Kept) {
	s.Helper()
	s.Untouched(kept.name, kept.lives)
	for _, set := range kept.sets {
		s.Holds(set)
	}
}

// Finally calls do at the end of the test, whatever happened.
func (s *Space) Finally(do func(context.Context) error) {
	s.Cleanup(func() {
		if err := do(context.Background()); err != nil {
			s.Error(err)
		}
	})
}

// ReturnsOperator installs the operator at the end of the test, since the other tests need it. Before, another one is removed.
func (s *Space) ReturnsOperator(image string, remove func(context.Context) error) {
	s.Finally(func(ctx context.Context) error {
		return errors.Join(remove(ctx), K.Install(ctx, image), K.UseNewest(ctx))
	})
}

// HadItsRights reports each request of a ServiceAccount of the operator's namespace since a time to which it had no right.
func (s *Space) HadItsRights(account string, since time.Time) {
	s.Helper()
	refused, err := cluster.Refusals(s.Ctx, account, since)
	s.Must(err)
	for _, r := range refused {
		s.Errorf("%s lacks a right: %s", account, r)
	}
}

// Probes opens connections to each shard of a Memcached until it is stopped; the
// returned function stops it and ends the test if one was not answered.
func (s *Space) Probes(name string, shards int) (stop func()) {
	s.Helper()
	var running []*probe.Probe
	for ordinal := range shards {
		running = append(running, s.probed(probe.Start(s.Address(name, ordinal))))
	}
	return s.stopping(running)
}

// probed ends a probe with the test.
func (s *Space) probed(p *probe.Probe) *probe.Probe {
	s.Cleanup(func() { p.Stop() })
	return p
}

// stopping returns the function that stops the probes of all shards and reports them.
func (s *Space) stopping(running []*probe.Probe) (stop func()) {
	return func() {
		s.Helper()
		for ordinal, p := range running {
			report := p.Stop()
			s.Logf("shard %d: %s", ordinal, report)
			if len(report.Failures) > 0 || report.Connections == 0 {
				s.Errorf("shard %d: connections failed", ordinal)
			}
		}
	}
}

// In returns the same space for a part of the test.
func (s *Space) In(t *testing.T) *Space {
	return &Space{T: t, Ctx: t.Context(), Namespace: s.Namespace}
}

// Updated waits until every shard of a Memcached matches its spec, and answers.
func (s *Space) Updated(name string) *v1beta1.Memcached {
	s.Helper()
	m := s.Await(name, "updated", func(m *v1beta1.Memcached) error {
		if u := m.Status.Update; u != nil {
			return fmt.Errorf("%d shards are, %s", m.Status.UpdatedShards, u.Message)
		}
		for _, shard := range m.Status.Shards {
			if !shard.UpToDate {
				return fmt.Errorf("shard %s doesn't match the spec", shard.Name)
			}
			if shard.Message != "" { // such as that two pods still serve
				return fmt.Errorf("shard %s: %s", shard.Name, shard.Message)
			}
		}
		return cluster.Available(m)
	})
	for ordinal := range m.Status.Shards {
		s.Address(name, ordinal)
	}
	return m
}

// Restarted ends the test unless the pods of a Memcached are those of before, and
// their containers were restarted as often as expected, by shard.
func (s *Space) Restarted(name string, before map[string]cluster.Life, times map[string]int32) {
	s.Helper()
	want := map[string]cluster.Life{}
	for shard, l := range before {
		l.Restarts += times[shard]
		want[shard] = l
	}
	s.Untouched(name, want)
}

// NoPreflightPods fails the test while a preflight pod is left.
func (s *Space) NoPreflightPods() {
	s.Helper()
	s.Eventually("no preflight pods", func(ctx context.Context) error {
		var pods corev1.PodList
		err := K.List(ctx, &pods, client.InNamespace(s.Namespace), client.MatchingLabels{v1beta1.LabelName: annotations.PreflightName})
		if err == nil && len(pods.Items) > 0 {
			err = fmt.Errorf("%s is there", pods.Items[0].Name)
		}
		return err
	})
}

// Claim makes a claim of the default storage, with the name "backups", and returns the store that it is.
func (s *Space) Claim() v1beta1.SnapshotStore {
	s.Helper()
	claim := cluster.Claim(metav1.ObjectMeta{Namespace: s.Namespace, Name: "backups"}, "1Gi")
	s.Must(K.Create(s.Ctx, claim))
	return v1beta1.SnapshotStore{PersistentVolumeClaim: &v1beta1.PersistentVolumeClaimStore{ClaimName: claim.Name}}
}

// ScaleTo writes the scale subresource, as "kubectl scale" does.
func (s *Space) ScaleTo(name string, size int32) {
	s.Helper()
	m := &v1beta1.Memcached{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: name}}
	s.Eventually(fmt.Sprintf("scaling to %d", size), func(ctx context.Context) error {
		scale := &autoscalingv1.Scale{}
		if err := K.SubResource("scale").Get(ctx, m, scale); err != nil {
			return err
		}
		scale.Spec.Replicas = size
		return K.SubResource("scale").Update(ctx, m, client.WithSubResourceBody(scale))
	})
}

// Gone waits until an object is no more.
func (s *Space) Gone(o client.Object, name string) {
	s.Helper()
	o.SetNamespace(s.Namespace)
	o.SetName(name)
	s.Must(K.Gone(s.Ctx, o))
}
