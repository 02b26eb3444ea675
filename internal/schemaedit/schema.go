package schemaedit

import (
	"fmt"
	"os"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"
)

// Schema is one version of a custom resource. It is safe for concurrent use.
type Schema struct {
	kind       runtimeschema.GroupVersionKind
	hasStatus  bool // as a subresource, which is not written with the object
	structural *schema.Structural
	values     validation.SchemaValidator
	rules      *cel.Validator
	correlated *model.Structural
	spec       *place
}

// Load returns the schema of the stored version of the CustomResourceDefinition in a file.
func Load(crdFile string) (*Schema, error) {
	raw, err := os.ReadFile(crdFile)
	if err != nil {
		return nil, fmt.Errorf("reading the CustomResourceDefinition: %w", err)
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(raw, &crd); err != nil {
		return nil, fmt.Errorf("reading the CustomResourceDefinition in %s: %w", crdFile, err)
	}
	for _, version := range crd.Spec.Versions {
		if version.Storage {
			return newSchema(&crd, &version)
		}
	}
	return nil, fmt.Errorf("the CustomResourceDefinition in %s stores no version", crdFile)
}

// newSchema compiles a version as the API server does when it starts to serve it.
func newSchema(crd *apiextensionsv1.CustomResourceDefinition, version *apiextensionsv1.CustomResourceDefinitionVersion) (*Schema, error) {
	name := fmt.Sprintf("schema %s of %s", version.Name, crd.Name)
	if version.Schema == nil || version.Schema.OpenAPIV3Schema == nil {
		return nil, fmt.Errorf("%s is missing", name)
	}
	var internal apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(version.Schema.OpenAPIV3Schema, &internal, nil); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	structural, err := schema.NewStructural(&internal)
	if err != nil {
		return nil, fmt.Errorf("%s is not structural: %w", name, err)
	}
	structural = structural.DeepCopy() // it shares its defaults with the original
	if err := defaulting.PruneDefaults(structural); err != nil {
		return nil, fmt.Errorf("%s: its defaults: %w", name, err)
	}
	values, _, err := validation.NewSchemaValidator(&internal)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	spec, ok := structural.Properties["spec"]
	if !ok {
		return nil, fmt.Errorf("%s has no spec", name)
	}
	return &Schema{
		kind:       runtimeschema.GroupVersionKind{Group: crd.Spec.Group, Version: version.Name, Kind: crd.Spec.Names.Kind},
		hasStatus:  version.Subresources != nil && version.Subresources.Status != nil,
		structural: structural,
		values:     values,
		rules:      cel.NewValidator(structural, true, celconfig.PerCallLimit),
		correlated: &model.Structural{Structural: structural},
		spec:       newPlace(nil, "spec", &spec),
	}, nil
}
