package index

import (
	"context"
	"fmt"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
)

// builder gives an in-memory client the indexes of a cache.
type builder struct{ *fake.ClientBuilder }

func (b builder) IndexField(_ context.Context, o client.Object, name string, values client.IndexerFunc) error {
	b.WithIndex(o, name, values)
	return nil
}

// The lists have no other selector: only the index restricts them.
func TestListReturnsOnlyIndexedObjects(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	var objects []client.Object
	for _, of := range []string{"cache", "sessions", ""} {
		meta := func(prefix string) metav1.ObjectMeta {
			o := metav1.ObjectMeta{Namespace: "team", Name: prefix + of}
			if of != "" {
				o.OwnerReferences = []metav1.OwnerReference{{Kind: "Memcached", Name: of, Controller: new(true)}}
				o.Labels = map[string]string{v1beta1.LabelInstance: of, v1beta1.LabelSchedule: of}
			}
			return o
		}
		restore := &v1beta1.MemcachedRestore{ObjectMeta: meta("x")}
		if restore.Spec.MemcachedRef.Name = of; of != "" {
			restore.Spec.BackupRef = &v1beta1.BackupReference{Name: of}
		}
		backup := &v1beta1.MemcachedBackup{ObjectMeta: meta("x")}
		backup.Spec.MemcachedRef.Name = of
		objects = append(objects, restore, backup, &corev1.Pod{ObjectMeta: meta("x")}, &corev1.Service{ObjectMeta: meta("x")},
			&appsv1.ReplicaSet{ObjectMeta: meta("x")}, &policyv1.PodDisruptionBudget{ObjectMeta: meta("x")}, &networkingv1.NetworkPolicy{ObjectMeta: meta("x")})
	}
	with := builder{fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...)}
	if err := Setup(t.Context(), with); err != nil {
		t.Fatal(err)
	}
	indexed := with.Build()
	var budgets policyv1.PodDisruptionBudgetList
	if err := indexed.List(t.Context(), &budgets, client.MatchingFields{Foreign: "true"}); err != nil || len(budgets.Items) != 1 || budgets.Items[0].Name != "x" {
		t.Errorf("those that no Memcached controls are %+v, %v", budgets.Items, err)
	}
	for _, c := range []struct {
		list client.ObjectList
		by   string
	}{
		{&corev1.PodList{}, Instance}, {&corev1.ServiceList{}, Instance}, {&appsv1.ReplicaSetList{}, Instance},
		{&policyv1.PodDisruptionBudgetList{}, Instance}, {&networkingv1.NetworkPolicyList{}, Instance},
		{&v1beta1.MemcachedRestoreList{}, Memcached}, {&v1beta1.MemcachedRestoreList{}, Backup},
		{&v1beta1.MemcachedBackupList{}, Memcached}, {&v1beta1.MemcachedBackupList{}, Schedule},
	} {
		t.Run(fmt.Sprintf("%T by %s", c.list, c.by), func(t *testing.T) {
			if err := indexed.List(t.Context(), c.list, client.InNamespace("team"), client.MatchingFields{c.by: "cache"}); err != nil {
				t.Fatal(err)
			}
			var got []string
			if err := meta.EachListItem(c.list, func(o runtime.Object) error {
				got = append(got, o.(client.Object).GetName())
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			if want := []string{"xcache"}; !slices.Equal(got, want) {
				t.Errorf("the index has %v, want %v", got, want)
			}
		})
	}
}
