package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/operator-framework/api/pkg/manifests"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	ocv1 "github.com/operator-framework/operator-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/component-helpers/auth/rbac/validation"
	"sigs.k8s.io/yaml"
)

// violationsOfBundle returns the reasons for which OLM v1 would not install a bundle. The rules are those of
// operator-controller v1.2 for webhooks, which later versions accept with cert-manager, and v1.11 for the rest.
func violationsOfBundle(t *testing.T, dir string) []string {
	t.Helper()
	bundle, err := manifests.GetBundleFromDir(dir)
	if err != nil {
		return []string{err.Error()}
	}
	var out []string
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	spec := bundle.CSV.Spec

	annotations := struct{ Annotations map[string]string }{}
	if err := yaml.Unmarshal(read(t, filepath.Join(dir, "metadata/annotations.yaml")), &annotations); err != nil {
		t.Fatal(err)
	}
	if got := annotations.Annotations["operators.operatorframework.io.bundle.mediatype.v1"]; got != "registry+v1" {
		add("the mediatype is %q, want registry+v1", got)
	}
	if bundle.Package == "" {
		add("no package is named")
	}
	for _, mode := range spec.InstallModes {
		if want := mode.Type == v1alpha1.InstallModeTypeAllNamespaces; mode.Supported != want {
			add("the install mode %s is %t", mode.Type, mode.Supported)
		}
	}
	if len(spec.WebhookDefinitions) > 0 {
		add("it has webhooks")
	}
	if len(spec.APIServiceDefinitions.Owned)+len(spec.APIServiceDefinitions.Required) > 0 {
		add("it has APIServices")
	}
	if len(spec.CustomResourceDefinitions.Required) > 0 {
		add("it depends on CRDs of others")
	}
	if _, err := os.Stat(filepath.Join(dir, "metadata/dependencies.yaml")); err == nil {
		add("it depends on other packages")
	}
	for _, property := range []string{"olm.gvk.required", "olm.package.required", "olm.constraint"} {
		if strings.Contains(bundle.CSV.Annotations["olm.properties"], property) {
			add("it depends on others by %s", property)
		}
	}
	crds, deployments := map[string]int{}, map[string]int{}
	for _, crd := range bundle.V1CRDs {
		crds[crd.Name]++
	}
	for _, owned := range spec.CustomResourceDefinitions.Owned {
		if crds[owned.Name] != 1 {
			add("it has %d CRDs %s, want one", crds[owned.Name], owned.Name)
		}
	}
	for _, d := range spec.InstallStrategy.StrategySpec.DeploymentSpecs {
		deployments[d.Name]++
		if deployments[d.Name] > 1 || len(utilvalidation.IsDNS1123Subdomain(d.Name)) > 0 {
			add("the name of the Deployment %q is not legal, or there twice", d.Name)
		}
	}
	for _, object := range bundle.Objects {
		// OLM takes a few more, some of which exist only on some clusters.
		if !slices.Contains([]string{"ClusterServiceVersion", "CustomResourceDefinition", "ClusterRole", "Role", "Service"}, object.GetKind()) {
			add("it has a %s", object.GetKind())
		}
	}
	return out
}

func TestOLMv1AcceptsTheBundle(t *testing.T) {
	for _, violation := range violationsOfBundle(t, filepath.Join(root, "bundle")) {
		t.Error(violation)
	}
}

func TestViolationsOfBundle(t *testing.T) {
	const csv = "manifests/memcached-operator.clusterserviceversion.yaml"
	for name, test := range map[string]struct{ file, old, new, want string }{
		"another format":          {"metadata/annotations.yaml", "registry+v1", "helm+v3", `the mediatype is "helm+v3"`},
		"not for all namespaces":  {csv, "- supported: true\n    type: AllNamespaces", "- supported: false\n    type: AllNamespaces", "AllNamespaces is false"},
		"for one namespace":       {csv, "- supported: false\n    type: SingleNamespace", "- supported: true\n    type: SingleNamespace", "SingleNamespace is true"},
		"a webhook":               {csv, "\n  version: ", "\n  webhookdefinitions: [{generateName: w, type: ValidatingAdmissionWebhook}]\n  version: ", "it has webhooks"},
		"an APIService":           {csv, "apiservicedefinitions: {}", "apiservicedefinitions: {owned: [{name: a}]}", "it has APIServices"},
		"a CRD of others":         {csv, "  customresourcedefinitions:\n", "  customresourcedefinitions:\n    required: [{name: a, kind: A, version: v1}]\n", "it depends on CRDs of others"},
		"another package":         {"metadata/dependencies.yaml", "", "dependencies: [{type: olm.package, value: {packageName: p, version: 1.0.0}}]", "it depends on other packages"},
		"a constraint":            {csv, "metadata:\n  annotations:\n", "metadata:\n  annotations:\n    olm.properties: '[{\"type\": \"olm.constraint\", \"value\": {}}]'\n", "by olm.constraint"},
		"a CRD that is not there": {csv, "name: memcacheds.cache", "name: others.cache", "0 CRDs others.cache"},
		"a Deployment without a legal name": {
			csv, "name: memcached-operator-controller-manager\n        spec", "name: Manager\n        spec", `the Deployment "Manager"`,
		},
		"a kind that needs another operator": {"manifests/monitor.yaml", "", "{apiVersion: monitoring.coreos.com/v1, kind: ServiceMonitor, metadata: {name: m}}", "it has a ServiceMonitor"},
		"a folder in manifests":              {"manifests/more/role.yaml", "", "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: r}}", "contains directory"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.CopyFS(dir, os.DirFS(filepath.Join(root, "bundle"))); err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(dir, test.file)
			if test.old != "" {
				replace(t, file, test.old, test.new)
			} else {
				if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, []byte(test.new), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if got := strings.Join(violationsOfBundle(t, dir), "\n"); !strings.Contains(got, test.want) {
				t.Errorf("the violations are %q, want %q in them", got, test.want)
			}
		})
	}
}

