package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/operator-framework/api/pkg/lib/version"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const relatedImagePrefix = "RELATED_IMAGE_"

// complete adds to the ClusterServiceVersion what is not written by hand.
func complete(in input, r release, icon []byte) error {
	csv := in.csv
	csv.Name = packageName + ".v" + r.version.String()
	csv.Namespace = "placeholder" // OLM overwrites it, and requires one
	csv.Spec.Version = version.OperatorVersion{Version: r.version}
	csv.Spec.Maturity, _ = stage(r.version)
	for i := range csv.Spec.Links {
		link := &csv.Spec.Links[i]
		link.URL = strings.Replace(link.URL, "/blob/main/", "/blob/v"+r.version.String()+"/", 1)
	}
	csv.Spec.Icon = []v1alpha1.Icon{{Data: base64.StdEncoding.EncodeToString(icon), MediaType: "image/svg+xml"}}

	spec := in.deployment.Spec.Template.Spec
	permissions := func(binding string) []v1alpha1.StrategyDeploymentPermissions {
		return []v1alpha1.StrategyDeploymentPermissions{{ServiceAccountName: spec.ServiceAccountName, Rules: in.rules[binding]}}
	}
	csv.Spec.InstallStrategy = v1alpha1.NamedInstallStrategy{
		StrategyName: v1alpha1.InstallStrategyNameDeployment,
		StrategySpec: v1alpha1.StrategyDetailsDeployment{
			DeploymentSpecs:    []v1alpha1.StrategyDeploymentSpec{{Name: in.deployment.Name, Label: in.deployment.Labels, Spec: in.deployment.Spec}},
			Permissions:        permissions("RoleBinding"),
			ClusterPermissions: permissions("ClusterRoleBinding"),
		},
	}
	// The images that the operator may use, which mirroring tools copy: that of RELATED_IMAGE_MEMCACHED is "memcached".
	for _, variable := range spec.Containers[0].Env {
		if name, found := strings.CutPrefix(variable.Name, relatedImagePrefix); found {
			csv.Spec.RelatedImages = append(csv.Spec.RelatedImages, v1alpha1.RelatedImage{Name: strings.ToLower(name), Image: variable.Value})
		}
	}

	csv.Annotations["alm-examples"] = indented(in.samples)
	// Consoles offer to create it once the operator runs.
	csv.Annotations["operatorframework.io/initialization-resource"] = indented(in.samples[0])
	csv.Annotations["containerImage"] = r.image
	csv.Annotations["createdAt"] = r.createdAt
	// Whether tools for clusters without internet access can mirror all images that a default installation pulls.
	disconnected := !slices.ContainsFunc(in.samples, namesTag) &&
		!slices.ContainsFunc(csv.Spec.RelatedImages, func(i v1alpha1.RelatedImage) bool { return !pinned(i.Image) })
	csv.Annotations["features.operators.openshift.io/disconnected"] = strconv.FormatBool(disconnected)
	return describe(in)
}

func pinned(image string) bool { return strings.Contains(image, "@sha256:") }

// namesTag reports whether a sample, which consoles offer to create, names an image by its tag. A version is a tag.
func namesTag(sample *unstructured.Unstructured) bool {
	version, _, _ := unstructured.NestedString(sample.Object, "spec", "version")
	image, _, _ := unstructured.NestedString(sample.Object, "spec", "pod", "image")
	return version != "" || image != "" && !pinned(image)
}

func indented(value any) string {
	content, _ := json.MarshalIndent(value, "", "  ") // it was read from YAML
	return string(content)
}

// describe adds descriptors to every CRD. The base must own each of them.
func describe(in input) error {
	owned := in.csv.Spec.CustomResourceDefinitions.Owned
	for _, crd := range in.crds {
		for _, v := range crd.Spec.Versions {
			i := slices.IndexFunc(owned, func(d v1alpha1.CRDDescription) bool { return d.Name == crd.Name && d.Version == v.Name })
			if i < 0 {
				return fmt.Errorf("the base of the ClusterServiceVersion does not own %s %s", crd.Name, v.Name)
			}
			properties := v.Schema.OpenAPIV3Schema.Properties
			owned[i].SpecDescriptors = specDescriptors(field{"", properties["spec"]})
			owned[i].StatusDescriptors = statusDescriptors(field{"", properties["status"]})
		}
	}
	return nil
}
