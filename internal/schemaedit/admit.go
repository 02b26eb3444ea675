package schemaedit

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/common"
)

// Admit returns what the API server stores of a new object, or of one that replaces the stored object old: with
// defaults, without unknown fields, with the status of old, and with the new generation. The error is the Invalid status
// with which the API server rejects the object, whose causes are sorted by field. Admit does not change the objects.
func (s *Schema) Admit(ctx context.Context, object, old *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if kind := object.GroupVersionKind(); kind != s.kind {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the object is a %s, want a %s", kind, s.kind))
	}
	admitted := &unstructured.Unstructured{Object: s.decode(object.Object)}
	if old == nil {
		s.prepareCreate(admitted)
	} else {
		s.prepareUpdate(admitted, old)
	}
	var errs field.ErrorList
	if old == nil {
		errs = s.reject(ctx, admitted.Object, nil)
	} else {
		errs = s.reject(ctx, admitted.Object, old.Object)
	}
	if len(errs) > 0 {
		slices.SortStableFunc(errs, func(a, b *field.Error) int {
			return cmp.Or(cmp.Compare(a.Field, b.Field), cmp.Compare(a.Error(), b.Error()))
		})
		return nil, apierrors.NewInvalid(s.kind.GroupKind(), object.GetName(), errs)
	}
	defaulting.Default(admitted.Object, s.structural) // of the status, when the API server reads what it stores
	return admitted, nil
}

// decode returns a copy of an object as the API server reads it from a request.
func (s *Schema) decode(object map[string]any) map[string]any {
	read := runtime.DeepCopyJSON(object)
	metadata, hasMetadata := read["metadata"] // the schema does not describe its fields
	pruning.Prune(read, s.structural, true)
	defaulting.PruneNonNullableNullsWithoutDefaults(read, s.structural)
	defaulting.Default(read, s.structural)
	if hasMetadata {
		read["metadata"] = metadata
	}
	return read
}

func (s *Schema) prepareCreate(object *unstructured.Unstructured) {
	if s.hasStatus {
		delete(object.Object, "status")
	}
	object.SetGeneration(1)
}

func (s *Schema) prepareUpdate(object, old *unstructured.Unstructured) {
	if s.hasStatus {
		delete(object.Object, "status")
		if status, ok := old.Object["status"]; ok {
			object.Object["status"] = runtime.DeepCopyJSONValue(status)
		}
	}
	object.SetGeneration(old.GetGeneration())
	if !equality.Semantic.DeepEqual(withoutMetadata(object.Object), withoutMetadata(old.Object)) {
		object.SetGeneration(old.GetGeneration() + 1)
	}
}

func withoutMetadata(object map[string]any) map[string]any {
	rest := make(map[string]any, len(object))
	for name, value := range object {
		if name != "metadata" {
			rest[name] = value
		}
	}
	return rest
}

// reject returns the errors of an object, or of replacing old with it; old is nil for a new object. Errors of unchanged
// values of old are omitted.
func (s *Schema) reject(ctx context.Context, object, old map[string]any) field.ErrorList {
	var errs field.ErrorList
	var before any
	var ratcheting []cel.Option
	checksLists := true
	if old == nil {
		errs = validation.ValidateCustomResource(nil, object, s.values)
	} else {
		both := common.NewCorrelatedObject(object, old, s.correlated)
		errs = validation.ValidateCustomResourceUpdate(nil, object, old, s.values, validation.WithRatcheting(both))
		checksLists = len(listtype.ValidateListSetsAndMaps(nil, s.structural, old)) == 0
		before, ratcheting = old, append(ratcheting, cel.WithRatcheting(both))
	}
	if checksLists {
		errs = append(errs, listtype.ValidateListSetsAndMaps(nil, s.structural, object)...)
	}
	if slices.ContainsFunc(errs, preventsRules) {
		return append(errs, field.Invalid(nil, nil, "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation"))
	}
	broken, _ := s.rules.Validate(ctx, nil, s.structural, object, before, celconfig.RuntimeCELCostBudget, ratcheting...)
	return append(errs, broken...)
}

// preventsRules reports whether a value is so wrong that the API server evaluates no rule.
func preventsRules(err *field.Error) bool {
	switch err.Type {
	case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid:
		return true
	default:
		return false
	}
}