// samples are the objects in config/samples/olmv1. An unknown field is an error.
type samples struct {
	namespace corev1.Namespace
	account   corev1.ServiceAccount
	catalog   ocv1.ClusterCatalog
	extension ocv1.ClusterExtension
	// roles and bindings are those of both kinds.
	roles    []rbacv1.ClusterRole
	bindings []rbacv1.ClusterRoleBinding
}

func samplesOf(t *testing.T) samples {
	t.Helper()
	var out samples
	for _, file := range []string{"installer.yaml", "catalog.yaml", "extension.yaml"} {
		for document := range strings.SplitSeq(string(read(t, filepath.Join(root, "config/samples/olmv1", file))), "---\n") {
			var meta metav1.TypeMeta
			if err := yaml.Unmarshal([]byte(document), &meta); err != nil {
				t.Fatal(err)
			}
			var into any
			switch meta.Kind {
			case "Namespace":
				into = &out.namespace
			case "ServiceAccount":
				into = &out.account
			case "ClusterCatalog":
				into = &out.catalog
			case "ClusterExtension":
				into = &out.extension
			case "ClusterRole", "Role":
				out.roles = append(out.roles, rbacv1.ClusterRole{})
				into = &out.roles[len(out.roles)-1]
			case "ClusterRoleBinding", "RoleBinding":
				out.bindings = append(out.bindings, rbacv1.ClusterRoleBinding{})
				into = &out.bindings[len(out.bindings)-1]
			default:
				t.Fatalf("%s has a %s", file, meta.Kind)
			}
			if err := yaml.UnmarshalStrict([]byte(document), into); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
		}
	}
	return out
}

func TestOLMv1Samples(t *testing.T) {
	s := samplesOf(t)
	catalog := s.extension.Spec.Source.Catalog
	for what, pair := range map[string][2]string{
		"the extension's namespace":         {s.extension.Spec.Namespace, s.namespace.Name},
		"the account's namespace":           {s.account.Namespace, s.namespace.Name},
		"the extension's account":           {s.extension.Spec.ServiceAccount.Name, s.account.Name},
		"the extension's package":           {catalog.PackageName, packageName},
		"the extension's channel":           {strings.Join(catalog.Channels, ","), "stable-v1"},
		"the catalog that the selector has": {catalog.Selector.MatchLabels["olm.operatorframework.io/metadata.name"], s.catalog.Name},
		"the source of the catalog":         {string(s.catalog.Spec.Source.Type), "Image"},
		"the source of the extension":       {s.extension.Spec.Source.SourceType, "Catalog"},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s is %q, want %q", what, pair[0], pair[1])
		}
	}
	for i, binding := range s.bindings {
		role := s.roles[i]
		if binding.RoleRef.Name != role.Name || binding.RoleRef.Kind != role.Kind || binding.Namespace != role.Namespace {
			t.Errorf("%s %s binds %+v, want %s %s", binding.Kind, binding.Name, binding.RoleRef, role.Kind, role.Name)
		}
		if len(binding.Subjects) != 1 || binding.Subjects[0].Name != s.account.Name || binding.Subjects[0].Namespace != s.account.Namespace {
			t.Errorf("%s %s is for %+v", binding.Kind, binding.Name, binding.Subjects)
		}
	}
}

// needed returns the rights that the installer of the bundle needs: to create its objects, and those it grants.
func needed(t *testing.T) (inCluster, inNamespace []rbacv1.PolicyRule) {
	t.Helper()
	bundle, err := manifests.GetBundleFromDir(filepath.Join(root, "bundle"))
	if err != nil {
		t.Fatal(err)
	}
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
	for _, role := range samplesOf(t).roles {
		if role.Namespace == "" {
			inCluster = append(inCluster, role.Rules...)
		} else {
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
