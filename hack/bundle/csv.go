package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	semver "github.com/blang/semver/v4"
	"github.com/operator-framework/api/pkg/lib/version"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/kustomize/api/resource"
	"sigs.k8s.io/yaml"
)

const relatedImagePrefix = "RELATED_IMAGE_"

// clusterServiceVersion completes the base. It returns an object without the status that the type always writes.
func clusterServiceVersion(in input, r release, icon []byte) (map[string]any, error) {
	csv, err := as[v1alpha1.ClusterServiceVersion](in.base)
	if err != nil {
		return nil, err
	}
	number, err := semver.Parse(r.version)
	if err != nil {
		return nil, fmt.Errorf("reading the version %q: %w", r.version, err)
	}
	csv.Name = packageName + ".v" + r.version
	// OLM overwrites the namespace, which is required.
	csv.Namespace = "placeholder"
	csv.Spec.Version = version.OperatorVersion{Version: number}
	csv.Spec.Maturity = maturity(number)
	for i := range csv.Spec.Links {
		link := &csv.Spec.Links[i]
		link.URL = strings.Replace(link.URL, "/blob/main/", "/blob/v"+r.version+"/", 1)
	}
	csv.Spec.Icon = []v1alpha1.Icon{{Data: base64.StdEncoding.EncodeToString(icon), MediaType: "image/svg+xml"}}
	if err := annotate(csv, in, r); err != nil {
		return nil, err
	}
	if err := describe(csv, in.crds); err != nil {
		return nil, err
	}
	if csv.Spec.InstallStrategy, err = strategy(in); err != nil {
		return nil, err
	}
	if csv.Spec.RelatedImages, err = relatedImages(csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs); err != nil {
		return nil, err
	}

	csv.Annotations["features.operators.openshift.io/disconnected"] = strconv.FormatBool(pinned(csv.Spec.RelatedImages) && !slices.ContainsFunc(in.samples, byTag))

	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(csv)
	if err != nil {
		return nil, fmt.Errorf("writing the ClusterServiceVersion: %w", err)
	}
	delete(object, "status")
	return object, nil
}

// maturity agrees with the channels: only the default one is called stable, and a candidate is not in it.
func maturity(version semver.Version) string {
	if len(version.Pre) > 0 {
		return "beta"
	}
	return "stable"
}

func annotate(csv *v1alpha1.ClusterServiceVersion, in input, r release) error {
	var samples []json.RawMessage
	for _, sample := range in.samples {
		content, err := sample.MarshalJSON()
		if err != nil {
			return fmt.Errorf("reading the sample %s: %w", sample.GetName(), err)
		}
		samples = append(samples, content)
	}
	if len(samples) == 0 {
		return fmt.Errorf("config/samples is empty")
	}
	all, err := json.Marshal(samples)
	if err != nil {
		return fmt.Errorf("writing the samples: %w", err)
	}
	csv.Annotations["alm-examples"] = indented(all)
	// Consoles offer to create it once the operator runs.
	csv.Annotations["operatorframework.io/initialization-resource"] = indented(samples[0])
	csv.Annotations["containerImage"] = r.image
	csv.Annotations["createdAt"] = r.createdAt
	return nil
}

func indented(content []byte) string {
	var out bytes.Buffer
	// It was marshalled just before.
	_ = json.Indent(&out, content, "", "  ")
	return strings.TrimSpace(out.String())
}

// describe adds descriptors to every CRD. The base must own each of them.
func describe(csv *v1alpha1.ClusterServiceVersion, objects []*resource.Resource) error {
	owned := csv.Spec.CustomResourceDefinitions.Owned
	for _, object := range objects {
		crd, err := as[apiextensionsv1.CustomResourceDefinition](object)
		if err != nil {
			return err
		}
		for _, v := range crd.Spec.Versions {
			i := slices.IndexFunc(owned, func(d v1alpha1.CRDDescription) bool { return d.Name == crd.Name && d.Version == v.Name })
			if i < 0 {
				return fmt.Errorf("the base of the ClusterServiceVersion does not own %s %s", crd.Name, v.Name)
			}
			properties, api := v.Schema.OpenAPIV3Schema.Properties, crd.Spec.Group+":"+v.Name
			owned[i].SpecDescriptors = specDescriptors(field{"", api, properties["spec"]})
			owned[i].StatusDescriptors = statusDescriptors(field{"", api, properties["status"]})
		}
	}
	return nil
}

