package main

import (
	"bytes"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	semver "github.com/blang/semver/v4"
	"github.com/operator-framework/api/pkg/manifests"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/memcached-operator/memcached-operator/hack/internal/must"
)

const project = "../.."

func committedBundle(t *testing.T) *manifests.Bundle {
	t.Helper()
	bundle, err := manifests.GetBundleFromDir(filepath.Join(project, "bundle"))
	must.Succeed(t, err)
	return bundle
}

// sources returns a copy of what the bundle is generated of.
func sources(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, folder := range []string{"config", chartDir} {
		must.Succeed(t, os.CopyFS(filepath.Join(dir, folder), os.DirFS(filepath.Join(project, folder))))
	}
	return dir
}

// The project's own .dockerignore excludes all but the operator's sources.
func TestDockerignoreIncludesTheFilesThatAreCopied(t *testing.T) {
	for dockerfile, folder := range map[string]string{"bundle.Dockerfile": "bundle", "catalog/Dockerfile": "catalog/configs"} {
		copied := regexp.MustCompile(`(?m)^COPY (\S+) `).FindAllStringSubmatch(string(must.Read(t, filepath.Join(project, dockerfile))), -1)
		outside := slices.ContainsFunc(copied, func(match []string) bool { return !strings.HasPrefix(match[1]+"/", folder+"/") })
		if ignore := string(must.Read(t, filepath.Join(project, dockerfile+".dockerignore"))); len(copied) == 0 || outside || !strings.HasSuffix(ignore, "\n*\n!"+folder+"\n") {
			t.Errorf("%s copies %q, its .dockerignore is\n%s", dockerfile, copied, ignore)
		}
	}
}

func TestBundleIsValidAsReleased(t *testing.T) {
	version := committedBundle(t).CSV.Spec.Version.String()
	dir, bundle := t.TempDir(), os.DirFS(filepath.Join(project, "bundle"))
	must.Succeed(t, errors.Join(os.CopyFS(filepath.Join(dir, "bundle"), bundle), os.CopyFS(filepath.Join(dir, "catalog/releases", version), bundle)))
	if got, err := validate(dir); len(got) > 0 || err != nil {
		t.Errorf("as released, the findings are %q, %v", got, err)
	}
	const service = "{apiVersion: v1, kind: Service, metadata: {name: more}}"
	must.Succeed(t, os.WriteFile(filepath.Join(dir, manifestsDir, "more.yaml"), []byte(service), 0o600))
	want := []string{"bundle/ differs from the release " + version + ": raise VERSION in the Makefile"}
	if got, err := validate(dir); !slices.Equal(got, want) || err != nil {
		t.Errorf("with another file, the findings are %q, %v, want %q", got, err, want)
	}
	csv := filepath.Join(dir, csvFile)
	must.Succeed(t, os.WriteFile(csv, bytes.ReplaceAll(must.Read(t, csv), []byte("capabilities: Deep Insights"), []byte("capabilities: Everything")), 0o600))
	if got, err := validate(dir); !strings.Contains(strings.Join(got, "\n"), "capabilities") || err != nil {
		t.Errorf("with an unknown capability, the findings are %q, %v", got, err)
	}
}

// OperatorHub creates its channels from them.
func TestChannelsAgreeWithTheMaturity(t *testing.T) {
	for version, want := range map[string]string{"1.1.0": "stable of stable-v1,candidate-v1", "1.1.0-rc.1": "beta of candidate-v1"} {
		if maturity, channels := stage(semver.MustParse(version)); maturity+" of "+channels != want {
			t.Errorf("%s is %s of %s, want %s", version, maturity, channels, want)
		}
	}
}

func TestLinksAreDocumentsOfTheRelease(t *testing.T) {
	csv := committedBundle(t).CSV
	documents := 0
	for _, link := range csv.Spec.Links {
		_, path, found := strings.Cut(link.URL, "/blob/")
		if !found {
			continue
		}
		documents++
		file, ofRelease := strings.CutPrefix(path, "v"+csv.Spec.Version.String()+"/")
		if _, err := os.Stat(filepath.Join(project, file)); !ofRelease || err != nil {
			t.Errorf("%s is not a document of the release: %v", link.URL, err)
		}
	}
	if documents < 3 {
		t.Errorf("%d links are documents, want 3", documents)
	}
}

