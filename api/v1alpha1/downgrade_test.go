package v1alpha1_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/internal/apiservertest"
)

// As docs/install.md says of a downgrade to a release that doesn't know deletionPolicy.
func TestDowngradeLosesUnknownFieldsOfObjectsThatAreWritten(t *testing.T) {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, apiextensionsv1.AddToScheme} {
		must(t, add(s))
	}
	c, err := client.New(apiservertest.StartForTest(t).Admin, client.Options{Scheme: s})
	must(t, err)
	ctx := t.Context()
	get := func(name string) *v1alpha1.Memcached {
		t.Helper()
		m := &v1alpha1.Memcached{}
		must(t, c.Get(ctx, types.NamespacedName{Namespace: "default", Name: name}, m))
		return m
	}
	// become changes the CRD, and waits until the API server applies it.
	become := func(change func(spec *apiextensionsv1.JSONSchemaProps), want v1alpha1.DeletionPolicy) {
		t.Helper()
		var crd apiextensionsv1.CustomResourceDefinition
		must(t, c.Get(ctx, types.NamespacedName{Name: "memcacheds." + v1alpha1.GroupVersion.Group}, &crd))
		spec := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
		change(&spec)
		crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"] = spec
		must(t, c.Update(ctx, &crd))
		must(t, wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
			return get("idle").Spec.DeletionPolicy == want, nil
		}))
	}
	for _, name := range []string{"idle", "written"} {
		must(t, c.Create(ctx, &v1alpha1.Memcached{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Finalizers: []string{v1alpha1.FinalizerFinalBackup}},
			Spec: v1alpha1.MemcachedSpec{DeletionPolicy: v1alpha1.DeletionBackup, FinalBackup: &v1alpha1.FinalBackup{
				Store: v1alpha1.SnapshotStore{PersistentVolumeClaim: &v1alpha1.PersistentVolumeClaimStore{ClaimName: "backups"}},
			}},
		}))
	}
	var newer apiextensionsv1.JSONSchemaProps
	become(func(spec *apiextensionsv1.JSONSchemaProps) {
		newer = *spec.DeepCopy()
		delete(spec.Properties, "deletionPolicy")
		delete(spec.Properties, "finalBackup")
		spec.XValidations = slices.DeleteFunc(spec.XValidations, func(r apiextensionsv1.ValidationRule) bool { return strings.Contains(r.Rule, "deletionPolicy") })
	}, "")
	must(t, c.Status().Patch(ctx, get("written"), client.RawPatch(types.MergePatchType, []byte(`{"status":{"phase":"Running"}}`))))
	become(func(spec *apiextensionsv1.JSONSchemaProps) { *spec = newer }, v1alpha1.DeletionBackup)

	m := get("written")
	if m.Spec.DeletionPolicy != v1alpha1.DeletionDelete || m.Spec.FinalBackup != nil {
		t.Errorf("after the downgrade the policy is %s, with a backup to %v", m.Spec.DeletionPolicy, m.Spec.FinalBackup)
	}
	if !slices.Equal(m.Finalizers, []string{v1alpha1.FinalizerFinalBackup}) {
		t.Errorf("the finalizers are %v", m.Finalizers)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
