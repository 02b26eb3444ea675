package e2e

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
	"github.com/memcached-operator/memcached-operator/test/internal/items"
	"github.com/memcached-operator/memcached-operator/test/internal/suite"
)

// The login of a binding needs no other Secret.
func TestWorkloadConnectsWithTheSecretOfItsBinding(t *testing.T) {
	s := newSpace(t)
	bound := func(size int32) v1beta1.MemcachedSpec {
		return suite.Small(size, func(spec *v1beta1.MemcachedSpec) {
			spec.Auth, spec.Access.Binding.Mode = v1beta1.AuthSpec{Mode: v1beta1.AuthRequired}, v1beta1.BindingSecret
		})
	}
	binding := func(size int) (entries map[string]string) {
		t.Helper()
		m := s.Await("cache", fmt.Sprintf("a binding to %d shards", size), func(m *v1beta1.Memcached) error {
			if b := m.Status.Binding; b == nil || b.Name == "" || int(b.Size) != size || b.Message != "" {
				return fmt.Errorf("the status is %+v", b)
			}
			return nil
		})
		secret := &corev1.Secret{}
		s.Must(k.Get(s.Ctx, s.Key(m.Status.Binding.Name), secret))
		entries = map[string]string{}
		for key, value := range secret.Data {
			entries[key] = string(value)
		}
		if entries["servers"] != strings.Join(m.Status.Servers, ",") {
			t.Errorf("the Secret lists %s, and the status %q", entries["servers"], m.Status.Servers)
		}
		return entries
	}
	s.Serve("cache", bound(1))
	first := binding(1)
	set := items.New("bound", 1000, net.JoinHostPort(first["host"], first["port"]))
	set.DialWith(secureClient{user: first["username"], password: first["password"]}.dial)
	s.Eventually("a login", func(context.Context) error { return set.Write() })
	store := s.Claim()
	if b := s.backedUp("bound", "cache", store); b.Status.Snapshot.Items != 1000 {
		t.Errorf("the snapshot has %d items", b.Status.Snapshot.Items)
	}

	s.Apply("cache", bound(2))
	s.Await("cache", "a Secret that the operator may not change", func(m *v1beta1.Memcached) error {
		if b := m.Status.Binding; b == nil || b.Size != 1 || !strings.Contains(b.Message, "isn't allowed to read or update") {
			return fmt.Errorf("the status is %+v", b)
		}
		return nil
	})
	name := metav1.ObjectMeta{Namespace: s.Namespace, Name: "memcached-operator-binding"}
	for _, o := range []client.Object{
		&rbacv1.Role{ObjectMeta: name, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"cache-binding"}, Verbs: []string{"get", "update"}}}},
		&rbacv1.RoleBinding{ObjectMeta: name, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name.Name},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: cluster.OperatorNamespace, Name: "memcached-operator-controller-manager"}}},
	} {
		s.Must(k.Create(s.Ctx, o))
	}
	if second := binding(2); second["password"] != first["password"] || second["host"] != first["host"] {
		t.Errorf("the Secret has the host %s and another password than before: %t", second["host"], second["password"] != first["password"])
	}
	s.serves("after a change of the size", set, 1000)
}
