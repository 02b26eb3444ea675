package memcached

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
)

// wantBinding checks the Secret and the status of a binding to that many shards, and returns the Secret.
func (env *testEnv) wantBinding(m *v1beta1.Memcached, size int) *corev1.Secret {
	env.Helper()
	secret := &corev1.Secret{}
	env.Read("cache-binding", secret)
	var servers []string
	for _, ordinal := range []string{"0", "1", "2"}[:size] {
		servers = append(servers, "cache-"+ordinal+"."+env.Namespace+".svc.cluster.local:11211")
	}
	list := strings.Join(servers, ",")
	for key, want := range map[string]string{
		"type": "memcached", "provider": "memcached-operator", "host": "cache-0." + env.Namespace + ".svc.cluster.local", "port": "11211",
		"servers": list, "uri": "memcached://" + list, "username": "binding",
	} {
		if got := string(secret.Data[key]); got != want {
			env.Errorf("entry %s of the Secret is %q, want %q", key, got, want)
		}
	}
	if len(secret.Data) != 8 || len(secret.Data["password"]) < 20 || secret.Type != "servicebinding.io/memcached" || !metav1.IsControlledBy(secret, m) {
		env.Errorf("the Secret is %+v", secret)
	}
	if b := m.Status.Binding; b == nil || *b != (v1beta1.BindingStatus{Name: "cache-binding", Size: int32(size)}) { //nolint:gosec // small
		env.Errorf("the status is %+v", b)
	}
	return secret
}

func TestBindingNeedsNoRightToReadSecrets(t *testing.T) {
	env := newEnv(t)
	env.Create("cache", "size: 2")
	if m := env.Converge("cache"); m.Status.Binding != nil || env.Exists("cache-binding", &corev1.Secret{}) {
		t.Errorf("without spec.access.binding, the status has %+v", m.Status.Binding)
	}
	env.Change("cache", func(m *v1beta1.Memcached) { m.Spec.Access.Binding.Mode = v1beta1.BindingSecret })
	secret := env.wantBinding(env.Converge("cache"), 2)

	env.reconciler.memories.forget(types.NamespacedName{Namespace: env.Namespace, Name: "cache"}) // as after a restart of the operator
	writes := env.Writes.Load()
	env.wantBinding(env.Converge("cache"), 2)
	if n := env.Writes.Load() - writes; n > 1 {
		t.Errorf("the operator tried %d times to create a Secret that exists", n)
	}
	env.Must(env.Admin.Delete(env.Ctx, secret))
	env.skipAnHour()
	again := env.wantBinding(env.Converge("cache"), 2)
	if string(again.Data["password"]) == string(secret.Data["password"]) {
		t.Error("the password isn't random")
	}

	env.Change("cache", func(m *v1beta1.Memcached) { *m.Spec.Size = 1 })
	m := env.Converge("cache")
	if b := m.Status.Binding; b.Name != "cache-binding" || b.Size != 2 || !strings.Contains(b.Message, "the operator isn't allowed to read or update the existing Secret cache-binding") {
		t.Errorf("the status is %+v", b)
	}
	env.WantCondition(m, v1beta1.ConditionDegraded, metav1.ConditionFalse, v1beta1.ReasonAsExpected)
	env.Must(env.Admin.Delete(env.Ctx, again))
	env.skipAnHour()
	env.wantBinding(env.Converge("cache"), 1)
	env.Change("cache", func(m *v1beta1.Memcached) { m.Spec.Access.Binding.Mode = v1beta1.BindingDisabled })
	if m := env.Converge("cache"); m.Status.Binding != nil || !env.Exists("cache-binding", &corev1.Secret{}) {
		t.Errorf("after spec.access.binding was disabled, the status has %+v", m.Status.Binding)
	}
}

// A quota that is used up, such as by this very Secret, rejects its creation whether it exists or not.
func TestBindingWhoseSecretIsRejectedSaysSo(t *testing.T) {
	for name, deleted := range map[string]bool{"the Secret was deleted": true, "the Secret exists": false} {
		t.Run(name, func(t *testing.T) {
			env := newEnv(t)
			env.Create("cache", "{size: 1, access: {binding: {mode: Secret}}}")
			secret := env.wantBinding(env.Converge("cache"), 1)
			if deleted {
				env.Must(env.Admin.Delete(env.Ctx, secret))
			}
			env.Recorded()
			quota := &failsToCreate[*corev1.Secret]{Client: env.reconciler.Client, err: apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "cache-binding", errors.New("exceeded quota"))}
			env.reconciler.Client = quota
			env.skipAnHour()
			for range 2 {
				m := env.Converge("cache")
				env.WantCondition(m, v1beta1.ConditionDegraded, metav1.ConditionFalse, v1beta1.ReasonAsExpected)
				if b := m.Status.Binding; b.Name != "cache-binding" || b.Size != 1 || !strings.Contains(b.Message, "can't recreate the Secret cache-binding if it was deleted") || !strings.Contains(b.Message, "exceeded quota") {
					t.Errorf("the status is %+v", b)
				}
			}
			if events := env.Recorded(); quota.creates != 1 || len(events) > 0 {
				t.Errorf("tried %d times, with the events %q", quota.creates, events)
			}
			quota.err = nil
			env.clock.SetTime(env.clock.Now().Add(30 * time.Second))
			env.wantBinding(env.Converge("cache"), 1)
		})
	}
}

func TestSecretOfABindingIsTriedAgainAfterATransientFailure(t *testing.T) {
	env := newEnv(t)
	env.Create("cache", "{size: 1, access: {binding: {mode: Secret}}}")
	env.Must(env.Admin.Delete(env.Ctx, env.wantBinding(env.Converge("cache"), 1)))
	failing := &failsToCreate[*corev1.Secret]{Client: env.reconciler.Client, err: apierrors.NewServiceUnavailable("try later")}
	env.reconciler.Client = failing
	env.skipAnHour()
	if _, err := env.reconciler.Reconcile(env.Ctx, env.Request("cache")); err == nil {
		t.Error("the write isn't repeated")
	}
	failing.err = nil
	env.wantBinding(env.Converge("cache"), 1)
}

func TestSecretOfAnotherOwnerIsKeptByABinding(t *testing.T) {
	for name, c := range map[string]struct {
		granted bool
		says    string
	}{
		"the operator may read it":     {true, "the Secret cache-binding exists and isn't managed by this Memcached"},
		"the operator may not read it": {false, "the operator isn't allowed to read or update the existing Secret cache-binding"},
	} {
		t.Run(name, func(t *testing.T) {
			env := newEnv(t)
			theirs := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: env.Namespace, Name: "cache-binding"}, Data: map[string][]byte{"key": []byte("theirs")}}
			env.Must(env.Admin.Create(env.Ctx, theirs))
			if c.granted {
				env.readableSecret = "cache-binding" // as docs/networking.md grants it
			}
			env.Create("cache", "{size: 1, access: {binding: {mode: Secret}}}")
			m := env.Converge("cache")
			if b := m.Status.Binding; b == nil || b.Name != "" || !strings.Contains(b.Message, c.says) {
				t.Errorf("the status is %+v", b)
			}
			version := theirs.ResourceVersion
			env.Read("cache-binding", theirs)
			if theirs.ResourceVersion != version || !env.Exists("cache-0", &corev1.Service{}) {
				t.Errorf("the Secret is %+v", theirs)
			}
			env.Must(env.Admin.Delete(env.Ctx, theirs))
			env.skipAnHour()
			env.wantBinding(env.Converge("cache"), 1)
		})
	}
}
