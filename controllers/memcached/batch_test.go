package memcached

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers/apiserver"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/applycache"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/plan"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
)

func TestBatchKeepsTheOrderAndForgetsNoObject(t *testing.T) {
	keys := keysOf("cache", 200)
	failed, now := applycache.Attempts{}, time.Unix(0, 0)
	tried := map[resources.Key]int{}
	// The last 130 objects can't be written: each is attempted again, and none delays the others.
	for range 12 {
		now = now.Add(time.Second)
		chosen := plan.Batch(keys, failed)
		if len(chosen) > 2*plan.BatchSize {
			t.Fatalf("a batch has %d objects", len(chosen))
		}
		keys = slices.DeleteFunc(keys, func(key resources.Key) bool {
			if !chosen[key] {
				return false
			}
			tried[key]++
			ordinal, _ := resources.Ordinal("cache", key.Name)
			if ordinal < 135 {
				return true
			}
			failed[key] = applycache.Attempt{At: now}
			return false
		})
	}
	if len(keys) != 130 {
		t.Errorf("%d objects are left", len(keys))
	}
	for _, key := range keys {
		if tried[key] < 2 {
			t.Errorf("%s was attempted %d times", key, tried[key])
		}
	}
	first := plan.Batch(keysOf("cache", 200), nil)
	for i, key := range keysOf("cache", 200) {
		if first[key] != (i < plan.BatchSize) {
			t.Errorf("the first batch contains object %d: %t", i, first[key])
		}
	}
}

// countingReader counts the objects that are looked up.
type countingReader struct {
	client.Reader
	count int
}

// Get implements client.Reader.
func (r *countingReader) Get(ctx context.Context, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
	r.count++
	return r.Reader.Get(ctx, key, o, options...)
}

// 41 shards are 85 objects.
func TestLargeMemcachedIsWrittenInBatches(t *testing.T) {
	env := newEnv(t)
	reads := &countingReader{Reader: env.reconciler.APIReader}
	env.reconciler.APIReader = reads
	env.create("cache", "size: 41")
	var sizes []int32
	for i := range 3 {
		before := env.writes.Load()
		reads.count = 0
		result, err := env.reconciler.Reconcile(env.ctx, ctrl.Request{NamespacedName: client.ObjectKey{Namespace: env.namespace, Name: "cache"}})
		env.must(err)
		if n := env.writes.Load() - before; n > plan.BatchSize+2 { // and the Secret and the status
			t.Errorf("reconcile %d made %d writes", i, n)
		}
		if reads.count > plan.BatchSize+1 { // and the Memcached
			t.Errorf("reconcile %d made %d reads", i, reads.count)
		}
		m := env.get("cache")
		var sets appsv1.ReplicaSetList
		env.must(env.admin.List(env.ctx, &sets, client.InNamespace(env.namespace)))
		c := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionProgressing)
		if int(m.Status.Size) != len(sets.Items) || m.Status.Size < 41 && (c.Reason != v1alpha1.ReasonScalingOut || result.RequeueAfter != apiserver.StaleRequeue) {
			t.Errorf("reconcile %d: size %d of %d ReplicaSets, %s: %s, again after %s", i, m.Status.Size, len(sets.Items), c.Reason, c.Message, result.RequeueAfter)
		}
		sizes = append(sizes, m.Status.Size)
	}
	if want := []int32{23, 41, 41}; !slices.Equal(sizes, want) {
		t.Errorf("sizes %d, want %d", sizes, want)
	}
	env.change("cache", func(m *v1alpha1.Memcached) { m.Spec.Size = ptr.To[int32](0) })
	if m := env.reconcile("cache"); m.Status.Size == 0 {
		t.Error("82 objects were deleted at once")
	}
	env.converge("cache")
	if m := env.converge("cache"); m.Status.Size != 0 {
		t.Errorf("%d shards are left", m.Status.Size)
	}
}

// The operator looks up each of these names again from time to time.
func TestForeignNamesDelayNoShard(t *testing.T) {
	env := newEnv(t)
	large := map[string]string{"example.com/large": strings.Repeat("x", 1000)}
	for i := range plan.BatchSize + 10 {
		env.must(env.admin.Create(env.ctx, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: env.namespace, Name: fmt.Sprintf("cache-%d", i), Annotations: large},
			Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone}}))
	}
	env.create("cache", fmt.Sprintf("size: %d", plan.BatchSize+20))
	m := env.converge("cache")
	if m.Status.Size != plan.BatchSize+20 || len(m.Status.Servers) != 10 {
		t.Errorf("%d shards and %d servers", m.Status.Size, len(m.Status.Servers))
	}
	c := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionDegraded)
	if c.Reason != v1alpha1.ReasonNameConflict || !strings.Contains(c.Message, "cache-0") {
		t.Errorf("Degraded is %s: %s", c.Reason, c.Message)
	}
	for _, o := range env.observe("cache").Objects {
		if o.Owner == plan.Foreign && len(o.GetAnnotations()) > 0 {
			t.Error("the content of a foreign object is kept")
		}
	}
	env.must(env.admin.Delete(env.ctx, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: env.namespace, Name: "cache-55"}}))
	for range 3 {
		m = env.reconcile("cache")
	}
	if len(m.Status.Servers) != 11 {
		t.Errorf("%d servers after a name became free", len(m.Status.Servers))
	}
}

func TestLargePodConfigurationIsRejected(t *testing.T) {
	env := newEnv(t)
	env.create("cache", "size: 1")
	env.converge("cache")
	env.change("cache", func(m *v1alpha1.Memcached) {
		for len(resources.NewPodRevision(&m.Spec, resources.Image{Reference: "memcached:1"}).String()) < resources.MaxRevision {
			m.Spec.Scheduling.Tolerations = append(m.Spec.Scheduling.Tolerations, corev1.Toleration{Key: "k", Operator: corev1.TolerationOpExists})
		}
	})
	before := env.writes.Load()
	m := env.converge("cache")
	c := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionDegraded)
	if c.Reason != v1alpha1.ReasonPodConfigurationTooLarge || !strings.Contains(c.Message, "shorten") {
		t.Errorf("Degraded is %s: %s", c.Reason, c.Message)
	}
	if n := env.writes.Load() - before; n != 1 {
		t.Errorf("%d writes, want that of the status", n)
	}
}
