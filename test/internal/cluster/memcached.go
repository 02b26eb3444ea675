package cluster

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
)

// Memcached reads a Memcached.
func (c *Cluster) Memcached(ctx context.Context, key client.ObjectKey) (*v1beta1.Memcached, error) {
	m := &v1beta1.Memcached{}
	if err := c.Get(ctx, key, m); err != nil {
		return nil, fmt.Errorf("reading Memcached %s: %w", key, err)
	}
	return m, nil
}

// ApplyMemcached applies the spec of a Memcached.
func (c *Cluster) ApplyMemcached(ctx context.Context, key client.ObjectKey, spec v1beta1.MemcachedSpec, owner client.FieldOwner) error {
	m := &v1beta1.Memcached{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1beta1.GroupVersion.String(), Kind: "Memcached"},
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
		Spec:       spec,
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(m)
	if err != nil {
		return fmt.Errorf("converting Memcached %s: %w", key, err)
	}
	delete(fields, "status")
	if err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(&unstructured.Unstructured{Object: fields}), owner, client.ForceOwnership); err != nil {
		return fmt.Errorf("applying Memcached %s: %w", key, err)
	}
	return nil
}

// Await waits until the status of a Memcached is up to date and check returns nil, and returns the Memcached.
func (c *Cluster) Await(ctx context.Context, key client.ObjectKey, what string, check func(*v1beta1.Memcached) error) (*v1beta1.Memcached, error) {
	var m *v1beta1.Memcached
	err := Eventually(ctx, fmt.Sprintf("Memcached %s: %s", key.Name, what), func(ctx context.Context) error {
		var err error
		if m, err = c.Memcached(ctx, key); err != nil {
			return err
		}
		if m.Status.ObservedGeneration != m.Generation {
			return fmt.Errorf("its status is of generation %d, its spec of %d", m.Status.ObservedGeneration, m.Generation)
		}
		return check(m)
	})
	return m, err
}

// Available returns an error unless all shards serve, their number is the desired one, nothing requires manual
// intervention, and the start of each shard is reported.
func Available(m *v1beta1.Memcached) error {
	for _, want := range []struct {
		condition string
		status    metav1.ConditionStatus
	}{
		{v1beta1.ConditionAvailable, metav1.ConditionTrue},
		{v1beta1.ConditionProgressing, metav1.ConditionFalse},
		{v1beta1.ConditionDegraded, metav1.ConditionFalse},
	} {
		c := meta.FindStatusCondition(m.Status.Conditions, want.condition)
		if c == nil {
			return fmt.Errorf("it has no condition %s", want.condition)
		}
		if c.Status != want.status {
			return fmt.Errorf("%s is %s: %s: %s", c.Type, c.Status, c.Reason, c.Message)
		}
	}
	for _, s := range m.Status.Shards {
		if s.StartResult == "" {
			return fmt.Errorf("shard %s has no start", s.Name)
		}
	}
	return nil
}

// Shard returns the status of a shard.
func Shard(m *v1beta1.Memcached, ordinal int) (v1beta1.ShardStatus, error) {
	name := ShardName(m.Name, ordinal)
	i := slices.IndexFunc(m.Status.Shards, func(s v1beta1.ShardStatus) bool { return s.Name == name })
	if i < 0 {
		return v1beta1.ShardStatus{}, fmt.Errorf("the status of Memcached %s has no shard %s", m.Name, name)
	}
	return m.Status.Shards[i], nil
}

// ShardName returns the name of a shard, its ReplicaSet and its Service.
func ShardName(memcached string, ordinal int) string {
	return memcached + "-" + strconv.Itoa(ordinal)
}

// Address returns host:port of a shard's Service, which is stable.
func (c *Cluster) Address(ctx context.Context, namespace, shard string) (string, error) {
	service := &corev1.Service{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: shard}, service); err != nil {
		return "", fmt.Errorf("reading Service %s: %w", shard, err)
	}
	return net.JoinHostPort(service.Spec.ClusterIP, strconv.Itoa(agentwire.MemcachedPort)), nil
}

