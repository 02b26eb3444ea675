package main

import (
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/operator-framework/api/pkg/manifests"
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
	bundle, err := manifests.GetBundleFromDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	crds := map[string]*apiextensionsv1.CustomResourceDefinition{}
	for _, crd := range bundle.V1CRDs {
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
			for _, field := range changesBelowLists(before, after) {
				t.Errorf("operator-controller 1.2 would reject the upgrade from %s: the description of %s changed, or anything below it if it is a list\nRevert the change in api/. Add a new field beside the list.", v, field)
			}
			for _, violation := range violations(t, before, after) {
				t.Errorf("OLM v1 would reject the upgrade from %s: %s\nRevert the change in api/, or make it in a new version of the API.", v, violation)
			}
		}
	}
}

// changesBelowLists returns the fields with another description, and the lists below which anything changed.
// operator-controller rejects such changes before the version in which it uses crdify.
func changesBelowLists(before, after *apiextensionsv1.CustomResourceDefinition) []string {
	var changed []string
	var look func(path string, a, b apiextensionsv1.JSONSchemaProps)
	look = func(path string, a, b apiextensionsv1.JSONSchemaProps) {
		if a.Description != b.Description || a.Items != nil && !reflect.DeepEqual(a.Items, b.Items) {
			changed = append(changed, path)
		}
		for name, below := range a.Properties {
			if now, ok := b.Properties[name]; ok {
				look(path+"."+name, below, now)
			}
		}
	}
	look("", *before.Spec.Versions[0].Schema.OpenAPIV3Schema, *after.Spec.Versions[0].Schema.OpenAPIV3Schema)
	return changed
}

func TestDescriptionsBelowAListAreCompared(t *testing.T) {
	before := crdsOf(t, filepath.Join(root, "bundle"))["memcacheds.cache.memcached-operator.io"]
	after := before.DeepCopy()
	if changed := changesBelowLists(before, after); changed != nil {
		t.Errorf("nothing changed, and %v is reported", changed)
	}
	shards := after.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"].Properties["shards"].Items.Schema
	for name, field := range shards.Properties {
		field.Description = "Other words."
		shards.Properties[name] = field
	}
	if changed := changesBelowLists(before, after); !slices.Equal(changed, []string{".status.shards"}) {
		t.Errorf("%v are reported, want .status.shards", changed)
	}
}

func TestViolations(t *testing.T) {
	type schema = apiextensionsv1.JSONSchemaProps
	// spec changes the schema of the spec.
	spec := func(change func(*schema)) func(*apiextensionsv1.CustomResourceDefinition) {
		return func(crd *apiextensionsv1.CustomResourceDefinition) {
			all := crd.Spec.Versions[0].Schema.OpenAPIV3Schema
			spec := all.Properties["spec"]
			change(&spec)
			all.Properties["spec"] = spec
		}
	}
	// field changes the schema of a field of the spec.
	field := func(name string, change func(*schema)) func(*apiextensionsv1.CustomResourceDefinition) {
		return spec(func(s *schema) {
			field, found := s.Properties[name]
			if !found {
				panic("spec has no field " + name)
			}
			change(&field)
			s.Properties[name] = field
		})
	}
	number := func(n float64) *float64 { return &n }
	text := schema{Type: "string"}
	for name, test := range map[string]struct {
		change func(*apiextensionsv1.CustomResourceDefinition)
		// want is empty where OLM upgrades.
		want string
	}{
		"a field removed": {
			spec(func(s *schema) { delete(s.Properties, "threads") }), "existingFieldRemoval",
		},
		"a field that became required": {
			spec(func(s *schema) { s.Required = append(s.Required, "threads") }), "required",
		},
		"a new field that is required": {
			spec(func(s *schema) { s.Properties["added"] = text; s.Required = append(s.Required, "added") }), "required",
		},
		"a lower maximum": {
			field("threads", func(s *schema) { s.Maximum = number(*s.Maximum - 1) }), "maximum",
		},
		"a higher minimum": {
			field("threads", func(s *schema) { s.Minimum = number(*s.Minimum + 1) }), "minimum",
		},
		"a bound where there was none": {
			field("version", func(s *schema) { n := int64(3); s.MaxLength = &n }), "maxLength",
		},
		"another default": {
			field("size", func(s *schema) { s.Default = &apiextensionsv1.JSON{Raw: []byte("7")} }), "default",
		},
		"another type": {
			field("threads", func(s *schema) { s.Type = "string" }), "type",
		},
		"a value of an enumeration removed": {
			field("imagePullPolicy", func(s *schema) { s.Enum = s.Enum[1:] }), "enum",
		},
		"a rule that rejects more": {
			spec(func(s *schema) {
				s.XValidations = append(s.XValidations, apiextensionsv1.ValidationRule{Rule: "self.size > 1", Message: "too small"})
			}), "unhandled",
		},
		"another scope": {
			func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.Scope = apiextensionsv1.ClusterScoped }, "scope",
		},
		"a version removed": {
			func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.Versions[0].Name = "v1beta1" }, "storedVersionRemoval",
		},
		"a rule in other words": {
			spec(func(s *schema) { s.XValidations[0].Message = "other words" }), "unhandled",
		},
		"a higher maximum": {field("threads", func(s *schema) { s.Maximum = number(*s.Maximum + 1) }), ""},
		"a new field with a rule": {spec(func(s *schema) {
			added := text
			added.XValidations = apiextensionsv1.ValidationRules{{Rule: "self != ''"}}
			s.Properties["added"] = added
		}), ""},
		"another column": {func(crd *apiextensionsv1.CustomResourceDefinition) {
			crd.Spec.Versions[0].AdditionalPrinterColumns = nil
		}, ""},
		"a new field":         {spec(func(s *schema) { s.Properties["added"] = text }), ""},
		"another description": {field("threads", func(s *schema) { s.Description = "Other words." }), ""},
		"a new version beside": {func(crd *apiextensionsv1.CustomResourceDefinition) {
			v := crd.Spec.Versions[0].DeepCopy()
			v.Name, v.Storage = "v1beta1", false
			crd.Spec.Versions = append(crd.Spec.Versions, *v)
		}, ""},
		"no change at all": {func(*apiextensionsv1.CustomResourceDefinition) {}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			before := crdsOf(t, filepath.Join(root, "bundle"))["memcacheds.cache.memcached-operator.io"]
			after := before.DeepCopy()
			test.change(after)
			got := strings.Join(violations(t, before, after), "\n")
			if test.want == "" && got != "" || !strings.Contains(got, test.want) {
				t.Errorf("the violations are %q, want %q in them", got, test.want)
			}
		})
	}
}