// OpenShift calls a bundle ready for disconnected clusters if all its images have digests.
func TestDigestsAreInTheBundle(t *testing.T) {
	const digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	dir := sources(t)
	r := release{image: "registry.example.com/operator@" + digest, scorecardImage: "scorecard:1"}
	for memcached, disconnected := range map[string]string{
		"tag: 1.6.44, digest: '" + digest + "'": "false",
		"tag: 1.6.45":                           "false",
		"tag: 1.6.45, digest: '" + digest + "'": "true",
	} {
		images := "images: [{name: docker.io/library/memcached, " + memcached + "}]"
		must.Succeed(t, os.WriteFile(filepath.Join(dir, "images.yaml"), []byte(images), 0o600))
		files, err := generate(dir, r)
		must.Succeed(t, err)
		var csv v1alpha1.ClusterServiceVersion
		must.Succeed(t, yaml.Unmarshal(files[csvFile], &csv))
		container := csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Template.Spec.Containers[0]
		if got := csv.Annotations["features.operators.openshift.io/disconnected"]; got != disconnected || container.Image != r.image {
			t.Errorf("%s: disconnected is %s, want %s; the operator's image is %s, want %s", memcached, got, disconnected, container.Image, r.image)
		}
		for _, name := range []string{manifestFile, chartDir + "/templates/operator.yaml"} {
			if got := strings.Contains(string(files[name]), "docker.io/library/memcached:1.6.45@"+digest); got != (disconnected == "true") {
				t.Errorf("%s: %s has the digest: %t", memcached, name, got)
			}
		}
		for _, image := range csv.Spec.RelatedImages {
			if want := disconnected == "true" || image.Image == r.image; strings.HasSuffix(image.Image, "@"+digest) != want {
				t.Errorf("%s: the image of %s is %s", memcached, image.Name, image.Image)
			}
		}
	}
}

// spec.version is a tag, which mirroring tools don't know.
func TestASampleWithAVersionIsNotForDisconnectedClusters(t *testing.T) {
	for spec, want := range map[string]bool{
		"{size: 3}": false, "{version: 1.6.45}": true, "{pod: {image: memcached:1.6.45}}": true, "{pod: {image: memcached@sha256:0123}}": false,
	} {
		sample := &unstructured.Unstructured{}
		must.Succeed(t, yaml.Unmarshal([]byte("{apiVersion: example.com/v1, kind: Memcached, spec: "+spec+"}"), sample))
		if got := namesTag(sample); got != want {
			t.Errorf("%s names an image by its tag: %t, want %t", spec, got, want)
		}
	}
}

// The catalogs of the community are of versions of OpenShift, and go.mod has the newest version of Kubernetes.
func TestVersionsOfKubernetes(t *testing.T) {
	bundle := committedBundle(t)
	line := "com.redhat.openshift.versions: v4.16\n"
	if got := bundle.CSV.Spec.MinKubeVersion; got != "1.29.0" || !strings.Contains(string(must.Read(t, filepath.Join(project, metadataDir, "annotations.yaml"))), line) {
		t.Errorf("minKubeVersion is %s, and annotations.yaml has no line %q: OpenShift 4.16 has Kubernetes 1.29", got, line)
	}
	if want := "\tk8s.io/api v0" + strings.TrimPrefix(kubernetesVersion, "1") + "."; !strings.Contains(string(must.Read(t, filepath.Join(project, "go.mod"))), want) {
		t.Errorf("go.mod does not contain %q: the bundle is validated for Kubernetes %s", want, kubernetesVersion)
	}
}

func TestDigestIsOfARelease(t *testing.T) {
	makefile := string(must.Read(t, filepath.Join(project, "Makefile")))
	release := regexp.MustCompile(`(?m)^VERSION \?= (.+)\n(?:.*\n)*?DIGEST \?=(.*)$`).FindStringSubmatch(makefile)
	if _, err := os.Stat(filepath.Join(project, "catalog/releases", release[1])); err != nil && release[2] != "" {
		t.Errorf("the Makefile has the digest of an image of another version: remove DIGEST there, and that of the operator in images.yaml: %v", err)
	}
}

