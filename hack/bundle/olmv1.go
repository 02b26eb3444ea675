package main

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// installerFile creates what OLM v1 installs the operator with: the namespace, and a ServiceAccount. Its rights to create the
// objects of the bundle are written by hand. Those that it grants to the operator and to users are copied.
const installerFile = "config/samples/olmv1/installer.yaml"

// installer returns the content of installerFile. The API server prevents that the installer grants rights that it doesn't have.
func installer(root string, in input) ([]byte, error) {
	content, err := os.ReadFile(filepath.Join(root, installerFile))
	if err != nil {
		return nil, fmt.Errorf("reading the installer: %w", err)
	}
	// OLM lets an operator of all namespaces read namespaces.
	namespaces := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"get", "list", "watch"}}
	grants := slices.Concat([]rbacv1.PolicyRule{namespaces}, in.rules["ClusterRoleBinding"], in.rules["RoleBinding"])
	created := []string{in.deployment.Name, in.deployment.Spec.Template.Spec.ServiceAccountName}
	for _, object := range in.manifests {
		if object.GetKind() != "ClusterRole" {
			created = append(created, object.GetName())
			continue
		}
		role, err := as[rbacv1.ClusterRole](object)
		if err != nil {
			return nil, err
		}
		grants = append(grants, role.Rules...)
	}
	var rules []rbacv1.PolicyRule // each one once
	for _, r := range grants {
		if !slices.ContainsFunc(rules, func(o rbacv1.PolicyRule) bool { return reflect.DeepEqual(o, r) }) {
			rules = append(rules, r)
		}
	}
	const role = "\n  name: " + packageName + "-installer-grants\nrules:\n"
	before, rest, _ := strings.Cut(string(content), role)
	_, after, _ := strings.Cut(rest, "---\n")
	text := before + role + string(encoded(rules)) + "---\n" + after
	if namespace := string(encoded(in.namespace)); !strings.Contains(text, namespace) {
		return nil, fmt.Errorf("%s needs the namespace of config/manager:\n%s", installerFile, namespace)
	}
	for _, name := range created {
		if !strings.Contains(text, "\n  resourceNames:\n  - "+name+"\n") {
			return nil, fmt.Errorf("%s has no rights for %s, which OLM v1 creates: add those of another object of its kind", installerFile, name)
		}
	}
	return []byte(text), nil
}
