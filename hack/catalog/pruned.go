package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/manifests"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// pruned returns, for each release, the fields of specs that a downgrade to it loses, in lines.
func pruned(root string) (string, error) {
	versions, err := released(root)
	if err != nil {
		return "", err
	}
	now, err := manifests.GetBundleFromDir(filepath.Join(root, "bundle"))
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, v := range versions {
		before, err := manifests.GetBundleFromDir(filepath.Join(root, releasesDir, v.String()))
		if err != nil {
			return "", err
		}
		fields := unknownFields(before.V1CRDs, now.V1CRDs)
		if len(fields) == 0 {
			fmt.Fprintf(&b, "%s knows all fields\n", v)
		}
		for _, field := range fields {
			fmt.Fprintf(&b, "%s doesn't know %s\n", v, field)
		}
	}
	return b.String(), nil
}

// unknownFields returns the fields of specs that the API server removes when the CRDs after are
// replaced by those before, such as "Memcached .spec.refill", and the kinds that are missing.
func unknownFields(before, after []*apiextensionsv1.CustomResourceDefinition) []string {
	var unknown []string
	for _, crd := range after {
		i := slices.IndexFunc(before, func(b *apiextensionsv1.CustomResourceDefinition) bool { return b.Name == crd.Name })
		if i < 0 {
			unknown = append(unknown, crd.Spec.Names.Kind)
			continue
		}
		add := func(path string) { unknown = append(unknown, crd.Spec.Names.Kind+" .spec"+path) }
		compareFields("", specOf(before[i]), specOf(crd), add)
	}
	slices.Sort(unknown)
	return unknown
}

func specOf(crd *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.JSONSchemaProps {
	spec := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
	return &spec
}

// compareFields calls add with the path of each field that before lacks, without those below it.
func compareFields(path string, before, after *apiextensionsv1.JSONSchemaProps, add func(path string)) {
	for name, now := range after.Properties {
		was, known := before.Properties[name]
		if !known {
			add(path + "." + name)
			continue
		}
		compareFields(path+"."+name, &was, &now, add)
	}
	if before.Items != nil && after.Items != nil {
		compareFields(path+"[]", before.Items.Schema, after.Items.Schema, add)
	}
}