// Pods returns the pods of a Memcached that are not terminating, by name of their shard.
func (c *Cluster) Pods(ctx context.Context, key client.ObjectKey) (map[string]corev1.Pod, error) {
	var list corev1.PodList
	labels := client.MatchingLabels{v1beta1.LabelName: v1beta1.NameValue, v1beta1.LabelInstance: key.Name}
	if err := c.List(ctx, &list, client.InNamespace(key.Namespace), labels); err != nil {
		return nil, fmt.Errorf("listing the pods of Memcached %s: %w", key.Name, err)
	}
	pods := map[string]corev1.Pod{}
	for _, pod := range list.Items {
		if pod.DeletionTimestamp == nil {
			pods[key.Name+"-"+pod.Labels[v1beta1.LabelShard]] = pod
		}
	}
	return pods, nil
}

// Life differs when a shard gets another pod or its container restarts.
type Life struct {
	Pod      types.UID
	Restarts int32
}

// LifeOf returns the life of a pod's memcached container.
func LifeOf(pod corev1.Pod) Life {
	l := Life{Pod: pod.UID}
	for _, c := range pod.Status.ContainerStatuses {
		l.Restarts += c.RestartCount
	}
	return l
}

// LivesOf returns the lives of pods by name of their shard.
func LivesOf(pods map[string]corev1.Pod) map[string]Life {
	lives := map[string]Life{}
	for shard, pod := range pods {
		lives[shard] = LifeOf(pod)
	}
	return lives
}

// Annotate sets an annotation of an object.
func (c *Cluster) Annotate(ctx context.Context, o client.Object, name, value string) error {
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, name, value)
	if err := c.Patch(ctx, o, client.RawPatch("application/merge-patch+json", patch)); err != nil {
		return fmt.Errorf("annotating %T %s: %w", o, o.GetName(), err)
	}
	return nil
}

// Restart restarts memcached of a shard in place and waits until the status reports it.
func (c *Cluster) Restart(ctx context.Context, key client.ObjectKey, ordinal int, token string) (v1beta1.ShardStatus, error) {
	m, err := c.Memcached(ctx, key)
	if err != nil {
		return v1beta1.ShardStatus{}, err
	}
	shard, err := Shard(m, ordinal)
	if err != nil {
		return v1beta1.ShardStatus{}, err
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: shard.PodName}}
	if err := c.Annotate(ctx, pod, v1beta1.AnnotationRestart, token); err != nil {
		return v1beta1.ShardStatus{}, err
	}
	_, err = c.Await(ctx, key, fmt.Sprintf("shard %s restarted", shard.Name), func(m *v1beta1.Memcached) error {
		var err error
		if shard, err = Shard(m, ordinal); err != nil {
			return err
		}
		if shard.RestartAnnotation != token || !shard.Ready {
			return fmt.Errorf("its status reports restart %q, ready %t", shard.RestartAnnotation, shard.Ready)
		}
		return nil
	})
	return shard, err
}

// HasEvent waits until an event of a Memcached with this reason contains all words.
func (c *Cluster) HasEvent(ctx context.Context, key client.ObjectKey, reason string, words ...string) error {
	return Eventually(ctx, fmt.Sprintf("an event %s of Memcached %s", reason, key.Name), func(ctx context.Context) error {
		events, err := c.Set.EventsV1().Events(key.Namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return fmt.Errorf("listing events: %w", err)
		}
		var others []string
		for _, e := range events.Items {
			if e.Regarding.Kind != "Memcached" || e.Regarding.Name != key.Name {
				continue
			}
			lacks := func(word string) bool { return !strings.Contains(e.Note, word) }
			if e.Reason == reason && !slices.ContainsFunc(words, lacks) {
				return nil
			}
			others = append(others, fmt.Sprintf("%s: %s", e.Reason, e.Note))
		}
		return fmt.Errorf("no event contains %q; there are %q", words, others)
	})
}