// Mirroring tools copy relatedImages only.
func TestRelatedImagesEqualTheEnvironment(t *testing.T) {
	csv := committedBundle(t).CSV
	container := csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Template.Spec.Containers[0]
	var want []v1alpha1.RelatedImage
	for _, variable := range container.Env {
		if name, found := strings.CutPrefix(variable.Name, "RELATED_IMAGE_"); found {
			want = append(want, v1alpha1.RelatedImage{Name: strings.ToLower(name), Image: variable.Value})
		}
		if variable.Name == "RELATED_IMAGE_AGENT" && variable.Value != container.Image {
			t.Errorf("the agent's image is %s, the operator's %s", variable.Value, container.Image)
		}
	}
	if len(want) != 2 || !slices.Equal(csv.Spec.RelatedImages, want) {
		t.Errorf("relatedImages are %v, the environment has %v", csv.Spec.RelatedImages, want)
	}
	if csv.Annotations["containerImage"] != container.Image {
		t.Errorf("containerImage is %s, the Deployment's %s", csv.Annotations["containerImage"], container.Image)
	}
}

// The validators check only a part of what OperatorHub and consoles show.
func TestBundleHasTheFieldsThatConsolesShow(t *testing.T) {
	csv := committedBundle(t).CSV
	annotations := map[string]string{
		"capabilities": "Deep Insights", // docs/maintainers/capability-levels.md names the tests for it
		"operatorframework.io/suggested-namespace": "memcached-operator-system",
	}
	for _, name := range []string{
		"alm-examples", "categories", "containerImage", "createdAt", "description", "repository", "support",
		"operatorframework.io/initialization-resource", "operators.openshift.io/valid-subscription", "operators.operatorframework.io/internal-objects",
	} {
		annotations[name] = "(?s).+"
	}
	for _, feature := range []string{
		"cnf", "cni", "csi", "disconnected", "fips-compliant", "proxy-aware", "tls-profiles", "token-auth-aws", "token-auth-azure", "token-auth-gcp",
	} {
		annotations["features.operators.openshift.io/"+feature] = "true|false"
	}
	annotations["features.operators.openshift.io/proxy-aware"] = "true" // Jobs get the operator's proxy
	for name, want := range annotations {
		if got := csv.Annotations[name]; !regexp.MustCompile("^(" + want + ")$").MatchString(got) {
			t.Errorf("the annotation %s is %q, want %s", name, got, want)
		}
	}
	for _, label := range []string{"arch.amd64", "arch.arm64", "os.linux"} {
		if csv.Labels["operatorframework.io/"+label] != "supported" {
			t.Errorf("%s is not labelled as supported", label)
		}
	}
	spec := csv.Spec
	if len(spec.Icon) != 1 || len(spec.Keywords) == 0 || len(spec.Links) == 0 || len(spec.Maintainers) == 0 ||
		spec.Provider.Name == "" || spec.DisplayName == "" || spec.Description == "" || spec.Maturity == "" || spec.MinKubeVersion == "" {
		t.Error("icon, keywords, links, maintainers, provider, name, description, maturity or minKubeVersion are missing")
	}
}

