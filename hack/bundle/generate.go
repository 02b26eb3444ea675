package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/resource"
	"sigs.k8s.io/yaml"

	"github.com/memcached-operator/memcached-operator/config"
)

const (
	packageName = "memcached-operator"
	// manifestsDir and metadataDir hold the two parts that OLM reads.
	manifestsDir = "bundle/manifests"
	metadataDir  = "bundle/metadata"
	// scorecardFile is where operator-sdk looks for the tests' configuration.
	scorecardFile = "bundle/tests/scorecard/config.yaml"
)

// generate returns the files of the bundle of the project in root, the installer for OLM v1, the manifest and the chart, by
// path.
func generate(root string, r release) (map[string][]byte, error) {
	built, err := config.Build(root, "config/manifests", map[string]string{"controller": r.image, "scorecard": r.scorecardImage})
	if err != nil {
		return nil, err
	}
	icon, err := os.ReadFile(filepath.Join(root, "config/manifests/icon.svg"))
	if err != nil {
		return nil, fmt.Errorf("reading the icon: %w", err)
	}

	in, err := sort(built)
	if err != nil {
		return nil, err
	}
	minKubeVersion, err := in.base.GetString("spec.minKubeVersion")
	if err != nil {
		return nil, fmt.Errorf("reading the minimal version of Kubernetes: %w", err)
	}
	if r.openshift, err = openshift(minKubeVersion); err != nil {
		return nil, err
	}
	files := map[string][]byte{
		metadataDir + "/annotations.yaml": annotationsFile(r),
		"bundle.Dockerfile":               dockerfile(r),
	}
	if in.digests, err = digests(root); err != nil {
		return nil, err
	}
	for _, object := range in.manifests {
		if files[manifestsDir+"/"+fileName(object)], err = object.AsYAML(); err != nil {
			return nil, fmt.Errorf("writing %s: %w", object.CurId(), err)
		}
	}
	if in.scorecard != nil {
		if files[scorecardFile], err = in.scorecard.AsYAML(); err != nil {
			return nil, fmt.Errorf("writing the scorecard's configuration: %w", err)
		}
	}
	csv, err := clusterServiceVersion(in, r, icon)
	if err != nil {
		return nil, err
	}
	content, err := yaml.Marshal(csv)
	if err != nil {
		return nil, fmt.Errorf("writing the ClusterServiceVersion: %w", err)
	}
	files[manifestsDir+"/"+packageName+".clusterserviceversion.yaml"] = content
	if files[installerFile], err = installer(in); err != nil {
		return nil, err
	}
	if files[manifestFile], err = manifest(root, r, in.digests); err != nil {
		return nil, err
	}
	charted, err := chart(root, r, csv, files[manifestFile])
	for name, content := range charted {
		files[chartDir+"/"+name] = content
	}
	return files, err
}

// input is the output of config/manifests, sorted by its use in the bundle.
type input struct {
	base        *resource.Resource
	namespace   *resource.Resource
	deployments []*resource.Resource
	// roles are the operator's, by kind and name. bindings grant them.
	roles    map[string]*resource.Resource
	bindings []*resource.Resource
	crds     []*resource.Resource
	samples  []*resource.Resource
	// manifests are copied to the bundle.
	manifests []*resource.Resource
	scorecard *resource.Resource
	// digests of images, by name and tag.
	digests map[string]string
}

// sort returns an error for unknown kinds, which the bundle would lack otherwise.
func sort(built resmap.ResMap) (input, error) {
	in := input{roles: map[string]*resource.Resource{}}
	bound, ofAPI := map[string]bool{}, map[string]bool{}
	for _, object := range built.Resources() {
		switch object.GetKind() {
		case "ClusterRoleBinding", "RoleBinding":
			in.bindings = append(in.bindings, object)
			kind, _ := object.GetString("roleRef.kind")
			name, _ := object.GetString("roleRef.name")
			bound[kind+"/"+name] = true
		case "CustomResourceDefinition":
			in.crds = append(in.crds, object)
			group, _ := object.GetString("spec.group")
			ofAPI[group] = true
		}
	}
	for _, object := range built.Resources() {
		// OLM chooses the namespace.
		if err := object.SetNamespace(""); err != nil {
			return input{}, fmt.Errorf("removing the namespace of %s: %w", object.CurId(), err)
		}
		key := object.GetKind() + "/" + object.GetName()
		switch kind := object.GetKind(); {
		case kind == "ClusterServiceVersion":
			in.base = object
		case kind == "Deployment":
			in.deployments = append(in.deployments, object)
		case kind == "Configuration" && object.GetGvk().Group == "scorecard.operatorframework.io":
			in.scorecard = object
		case ofAPI[object.GetGvk().Group]:
			in.samples = append(in.samples, object)
		case bound[key]:
			in.roles[key] = object
		case kind == "CustomResourceDefinition" || kind == "Service" || kind == "ClusterRole" || kind == "Role":
			in.manifests = append(in.manifests, object)
		case kind == "ClusterRoleBinding" || kind == "RoleBinding":
			// in.bindings has them
		case kind == "Namespace":
			in.namespace = object
		case kind == "ServiceAccount":
			// OLM creates it.
		default:
			return input{}, fmt.Errorf("config/manifests contains a %s, whose place in the bundle is unknown", key)
		}
	}
	if in.base == nil || len(in.deployments) == 0 || len(in.crds) == 0 {
		return input{}, fmt.Errorf("config/manifests lacks a ClusterServiceVersion, a Deployment or a CustomResourceDefinition")
	}
	return in, nil
}

// fileName returns the name that operator-sdk gives to the file of a manifest.
func fileName(object *resource.Resource) string {
	gvk := object.GetGvk()
	if gvk.Kind == "CustomResourceDefinition" {
		plural, group, _ := strings.Cut(object.GetName(), ".")
		return group + "_" + plural + ".yaml"
	}
	parts := []string{object.GetName()}
	if gvk.Group != "" {
		parts = append(parts, gvk.Group)
	}
	return strings.Join(append(parts, gvk.Version, strings.ToLower(gvk.Kind)), "_") + ".yaml"
}
