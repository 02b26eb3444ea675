package memcached

import (
	"context"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
)

// failsToCreate is a client whose creations of a kind fail with err, if any.
type failsToCreate[T client.Object] struct {
	client.Client
	err     error
	creates int
}

func (c *failsToCreate[T]) Create(ctx context.Context, o client.Object, options ...client.CreateOption) error {
	if _, ok := o.(T); !ok {
		return c.Client.Create(ctx, o, options...)
	}
	c.creates++
	if c.err != nil {
		return c.err
	}
	return c.Client.Create(ctx, o, options...)
}

func handoverSecret(env *testEnv, m *v1beta1.Memcached) *corev1.Secret {
	env.Helper()
	secret := &corev1.Secret{}
	env.Read(resources.HandoverSecretName(m), secret)
	return secret
}

func TestHandoverSecretIsCreatedBeforeTheShards(t *testing.T) {
	env := newEnv(t)
	m := env.Create("cache", "size: 2")
	env.Converge("cache")
	secret, set := handoverSecret(env, m), &appsv1.ReplicaSet{}
	env.Read("cache-0", set)
	if len(secret.Data["cache-0"]) != resources.KeySize || !metav1.IsControlledBy(secret, m) {
		t.Errorf("the Secret is %+v", secret)
	}
	if len(set.ResourceVersion) == len(secret.ResourceVersion) && set.ResourceVersion < secret.ResourceVersion {
		t.Error("the ReplicaSet is older than the Secret: its first pod can start without the key")
	}
	other := newEnv(t)
	others := other.Create("cache", "size: 1")
	other.Converge("cache")
	distinct := map[string]bool{string(make([]byte, resources.KeySize)): true}
	for _, secret := range []*corev1.Secret{secret, handoverSecret(other, others)} {
		for _, key := range secret.Data {
			distinct[string(key)] = true
		}
	}
	if len(distinct) != 1+2*128 {
		t.Errorf("%d keys, want one for each shard that the two Memcacheds can have", len(distinct)-1)
	}

	// An idle Memcached costs no writes, and the next template recreates the Secret.
	counter := &failsToCreate[*corev1.Secret]{Client: env.reconciler.Client}
	env.reconciler.Client = counter
	env.Must(env.Admin.Delete(env.Ctx, secret))
	before := env.Writes.Load()
	env.Converge("cache")
	if counter.creates != 0 || env.Writes.Load() != before {
		t.Errorf("an idle Memcached made %d writes, %d of them of a Secret", env.Writes.Load()-before, counter.creates)
	}
	env.Change("cache", func(m *v1beta1.Memcached) { *m.Spec.Size = 3 })
	env.Converge("cache")
	if handoverSecret(env, m).UID == secret.UID {
		t.Error("the Secret wasn't recreated")
	}
}

func TestExistingHandoverSecretIsKept(t *testing.T) {
	env := newEnv(t)
	m := env.Create("cache", "size: 1")
	others := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: env.Namespace, Name: resources.HandoverSecretName(m)}, Data: map[string][]byte{"key": []byte("theirs")}}
	env.Must(env.Admin.Create(env.Ctx, others))
	env.WantCondition(env.Converge("cache"), v1beta1.ConditionDegraded, metav1.ConditionFalse, v1beta1.ReasonAsExpected)
	if !env.Exists("cache-0", &appsv1.ReplicaSet{}) {
		t.Error("there is no shard")
	}
	if secret := handoverSecret(env, m); secret.ResourceVersion != others.ResourceVersion {
		t.Errorf("the Secret was changed: %+v", secret)
	}
}

// A pod whose Secret is missing would not receive items although nothing forbids it.
func TestShardsWaitForTheHandoverSecretUnlessItIsRejected(t *testing.T) {
	for name, c := range map[string]struct {
		err    error
		shards int
	}{
		"the API server doesn't respond": {apierrors.NewServiceUnavailable("try later"), 0},
		"a quota":                        {apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "", nil), 1},
	} {
		t.Run(name, func(t *testing.T) {
			env := newEnv(t)
			failing := &failsToCreate[*corev1.Secret]{Client: env.reconciler.Client, err: c.err}
			env.reconciler.Client = failing
			env.Create("cache", "size: 1")
			if _, err := env.reconciler.Reconcile(env.Ctx, ctrl.Request{NamespacedName: client.ObjectKey{Namespace: env.Namespace, Name: "cache"}}); err == nil {
				t.Error("the write isn't repeated")
			}
			var sets appsv1.ReplicaSetList
			env.Must(env.Admin.List(env.Ctx, &sets, client.InNamespace(env.Namespace)))
			if len(sets.Items) != c.shards {
				t.Errorf("%d shards, want %d", len(sets.Items), c.shards)
			}
		})
	}
}
