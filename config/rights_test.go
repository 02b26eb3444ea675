package config

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/kustomize/api/resource"
	"sigs.k8s.io/yaml"

	podlabels "github.com/memcached-operator/memcached-operator/internal/annotations"
)

// Reviews of tokens and of their rights aren't objects of a namespace.
func TestNamespacedInstallHasNoRightsInOtherNamespaces(t *testing.T) {
	const manager = "memcached-operator-manager-role"
	roles, granted := map[string]*rbacv1.ClusterRole{}, []string{} // roles of both kinds
	for _, o := range built(t, "config/namespaced", "ClusterRole", "Role") {
		roles[o.GetKind()+"/"+o.GetName()] = decoded[rbacv1.ClusterRole](t, o)
	}
	for _, o := range built(t, "config/namespaced", "ClusterRoleBinding", "RoleBinding") {
		binding := decoded[rbacv1.ClusterRoleBinding](t, o)
		role := roles[binding.RoleRef.Kind+"/"+binding.RoleRef.Name]
		switch {
		case role == nil:
			t.Fatalf("there is no role for the binding %+v", binding)
		case role.Kind == "ClusterRole":
			for _, rule := range role.Rules {
				granted = append(granted, rule.Resources...)
			}
		}
		subject := binding.Subjects[0]
		if role.Namespace != binding.Namespace || subject.Name != "memcached-operator-controller-manager" || subject.Namespace != "memcached-operator-system" ||
			o.GetKind() == "RoleBinding" && binding.Namespace != subject.Namespace {
			t.Errorf("the binding %+v of %+v", binding, role)
		}
	}
	if want := []string{"tokenreviews", "subjectaccessreviews"}; !slices.Equal(granted, want) {
		t.Errorf("the operator has rights in all namespaces for %q, want %q", granted, want)
	}
	for _, o := range built(t, "config/namespaced", "Deployment") {
		if text := o.MustYaml(); !strings.Contains(text, "- name: WATCH_NAMESPACE\n          valueFrom:\n            fieldRef:\n              fieldPath: metadata.namespace\n") {
			t.Errorf("the operator doesn't watch its own namespace:\n%s", text)
		}
	}
	// The same rights as in an install for all namespaces.
	for _, o := range built(t, "config/default", "ClusterRole") {
		if o.GetName() == manager {
			if want := decoded[rbacv1.ClusterRole](t, o).Rules; len(roles["Role/"+manager].Rules) != len(want) {
				t.Errorf("the Role is %+v, the ClusterRole has the rules %+v", roles["Role/"+manager], want)
			}
		}
	}
}

// built returns the objects of some kinds in a folder, at least one.
func built(t *testing.T, dir string, kinds ...string) []*resource.Resource {
	t.Helper()
	all, err := Build(root, dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	found := slices.DeleteFunc(all.Resources(), func(o *resource.Resource) bool { return !slices.Contains(kinds, o.GetKind()) })
	if len(found) == 0 {
		t.Fatalf("%s has no %v", dir, kinds)
	}
	return found
}

func decoded[T any](t *testing.T, o *resource.Resource) *T {
	t.Helper()
	out := new(T)
	if err := yaml.UnmarshalStrict([]byte(o.MustYaml()), out); err != nil {
		t.Fatal(err)
	}
	return out
}

// NetworkPolicies admit the operator by these labels.
func TestOperatorsPodsHaveTheLabelsThatNetworkPoliciesAdmit(t *testing.T) {
	have := decoded[appsv1.Deployment](t, built(t, "config/default", "Deployment")[0]).Spec.Template.Labels
	for name, value := range podlabels.OperatorPodLabels() {
		if have[name] != value {
			t.Errorf("%s of the operator's pods is %q, want %q", name, have[name], value)
		}
	}
}
