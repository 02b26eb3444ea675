package main

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/kustomize/api/resource"

	"github.com/memcached-operator/memcached-operator/hack/internal/configdir"
	podlabels "github.com/memcached-operator/memcached-operator/internal/annotations"
)

// Reviews of tokens and of their rights aren't objects of a namespace.
func TestNamespacedInstallHasNoRightsInOtherNamespaces(t *testing.T) {
	built, err := configdir.Build(root, "config/namespaced", nil)
	if err != nil {
		t.Fatal(err)
	}
	clusterRoles, roles, granted := map[string]*rbacv1.ClusterRole{}, map[string]*rbacv1.Role{}, []string{}
	for _, o := range built.Resources() {
		switch o.GetKind() {
		case "ClusterRole":
			clusterRoles[o.GetName()] = decoded[rbacv1.ClusterRole](t, o)
		case "Role":
			roles[o.GetName()] = decoded[rbacv1.Role](t, o)
		}
	}
	for _, o := range built.Resources() {
		switch o.GetKind() {
		case "ClusterRoleBinding":
			binding := decoded[rbacv1.ClusterRoleBinding](t, o)
			role := clusterRoles[binding.RoleRef.Name]
			if role == nil {
				t.Fatalf("there is no ClusterRole for the binding %+v", binding)
			}
			for _, rule := range role.Rules {
				granted = append(granted, rule.Resources...)
			}
		case "RoleBinding":
			binding := decoded[rbacv1.RoleBinding](t, o)
			role := roles[binding.RoleRef.Name]
			if role == nil || binding.RoleRef.Kind != "Role" || role.Namespace != binding.Namespace || binding.Namespace != "memcached-operator-system" ||
				binding.Subjects[0].Name != "memcached-operator-controller-manager" || binding.Subjects[0].Namespace != binding.Namespace {
				t.Errorf("the binding %+v of %+v", binding, role)
			}
		case "Deployment":
			if text := o.MustYaml(); !strings.Contains(text, "- name: WATCH_NAMESPACE\n          valueFrom:\n            fieldRef:\n              fieldPath: metadata.namespace\n") {
				t.Errorf("the operator doesn't watch its own namespace:\n%s", text)
			}
		}
	}
	if want := []string{"tokenreviews", "subjectaccessreviews"}; !slices.Equal(granted, want) {
		t.Errorf("the operator has rights in all namespaces for %q, want %q", granted, want)
	}
	// The same rights as in an install for all namespaces.
	everywhere, err := configdir.Build(root, "config/default", nil)
	if err != nil {
		t.Fatal(err)
	}
	const manager = "memcached-operator-manager-role"
	for _, o := range everywhere.Resources() {
		if o.GetKind() == "ClusterRole" && o.GetName() == manager {
			if want := decoded[rbacv1.ClusterRole](t, o).Rules; roles[manager] == nil || len(roles[manager].Rules) != len(want) {
				t.Errorf("the Role is %+v, the ClusterRole has the rules %+v", roles[manager], want)
			}
		}
	}
}

func decoded[T any](t *testing.T, o *resource.Resource) *T {
	t.Helper()
	out, err := as[T](o)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// NetworkPolicies admit the operator by these labels.
func TestOperatorsPodsHaveTheLabelsThatNetworkPoliciesAdmit(t *testing.T) {
	built, err := configdir.Build(root, "config/default", nil)
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, o := range built.Resources() {
		if o.GetKind() != "Deployment" {
			continue
		}
		found = true
		have := decoded[appsv1.Deployment](t, o).Spec.Template.Labels
		for name, value := range podlabels.OperatorPodLabels() {
			if have[name] != value {
				t.Errorf("%s of the operator's pods is %q, want %q", name, have[name], value)
			}
		}
	}
	if !found {
		t.Error("there is no Deployment")
	}
}
