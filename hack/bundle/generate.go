package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/config"
)

const (
	packageName = "memcached-operator"
	// manifestsDir and metadataDir hold the two parts that OLM reads.
	manifestsDir = "bundle/manifests"
	metadataDir  = "bundle/metadata"
	csvFile      = manifestsDir + "/" + packageName + ".clusterserviceversion.yaml"
	// scorecardFile is where operator-sdk looks for the tests' configuration.
	scorecardFile = "bundle/tests/scorecard/config.yaml"
	// manifestFile is config/default in one file, which a release has as an asset.
	manifestFile = "dist/install.yaml"
)

// generate returns the files of the bundle of the project in root, the installer for OLM v1, the manifest and the chart, by
// path.
func generate(root string, r release) (map[string][]byte, error) {
	_, objects, err := build(root, "config/manifests", map[string]string{"controller": r.image, "scorecard": r.scorecardImage})
	if err != nil {
		return nil, err
	}
	in, err := sort(objects)
	if err != nil {
		return nil, err
	}
	icon, err := os.ReadFile(filepath.Join(root, "config/manifests/icon.svg"))
	if err != nil {
		return nil, fmt.Errorf("reading the icon: %w", err)
	}
	if err := complete(in, r, icon); err != nil {
		return nil, err
	}
	installer, err := installer(root, in)
	if err != nil {
		return nil, err
	}
	manifest, objects, err := build(root, "config/default", map[string]string{"controller": r.image})
	if err != nil {
		return nil, err
	}
	csv, err := runtime.DefaultUnstructuredConverter.ToUnstructured(in.csv)
	if err != nil {
		return nil, fmt.Errorf("writing the ClusterServiceVersion: %w", err)
	}
	delete(csv, "status") // which the type always writes
	files := map[string][]byte{
		metadataDir + "/annotations.yaml": []byte(annotations(r)),
		"bundle.Dockerfile":               []byte(dockerfile(annotations(r))),
		csvFile:                           encoded(csv),
		scorecardFile:                     encoded(in.scorecard),
		installerFile:                     installer,
		manifestFile:                      []byte(manifest),
	}
	for _, object := range in.manifests {
		files[manifestsDir+"/"+fileName(object)] = encoded(object)
	}
	charted, err := chart(root, r, in.csv, objects)
	for name, content := range charted {
		files[chartDir+"/"+name] = content
	}
	return files, err
}

// build returns a folder of config/ with the images of the release, and those of others with the digests in images.yaml.
func build(root, dir string, images map[string]string) (text string, objects []*unstructured.Unstructured, err error) {
	built, err := config.Build(root, dir, images)
	if err != nil {
		return "", nil, err
	}
	content, err := built.AsYaml()
	if err != nil {
		return "", nil, fmt.Errorf("writing %s: %w", dir, err)
	}
	listed, err := os.ReadFile(filepath.Join(root, "images.yaml"))
	if err != nil {
		return "", nil, fmt.Errorf("reading the digests: %w", err)
	}
	var file struct {
		Images []struct{ Name, Tag, Digest string }
	}
	if err := yaml.Unmarshal(listed, &file); err != nil {
		return "", nil, fmt.Errorf("reading the digests in images.yaml: %w", err)
	}
	text = string(content)
	for _, image := range file.Images {
		if image.Tag != "" && image.Digest != "" {
			variable := "value: " + image.Name + ":" + image.Tag
			text = strings.ReplaceAll(text, variable+"\n", variable+"@"+image.Digest+"\n")
		}
	}
	for document := range strings.SplitSeq(text, "\n---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), object); err != nil {
			return "", nil, fmt.Errorf("reading %s: %w", dir, err)
		}
		objects = append(objects, object)
	}
	return text, objects, nil
}