// The scorecard requires a descriptor of each key of a spec. A console can't show the value of a structure or a list.
func TestDescriptors(t *testing.T) {
	bundle := committedBundle(t)
	crds := bundle.V1CRDs
	if owned := bundle.CSV.Spec.CustomResourceDefinitions.Owned; len(owned) != len(crds) || len(crds) != 4 {
		t.Fatalf("%d kinds are owned, and there are %d CRDs", len(owned), len(crds))
	}
	for _, owned := range bundle.CSV.Spec.CustomResourceDefinitions.Owned {
		i := slices.IndexFunc(crds, func(crd *apiextensionsv1.CustomResourceDefinition) bool { return crd.Name == owned.Name })
		if i < 0 {
			t.Fatalf("%s is owned and has no CRD", owned.Name)
		}
		properties := crds[i].Spec.Versions[0].Schema.OpenAPIV3Schema.Properties
		if owned.DisplayName == "" || owned.Description == "" || owned.Kind != crds[i].Spec.Names.Kind {
			t.Errorf("%s is owned as %q: %q, %q", crds[i].Spec.Names.Kind, owned.Kind, owned.DisplayName, owned.Description)
		}
		var spec []string
		for _, d := range owned.SpecDescriptors {
			if !strings.Contains(d.Path, ".") {
				spec = append(spec, d.Path)
			}
			property, found := at(properties["spec"], d.Path)
			if d.DisplayName == "" || !found || property.Description == "" || len(d.XDescriptors) == 0 && property.Type != "object" {
				t.Errorf("%s: the descriptor of spec.%s lacks something, or there is no such field: %+v", owned.Kind, d.Path, d)
			}
		}
		// A required field comes before an optional one, and a field before a structure.
		if want := map[string]string{
			"Memcached":                "size memory version",
			"MemcachedBackup":          "memcachedRef store deadlineSeconds",
			"MemcachedRestore":         "memcachedRef deadlineSeconds existingItems",
			"MemcachedScheduledBackup": "schedule backupTemplate concurrencyPolicy",
		}[owned.Kind]; strings.Join(spec[:3], " ") != want {
			t.Errorf("%s: the first fields that a console shows are %v, want %s", owned.Kind, spec[:3], want)
		}
		slices.Sort(spec)
		if want := slices.Sorted(maps.Keys(properties["spec"].Properties)); !slices.Equal(spec, want) {
			t.Errorf("%s: spec has descriptors for %v, want %v", owned.Kind, spec, want)
		}
		if len(owned.StatusDescriptors) < 4 {
			t.Errorf("%s: status has %d descriptors", owned.Kind, len(owned.StatusDescriptors))
		}
		for _, d := range owned.StatusDescriptors {
			property, found := at(properties["status"], d.Path)
			if d.DisplayName == "" || !found || property.Description == "" || property.Type == "object" || property.Type == "array" {
				t.Errorf("%s: status.%s is a %s, its descriptor is %+v", owned.Kind, d.Path, property.Type, d)
			}
		}
	}
}

// at returns the property at a path.
func at(schema apiextensionsv1.JSONSchemaProps, path string) (property apiextensionsv1.JSONSchemaProps, found bool) {
	for key := range strings.SplitSeq(path, ".") {
		if schema, found = schema.Properties[key]; !found {
			break
		}
	}
	return schema, found
}

func TestPermissions(t *testing.T) {
	install := committedBundle(t).CSV.Spec.InstallStrategy.StrategySpec
	inNamespace, inAll := install.Permissions[0].Rules, install.ClusterPermissions[0].Rules
	ofLeases := func(rule rbacv1.PolicyRule) bool { return slices.Contains(rule.Resources, "leases") }
	if !slices.ContainsFunc(inNamespace, ofLeases) || slices.ContainsFunc(inAll, ofLeases) {
		t.Error("leases must be granted in the operator's namespace only")
	}
	// OLM grants the Role in all namespaces if the operator is installed for all.
	for _, rule := range inNamespace {
		creates := slices.Equal(rule.Verbs, []string{"create"})
		events := slices.Equal(rule.Resources, []string{"events"}) && slices.Equal(rule.Verbs, []string{"create", "patch"})
		if len(rule.ResourceNames) == 0 && !creates && !events {
			t.Errorf("the rule %+v is for objects of any name: name them, or grant nothing but create", rule)
		}
	}
}

func TestGenerateRejects(t *testing.T) {
	// file has new content.
	for name, test := range map[string]struct{ file, content, want string }{
		"an object that has no place in a bundle": {
			"config/manager/metrics_service.yaml", "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}}", "ConfigMap/memcached-operator-settings",
		},
		"a role whose creation needs unknown rights": {
			"config/rbac/metrics_reader_role.yaml", "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: other}}", "no rights for memcached-operator-other",
		},
		"a binding of no role": {
			"config/rbac/metrics_auth_role.yaml", "{apiVersion: v1, kind: Service, metadata: {name: other}}", "metrics-auth-role, which does not exist",
		},
		"an installer for another namespace": {installerFile, "", "installer.yaml needs the namespace"},
		"a chart without a role":             {chartDir + "/templates/operator.yaml", "", "operator.yaml needs a text that matches"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := sources(t)
			must.Succeed(t, os.WriteFile(filepath.Join(dir, "images.yaml"), nil, 0o600))
			must.Succeed(t, os.WriteFile(filepath.Join(dir, test.file), []byte(test.content), 0o600))
			_, err := generate(dir, release{image: "operator:1", scorecardImage: "scorecard:1"})
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("the error is %v, want %q in it", err, test.want)
			}
		})
	}
}
