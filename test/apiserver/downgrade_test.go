package apiserver

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
)

// As docs/install.md says of a downgrade to a release that doesn't know deletionPolicy. The CRD is a copy in a group of its own, as
// other tests use ours.
func TestDowngradeLosesUnknownFieldsOfObjectsThatAreWritten(t *testing.T) {
	t.Parallel()
	tr := newTransfers(t)
	scheme := runtime.NewScheme()
	tr.Must(apiextensionsv1.AddToScheme(scheme))
	crds, err := client.New(server.Admin, client.Options{Scheme: scheme})
	tr.Must(err)
	raw, err := os.ReadFile("../../config/crd/bases/cache.memcached-operator.io_memcacheds.yaml")
	tr.Must(err)
	crd := &apiextensionsv1.CustomResourceDefinition{}
	tr.Must(yaml.UnmarshalStrict(raw, crd))
	group := schema.GroupVersion{Group: "downgrade.example.com", Version: crd.Spec.Versions[0].Name}
	crd.Name, crd.Spec.Group = crd.Spec.Names.Plural+"."+group.Group, group.Group
	_, err = envtest.InstallCRDs(server.Admin, envtest.CRDInstallOptions{CRDs: []*apiextensionsv1.CustomResourceDefinition{crd.DeepCopy()}, MaxTime: 10 * time.Minute})
	tr.Must(err)
	object := func(name string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(group.WithKind(crd.Spec.Names.Kind))
		u.SetNamespace(tr.Namespace)
		u.SetName(name)
		return u
	}
	policy := func(u *unstructured.Unstructured) string {
		text, _, err := unstructured.NestedString(u.Object, "spec", "deletionPolicy")
		tr.Must(err)
		return text
	}
	for _, name := range []string{"idle", "written"} {
		u := object(name)
		u.SetFinalizers([]string{v1beta1.FinalizerFinalBackup})
		u.Object["spec"] = map[string]any{"deletionPolicy": string(v1beta1.DeletionBackup), "backup": map[string]any{"final": map[string]any{"store": map[string]any{"persistentVolumeClaim": map[string]any{"claimName": "backups"}}}},
			"size": int64(2), "auth": map[string]any{"mode": "Required"}, "tls": map[string]any{"mode": "Required"}}
		tr.Must(admin.Create(t.Context(), u))
	}
	// become changes the CRD, and waits until the API server applies it.
	become := func(change func(spec *apiextensionsv1.JSONSchemaProps), want v1beta1.DeletionPolicy) {
		t.Helper()
		tr.Must(crds.Get(t.Context(), client.ObjectKeyFromObject(crd), crd))
		spec := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
		change(&spec)
		crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"] = spec
		tr.Must(crds.Update(t.Context(), crd))
		idle := object("idle")
		tr.eventually("the API server applies the CRD", idle, "idle", func() bool { return policy(idle) == string(want) })
	}
	var newer apiextensionsv1.JSONSchemaProps
	become(func(spec *apiextensionsv1.JSONSchemaProps) {
		newer = *spec.DeepCopy()
		for _, name := range []string{"deletionPolicy", "backup", "auth", "tls"} {
			delete(spec.Properties, name)
			spec.XValidations = slices.DeleteFunc(spec.XValidations, func(r apiextensionsv1.ValidationRule) bool { return strings.Contains(r.Rule, "self."+name) })
		}
	}, "")
	tr.Must(admin.Status().Patch(t.Context(), object("written"), client.RawPatch("application/merge-patch+json", []byte(`{"status":{"phase":"Running"}}`))))
	become(func(spec *apiextensionsv1.JSONSchemaProps) { *spec = newer }, v1beta1.DeletionBackup)

	written := object("written")
	tr.Must(admin.Get(t.Context(), client.ObjectKeyFromObject(written), written))
	if _, has, err := unstructured.NestedMap(written.Object, "spec", "backup"); has || err != nil || policy(written) != string(v1beta1.DeletionDelete) {
		t.Errorf("after the downgrade the spec is %v", written.Object["spec"])
	}
	if got := written.GetFinalizers(); !slices.Equal(got, []string{v1beta1.FinalizerFinalBackup}) {
		t.Errorf("the finalizers are %v", got)
	}
	for _, name := range []string{"auth", "tls"} {
		if mode, has, err := unstructured.NestedString(written.Object, "spec", name, "mode"); has || err != nil {
			t.Errorf("after the downgrade spec.%s.mode is %q, %v", name, mode, err)
		}
	}
	tr.Must(client.IgnoreNotFound(crds.Delete(t.Context(), &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: crd.Name}})))
}