// input is the output of config/manifests, sorted by its use in the bundle.
type input struct {
	csv        *v1alpha1.ClusterServiceVersion
	namespace  *unstructured.Unstructured
	deployment *appsv1.Deployment
	// rules are the operator's, by the kind of the binding that grants them.
	rules   map[string][]rbacv1.PolicyRule
	crds    []*apiextensionsv1.CustomResourceDefinition
	samples []*unstructured.Unstructured
	// manifests are copied to the bundle.
	manifests []*unstructured.Unstructured
	scorecard *unstructured.Unstructured
}

// sort returns an error for unknown kinds, which the bundle would lack otherwise. Roles come before their bindings.
func sort(objects []*unstructured.Unstructured) (in input, err error) {
	in.rules = map[string][]rbacv1.PolicyRule{}
	for _, object := range objects {
		// OLM chooses the namespace.
		object.SetNamespace("")
		switch kind := object.GetKind(); kind {
		case "ClusterServiceVersion":
			in.csv, err = as[v1alpha1.ClusterServiceVersion](object)
		case "Namespace":
			in.namespace = object
		case "ServiceAccount":
			// OLM creates it.
		case "Deployment":
			in.deployment, err = as[appsv1.Deployment](object)
		case "ClusterRoleBinding", "RoleBinding":
			in.rules[kind], err = in.bind(object)
		case "CustomResourceDefinition":
			var crd *apiextensionsv1.CustomResourceDefinition
			crd, err = as[apiextensionsv1.CustomResourceDefinition](object)
			in.crds, in.manifests = append(in.crds, crd), append(in.manifests, object)
		case "Service", "ClusterRole", "Role":
			in.manifests = append(in.manifests, object)
		case "Configuration":
			in.scorecard = object
		default:
			if object.GroupVersionKind().Group != v1beta1.GroupVersion.Group {
				return in, fmt.Errorf("config/manifests contains a %s/%s, whose place in the bundle is unknown", kind, object.GetName())
			}
			in.samples = append(in.samples, object)
		}
		if err != nil {
			return in, err
		}
	}
	return in, nil
}

// bind returns the rules of a kind of binding with those of another one, whose role OLM creates.
func (in *input) bind(object *unstructured.Unstructured) ([]rbacv1.PolicyRule, error) {
	binding, err := as[rbacv1.ClusterRoleBinding](object) // a RoleBinding has the same fields, and a Role those of a ClusterRole
	if err != nil {
		return nil, err
	}
	ref := binding.RoleRef
	i := slices.IndexFunc(in.manifests, func(o *unstructured.Unstructured) bool { return o.GetKind() == ref.Kind && o.GetName() == ref.Name })
	if i < 0 {
		return nil, fmt.Errorf("%s binds the %s %s, which does not exist or is bound already", binding.Name, ref.Kind, ref.Name)
	}
	role, err := as[rbacv1.ClusterRole](in.manifests[i])
	if err != nil {
		return nil, err
	}
	in.manifests = slices.Delete(in.manifests, i, i+1)
	return append(in.rules[binding.Kind], role.Rules...), nil
}

// as converts an object into its type. An unknown field is an error.
func as[T any](object *unstructured.Unstructured) (*T, error) {
	out := new(T)
	if err := yaml.UnmarshalStrict(encoded(object), out); err != nil {
		return nil, fmt.Errorf("reading %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return out, nil
}

// encoded returns what was read from YAML, or has a type of the API, as YAML.
func encoded(value any) []byte {
	content, err := yaml.Marshal(value)
	if err != nil {
		panic(err)
	}
	return content
}

// fileName returns the name that operator-sdk gives to the file of a manifest.
func fileName(object *unstructured.Unstructured) string {
	gvk := object.GroupVersionKind()
	if gvk.Kind == "CustomResourceDefinition" {
		plural, group, _ := strings.Cut(object.GetName(), ".")
		return group + "_" + plural + ".yaml"
	}
	parts := []string{object.GetName(), gvk.Group, gvk.Version, strings.ToLower(gvk.Kind)}
	return strings.Join(slices.DeleteFunc(parts, func(p string) bool { return p == "" }), "_") + ".yaml"
}