// strategy returns the deployments, and the permissions of their ServiceAccounts.
func strategy(in input) (v1alpha1.NamedInstallStrategy, error) {
	out := v1alpha1.NamedInstallStrategy{StrategyName: v1alpha1.InstallStrategyNameDeployment}
	spec := &out.StrategySpec
	for _, object := range in.deployments {
		deployment, err := as[appsv1.Deployment](object)
		if err != nil {
			return out, err
		}
		pin(deployment.Spec.Template.Spec.Containers, in.digests)
		spec.DeploymentSpecs = append(spec.DeploymentSpecs, v1alpha1.StrategyDeploymentSpec{
			Name: deployment.Name, Label: deployment.Labels, Spec: deployment.Spec,
		})
		account := deployment.Spec.Template.Spec.ServiceAccountName
		for kind, permissions := range map[string]*[]v1alpha1.StrategyDeploymentPermissions{
			"RoleBinding": &spec.Permissions, "ClusterRoleBinding": &spec.ClusterPermissions,
		} {
			rules, err := rulesOf(in, kind, account)
			if err != nil {
				return out, err
			}
			if len(rules) > 0 {
				*permissions = append(*permissions, v1alpha1.StrategyDeploymentPermissions{ServiceAccountName: account, Rules: rules})
			}
		}
	}
	return out, nil
}

func rulesOf(in input, bindingKind, account string) ([]rbacv1.PolicyRule, error) {
	var rules []rbacv1.PolicyRule
	for _, object := range in.bindings {
		if object.GetKind() != bindingKind {
			continue
		}
		// Both kinds of binding have the same fields.
		binding, err := as[rbacv1.ClusterRoleBinding](object)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(binding.Subjects, func(s rbacv1.Subject) bool { return s.Kind == "ServiceAccount" && s.Name == account }) {
			continue
		}
		source, found := in.roles[binding.RoleRef.Kind+"/"+binding.RoleRef.Name]
		if !found {
			return nil, fmt.Errorf("%s binds the %s %s, which does not exist", binding.Name, binding.RoleRef.Kind, binding.RoleRef.Name)
		}
		role, err := as[rbacv1.ClusterRole](source)
		if err != nil {
			return nil, err
		}
		rules = append(rules, role.Rules...)
	}
	return rules, nil
}

// digests returns the digests in images.yaml, by name and tag.
func digests(root string) (map[string]string, error) {
	content, err := os.ReadFile(filepath.Join(root, "images.yaml"))
	if err != nil {
		return nil, fmt.Errorf("reading the digests: %w", err)
	}
	var file struct {
		Images []struct{ Name, Tag, Digest string }
	}
	if err := yaml.Unmarshal(content, &file); err != nil {
		return nil, fmt.Errorf("reading the digests in images.yaml: %w", err)
	}
	out := map[string]string{}
	for _, image := range file.Images {
		if image.Tag != "" && image.Digest != "" {
			out[image.Name+":"+image.Tag] = image.Digest
		}
	}
	return out, nil
}

// pin adds the digests that are known to the images that the operator uses.
func pin(containers []corev1.Container, digests map[string]string) {
	for _, container := range containers {
		for i := range container.Env {
			variable := &container.Env[i]
			if digest, found := digests[variable.Value]; found && strings.HasPrefix(variable.Name, relatedImagePrefix) {
				variable.Value += "@" + digest
			}
		}
	}
}

// pinned reports whether tools for clusters without internet access can mirror all images that a default installation
// pulls.
func pinned(images []v1alpha1.RelatedImage) bool {
	return !slices.ContainsFunc(images, func(i v1alpha1.RelatedImage) bool { return !strings.Contains(i.Image, "@sha256:") })
}

// byTag reports whether a sample, which consoles offer to create, names an image by its tag. A version is a tag.
func byTag(sample *resource.Resource) bool {
	return slices.ContainsFunc([]string{"spec.version", "spec.pod.image"}, func(path string) bool {
		reference, err := sample.GetString(path)
		return err == nil && !strings.Contains(reference, "@sha256:")
	})
}

// relatedImages returns the images that the operator may use, which mirroring tools copy, by the names of its
// environment: RELATED_IMAGE_MEMCACHED is "memcached".
func relatedImages(deployments []v1alpha1.StrategyDeploymentSpec) ([]v1alpha1.RelatedImage, error) {
	var images []v1alpha1.RelatedImage
	for _, deployment := range deployments {
		for _, container := range deployment.Spec.Template.Spec.Containers {
			for _, variable := range container.Env {
				name, found := strings.CutPrefix(variable.Name, relatedImagePrefix)
				if !found {
					continue
				}
				if variable.Value == "" {
					return nil, fmt.Errorf("%s is empty", variable.Name)
				}
				images = append(images, v1alpha1.RelatedImage{Name: strings.ReplaceAll(strings.ToLower(name), "_", "-"), Image: variable.Value})
			}
			if !slices.ContainsFunc(images, func(i v1alpha1.RelatedImage) bool { return i.Image == container.Image }) {
				images = append(images, v1alpha1.RelatedImage{Name: container.Name, Image: container.Image})
			}
		}
	}
	return images, nil
}

// as converts an object into its type. An unknown field is an error.
func as[T any](object *resource.Resource) (*T, error) {
	content, err := object.AsYAML()
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", object.CurId(), err)
	}
	out := new(T)
	if err := yaml.UnmarshalStrict(content, out); err != nil {
		return nil, fmt.Errorf("reading %s: %w", object.CurId(), err)
	}
	return out, nil
}
