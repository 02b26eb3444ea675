package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/component-helpers/auth/rbac/validation"
	"sigs.k8s.io/yaml"
)

// needed returns the rights that the installer of the bundle needs: to create its objects, and those it grants.
func needed(t *testing.T) (inCluster, inNamespace []rbacv1.PolicyRule) {
	t.Helper()
	bundle := bundle(t, filepath.Join(root, "bundle"))
	rules := func(group, resource string, names ...string) []rbacv1.PolicyRule {
		kept := rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: []string{"get", "update", "patch", "delete"}, ResourceNames: names}
		return []rbacv1.PolicyRule{kept, {APIGroups: kept.APIGroups, Resources: kept.Resources, Verbs: []string{"create", "list", "watch"}}}
	}
	// OLM lists and watches objects in all namespaces.
	createsInNamespace := func(group, resource, name string) {
		all := rules(group, resource, name)
		kept, create, watch := all[0], all[1], all[1]
		create.Verbs, watch.Verbs = []string{"create"}, []string{"list", "watch"}
		inCluster, inNamespace = append(inCluster, watch), append(inNamespace, kept, create)
	}
	install := bundle.CSV.Spec.InstallStrategy.StrategySpec
	for _, permission := range slices.Concat(install.Permissions, install.ClusterPermissions) {
		inCluster = append(inCluster, permission.Rules...)
		createsInNamespace("", "serviceaccounts", permission.ServiceAccountName)
	}
	inCluster = append(inCluster, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"get", "list", "watch"}})
	// OLM chooses the names of the roles that it creates.
	inCluster = slices.Concat(inCluster, rules("rbac.authorization.k8s.io", "clusterroles"), rules("rbac.authorization.k8s.io", "clusterrolebindings"))
	for _, d := range install.DeploymentSpecs {
		createsInNamespace("apps", "deployments", d.Name)
	}
	for _, object := range bundle.Objects {
		switch object.GetKind() {
		case "CustomResourceDefinition":
			inCluster = append(inCluster, rules("apiextensions.k8s.io", "customresourcedefinitions", object.GetName())...)
		case "Service":
			createsInNamespace("", "services", object.GetName())
		case "ClusterRole":
			var role rbacv1.ClusterRole
			content, err := yaml.Marshal(object)
			if err != nil {
				t.Fatal(err)
			}
			if err := yaml.UnmarshalStrict(content, &role); err != nil {
				t.Fatal(err)
			}
			inCluster = append(inCluster, role.Rules...)
		case "ClusterServiceVersion":
			// The rights above are for it.
		default:
			t.Fatalf("the bundle has a %s: add the rights to create one", object.GetKind())
		}
	}
	// For clusters where the admission plug-in OwnerReferencesPermissionEnforcement is on.
	for _, resource := range []string{"clusterextensions/finalizers", "clusterobjectsets/finalizers"} {
		rule := rbacv1.PolicyRule{APIGroups: []string{"olm.operatorframework.io"}, Resources: []string{resource}, Verbs: []string{"update"}}
		if resource == "clusterextensions/finalizers" {
			rule.ResourceNames = []string{packageName}
		}
		inCluster = append(inCluster, rule)
	}
	return inCluster, inNamespace
}

// The API server compares rules with the same code to prevent the escalation of rights.
func TestInstallerHasExactlyTheRightsItNeeds(t *testing.T) {
	var inCluster, inNamespace []rbacv1.PolicyRule
	for document := range strings.SplitSeq(string(read(t, filepath.Join(root, "config/samples/olmv1/installer.yaml"))), "---\n") {
		var role rbacv1.ClusterRole // or another kind
		if err := yaml.Unmarshal([]byte(document), &role); err != nil {
			t.Fatal(err)
		}
		switch role.Kind {
		case "ClusterRole":
			inCluster = append(inCluster, role.Rules...)
		case "Role":
			inNamespace = append(inNamespace, role.Rules...)
		}
	}
	mustInCluster, mustInNamespace := needed(t)
	for where, pair := range map[string][2][]rbacv1.PolicyRule{
		"in the cluster": {inCluster, mustInCluster}, "in its namespace": {inNamespace, mustInNamespace},
	} {
		may, must := pair[0], pair[1]
		if _, missing := validation.Covers(may, must); len(missing) > 0 {
			t.Errorf("%s it lacks %v", where, missing)
		}
		if _, more := validation.Covers(must, may); len(more) > 0 {
			t.Errorf("%s it does not need %v", where, more)
		}
	}
}
