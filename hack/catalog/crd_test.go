package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/crdify/pkg/config"
	"sigs.k8s.io/crdify/pkg/runner"
	"sigs.k8s.io/crdify/pkg/validations"
	"sigs.k8s.io/crdify/pkg/validations/property"
	"sigs.k8s.io/crdify/pkg/validators/version"
)

// violations returns the reasons for which OLM v1 would reject an upgrade from one CRD to another. The library and its
// configuration are those of operator-controller v1.11.0 (internal/operator-controller/rukpak/preflights/crdupgradesafety).
func violations(t *testing.T, before, after *apiextensionsv1.CustomResourceDefinition) []string {
	t.Helper()
	checks, err := runner.New(&config.Config{
		Conversion:           config.ConversionPolicyIgnore,
		UnhandledEnforcement: config.EnforcementPolicyError,
		Validations: []config.ValidationConfig{
			{Name: "description", Enforcement: config.EnforcementPolicyNone},
			{
				Name: "enum", Enforcement: config.EnforcementPolicyError,
				Configuration: map[string]any{"additionPolicy": property.AdditionPolicyAllow},
			},
		},
	}, runner.DefaultRegistry())
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	add := func(where string, results []validations.ComparisonResult) {
		for _, result := range results {
			for _, message := range result.Errors {
				out = append(out, where+result.Name+": "+message)
			}
		}
	}
	results := checks.Run(before, after)
	add("", results.CRDValidation)
	for _, versions := range [][]version.VersionedPropertyComparisonResult{results.SameVersionValidation, results.ServedVersionValidation} {
		for _, v := range versions {
			for _, p := range v.PropertyComparisons {
				add(v.Version+" "+p.Property+": ", p.ComparisonResults)
			}
		}
	}
	slices.Sort(out)
	return out
}

// crdsOf returns the CRDs of a bundle by name, as on a cluster that stores objects in each of their versions.
func crdsOf(t *testing.T, dir string) map[string]*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	crds := map[string]*apiextensionsv1.CustomResourceDefinition{}
	for _, crd := range bundle(t, dir).V1CRDs {
		for _, v := range crd.Spec.Versions {
			crd.Status.StoredVersions = append(crd.Status.StoredVersions, v.Name)
		}
		crds[crd.Name] = crd
	}
	return crds
}

// OLM upgrades from each release to the newest one in one step. Without a release there is nothing to compare.
func TestOLMUpgradesTheCRDsOfEachRelease(t *testing.T) {
	versions, err := released(root)
	if err != nil {
		t.Fatal(err)
	}
	now := crdsOf(t, filepath.Join(root, "bundle"))
	for _, v := range versions {
		for name, before := range crdsOf(t, filepath.Join(root, releasesDir, v.String())) {
			after, found := now[name]
			if !found {
				t.Errorf("%s has the CRD %s, and bundle/ does not: OLM would delete it with all its objects", v, name)
				continue
			}
			for _, violation := range violations(t, before, after) {
				t.Errorf("OLM v1 would reject the upgrade from %s: %s\nRevert the change in api/, or make it in a new version of the API.", v, violation)
			}
		}
	}
}

// The library and its configuration are OLM's. One change of each side shows that the comparison takes place.
func TestViolations(t *testing.T) {
	before := crdsOf(t, filepath.Join(root, "bundle"))["memcacheds.cache.memcached-operator.io"]
	for want, change := range map[string]func(spec apiextensionsv1.JSONSchemaProps){
		"":                     func(spec apiextensionsv1.JSONSchemaProps) { spec.Properties["added"] = spec.Properties["version"] },
		"existingFieldRemoval": func(spec apiextensionsv1.JSONSchemaProps) { delete(spec.Properties, "threads") },
	} {
		after := before.DeepCopy()
		change(specOf(after))
		if got := strings.Join(violations(t, before, after), "\n"); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("the violations are %q, want %q in them", got, want)
		}
	}
}

func specOf(crd *apiextensionsv1.CustomResourceDefinition) apiextensionsv1.JSONSchemaProps {
	return crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
}
