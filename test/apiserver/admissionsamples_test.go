package apiserver

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// applyAdmissionSamples creates the policies of config/samples/admission, those for Memcacheds in the
// test's namespace only.
func (env *testEnv) applyAdmissionSamples() {
	env.Helper()
	files, err := filepath.Glob("../../config/samples/admission/[^k]*.yaml")
	env.Must(err)
	if len(files) != 2 {
		env.Fatalf("samples %v", files)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		env.Must(err)
		for document := range strings.SplitSeq(string(text), "\n---\n") {
			o := &unstructured.Unstructured{}
			env.Must(yaml.Unmarshal([]byte(document), o))
			if o.GetKind() == "ValidatingAdmissionPolicyBinding" && o.GetName() == "restrict-memcacheds" {
				env.Must(unstructured.SetNestedStringMap(o.Object, map[string]string{corev1.LabelMetadataName: env.Namespace},
					"spec", "matchResources", "namespaceSelector", "matchLabels"))
			}
			env.Must(admin.Create(env.Ctx, o, client.FieldValidation(metav1.FieldValidationStrict)))
			env.Cleanup(func() { _ = admin.Delete(env.Ctx, o) })
		}
	}
}

func TestAdmissionSamplesRejectWhatTheyName(t *testing.T) {
	env := newEnv(t)
	before := env.Create("before", "pod: {image: evil.example.com/x:1}")
	env.applyAdmissionSamples()
	rejection := func(o client.Object) (err error) {
		// An API server uses each new policy after a moment.
		env.Must(wait.PollUntilContextCancel(env.Ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
			err = admin.Create(ctx, o.DeepCopyObject().(client.Object), client.DryRunAll)
			return err != nil, nil
		}))
		return err
	}
	evil := before.DeepCopy()
	evil.ObjectMeta = metav1.ObjectMeta{Namespace: env.Namespace, Name: "evil"}
	_ = rejection(evil)
	for name, c := range map[string]struct{ spec, rejected string }{
		"nothing":                   {"size: 1", ""},
		"an allowed image":          {"pod: {image: registry.example.com/memcached:1.6.45}", ""},
		"another image":             {"pod: {image: memcached:1.6.45}", "spec.pod.image must begin with one of docker.io/library/memcached:, registry.example.com/"},
		"an allowed label":          {"pod: {metadata: {labels: {team: shop}}}", ""},
		"another label":             {"pod: {metadata: {labels: {team: shop, app: web}}}", "each of spec.pod.metadata.labels must begin with one of example.com/, team"},
		"an allowed annotation":     {"pod: {metadata: {annotations: {example.com/a: b}}}", ""},
		"another annotation":        {"pod: {metadata: {annotations: {a: b}}}", "each of spec.pod.metadata.annotations must begin with one of example.com/"},
		"an allowed priority class": {"pod: {priorityClassName: low}", ""},
		"another priority class":    {"pod: {priorityClassName: high}", "spec.pod.priorityClassName must be one of low, default"},
		"a toleration":              {"pod: {tolerations: [{operator: Exists}]}", "spec.pod.tolerations is not allowed"},
		"an affinity":               {"pod: {affinity: {nodeAffinity: {}}}", "spec.pod.affinity and spec.pod.nodeSelector are not allowed"},
		"a node selector":           {"pod: {nodeSelector: {a: b}}", "spec.pod.affinity and spec.pod.nodeSelector are not allowed"},
		"spread pods":               {"pod: {topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway}]}", ""},
		"allowed clients":           {"access: {networkPolicy: {allowedClients: [{namespaceSelector: {}}]}}", ""},
		"a load balancer":           {"access: {external: {mode: LoadBalancer}}", "spec.access.external.mode must be one of Disabled"},
		"no load balancer":          {"access: {serviceMetadata: {annotations: {example.com/a: b}}}", ""},
		"an allowed account":        {"pod: {serviceAccountName: memcached}", ""},
		"another account":           {"pod: {serviceAccountName: admin}", "spec.pod.serviceAccountName must be one of default, memcached"},
		"allowed Secrets":           {"{tls: {mode: Required, secretName: memcached-a}, auth: {mode: Required, secretName: cache-b}}", ""},
		"another certificate":       {"tls: {mode: Required, secretName: ingress}", "the pods mount the Secrets ingress, cache-auth, cache-binding: each must begin with one of cache-, memcached-"},
		"other users":               {"auth: {mode: Required, secretName: admin-token}", "the pods mount the Secrets cache-tls, admin-token, cache-binding"},
		"an open network policy":    {"access: {networkPolicy: {mode: Open}}", "spec.access.networkPolicy.mode must be Restricted"},
	} {
		m, err := env.TryCreate("cache", c.spec)
		switch {
		case c.rejected == "" && err != nil, c.rejected != "" && (err == nil || !strings.Contains(err.Error(), c.rejected)):
			t.Errorf("%s: error %v, want %q", name, err, c.rejected)
		}
		if m != nil {
			env.Must(admin.Delete(env.Ctx, m))
		}
	}
	// Without a field, pods mount Secrets with the name of the Memcached.
	if _, err := env.TryCreate("ingress", "size: 1"); err == nil || !strings.Contains(err.Error(), "the pods mount the Secrets ingress-tls, ingress-auth, ingress-binding") {
		t.Errorf("another name: error %v", err)
	}
	// What existed before can be labeled and deleted, for example, but not changed.
	before.Labels = map[string]string{"team": "shop"}
	env.Must(admin.Update(env.Ctx, before))
	before.Spec.Paused = true
	if err := admin.Update(env.Ctx, before); err == nil {
		t.Error("a spec that isn't allowed was changed")
	}
	if err := rejection(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "svc"}}); !strings.Contains(err.Error(), "the namespace svc is reserved") {
		t.Errorf("namespace svc: error %v", err)
	}
	var policies admissionregistrationv1.ValidatingAdmissionPolicyList
	env.Must(admin.List(env.Ctx, &policies))
	for _, p := range policies.Items {
		if p.Status.TypeChecking != nil && len(p.Status.TypeChecking.ExpressionWarnings) > 0 {
			t.Errorf("%s: %+v", p.Name, p.Status.TypeChecking.ExpressionWarnings)
		}
	}
}
