package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/crdify/pkg/config"
	"sigs.k8s.io/crdify/pkg/runner"
	"sigs.k8s.io/crdify/pkg/validations/property"
	"sigs.k8s.io/yaml"

	"github.com/memcached-operator/memcached-operator/hack/internal/must"
)

// violations returns the reasons for which OLM v1 would reject an upgrade from one CRD to another. The library and its
// configuration are those of operator-controller v1.11.0 (internal/operator-controller/rukpak/preflights/crdupgradesafety).
func violations(t *testing.T, before, after *apiextensionsv1.CustomResourceDefinition) string {
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
	must.Succeed(t, err)
	results := checks.Run(before, after)
	if !results.HasFailures() {
		return ""
	}
	return results.RenderPlainText()
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

// OLM upgrades from each release to the newest one in one step.
func TestOLMUpgradesTheCRDsOfEachRelease(t *testing.T) {
	versions, err := released(root)
	must.Succeed(t, err)
	now := crdsOf(t, filepath.Join(root, "bundle"))
	for _, v := range versions {
		for name, before := range crdsOf(t, filepath.Join(root, releasesDir, v.String())) {
			after, found := now[name]
			if !found {
				t.Errorf("%s has the CRD %s, and bundle/ does not: OLM would delete it with all its objects", v, name)
				continue
			}
			if got := violations(t, before, after); got != "" {
				t.Errorf("OLM v1 would reject the upgrade from %s:\n%sRevert the change in api/, or make it in a new version of the API.", v, got)
			}
		}
	}
}

// What docs/adr/0024-the-api-is-v1beta1.md lets a release change, and what not. The changes are JSON merge patches of the schema.
func TestViolations(t *testing.T) {
	before := crdsOf(t, filepath.Join(root, "bundle"))["memcacheds.cache.memcached-operator.io"]
	schema, err := json.Marshal(before.Spec.Versions[0].Schema.OpenAPIV3Schema)
	must.Succeed(t, err)
	for name, test := range map[string]struct{ spec, status, want string }{
		"an optional field":                        {spec: "added: {type: string}"},
		"a description":                            {spec: "version: {description: More.}"},
		"a condition, which the description lists": {status: "conditions: {description: More.}"},
		"a description in a list":                  {status: "shards: {items: {properties: {podName: {description: More.}}}}"},
		"a field in a list":                        {status: "shards: {items: {properties: {added: {type: string}}}}"},
		"a value of an enum":                       {spec: "deletionPolicy: {enum: [Delete, Backup, Added]}"},
		"a wider range":                            {spec: "size: {maximum: 1000}"},
		"fewer fields":                             {spec: "paused: null", want: "existingFieldRemoval"},
		"another default":                          {spec: "size: {default: 7}", want: "^.spec.size - default"},
		"a required field":                         {spec: "tls: {required: [secretName]}", want: "^.spec.tls - required"},
		"a narrower range":                         {spec: "size: {maximum: 1}", want: "^.spec.size - maximum"},
		"another rule, also a looser one":          {spec: `version: {x-kubernetes-validations: [{rule: "true"}]}`, want: "^.spec.version - unhandled"},
	} {
		patch, err := yaml.YAMLToJSON(fmt.Appendf(nil, "{properties: {spec: {properties: {%s}}, status: {properties: {%s}}}}", test.spec, test.status))
		must.Succeed(t, err)
		changed, err := jsonpatch.MergePatch(schema, patch)
		must.Succeed(t, err)
		after := before.DeepCopy()
		after.Spec.Versions[0].Schema.OpenAPIV3Schema = &apiextensionsv1.JSONSchemaProps{}
		must.Succeed(t, json.Unmarshal(changed, after.Spec.Versions[0].Schema.OpenAPIV3Schema))
		if reflect.DeepEqual(after, before) {
			t.Errorf("%s changes nothing", name)
		}
		if got := violations(t, before, after); test.want == "" && got != "" || !strings.Contains(got, test.want) {
			t.Errorf("%s: the violations are %q, want %q in them", name, got, test.want)
		}
	}
}

// A version v1 with the same schema can be served beside v1beta1. One with other fields or rules needs a conversion.
func TestOLMAcceptsTheGraduationOfTheAPI(t *testing.T) {
	before := crdsOf(t, filepath.Join(root, "bundle"))["memcacheds.cache.memcached-operator.io"]
	after := before.DeepCopy()
	v1 := after.Spec.Versions[0].DeepCopy()
	v1.Name = "v1"
	after.Spec.Versions[0].Storage = false
	after.Spec.Versions = append(after.Spec.Versions, *v1)
	if got := violations(t, before, after); got != "" {
		t.Errorf("OLM v1 would reject v1 beside v1beta1:\n%s", got)
	}
	delete(v1.Schema.OpenAPIV3Schema.Properties["spec"].Properties, "paused")
	if violations(t, before, after) == "" {
		t.Error("OLM v1 would accept a v1 without a field, both versions served")
	}
	after.Spec.Versions[0].Served = false
	if got := violations(t, before, after); got != "" {
		t.Errorf("OLM v1 would reject v1 with v1beta1 no longer served:\n%s", got)
	}
}
