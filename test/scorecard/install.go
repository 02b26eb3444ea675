package main

import (
	"context"
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// operatorInstall tests that the cluster serves the bundle's API and that an operator runs.
func operatorInstall(ctx context.Context, e *environment) error {
	for _, crd := range e.bundle.V1CRDs {
		if err := e.checkServed(crd); err != nil {
			return err
		}
	}
	_, err := e.create(ctx, "scorecard-install", small(0))
	return err
}

// checkServed returns an error unless the cluster serves a CRD in the versions that the bundle has.
func (e *environment) checkServed(bundled *apiextensionsv1.CustomResourceDefinition) error {
	plural := bundled.Spec.Names.Plural
	for _, version := range bundled.Spec.Versions {
		if !version.Served {
			continue
		}
		group := bundled.Spec.Group + "/" + version.Name
		resources, err := e.Set.Discovery().ServerResourcesForGroupVersion(group)
		if err != nil {
			return fmt.Errorf("listing the resources of %s: %w", group, err)
		}
		if !slices.ContainsFunc(resources.APIResources, func(r metav1.APIResource) bool { return r.Name == plural }) {
			return fmt.Errorf("the API server does not serve %s of %s", plural, group)
		}
		e.logf("the API server serves %s of %s", plural, group)
	}
	return nil
}
