package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	operators "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// operatorInstall tests that the cluster serves the bundle's API, that an operator runs and, if OLM installed it, that
// the installation has succeeded.
func operatorInstall(ctx context.Context, e *environment) error {
	for _, crd := range e.bundle.V1CRDs {
		if err := e.checkServed(crd); err != nil {
			return err
		}
	}
	if err := e.checkOLM(ctx); err != nil {
		return err
	}
	_, err := e.create(ctx, "scorecard-install", small(0))
	return err
}

// checkServed returns an error unless the cluster serves a CRD in the versions that the bundle has.
func (e *environment) checkServed(bundled *apiextensionsv1.CustomResourceDefinition) error {
	plural := bundled.Spec.Names.Plural
	for _, version := range servedVersions(bundled) {
		group := bundled.Spec.Group + "/" + version
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

// servedVersions returns the served versions of a CRD.
func servedVersions(crd *apiextensionsv1.CustomResourceDefinition) []string {
	var names []string
	for _, v := range crd.Spec.Versions {
		if v.Served {
			names = append(names, v.Name)
		}
	}
	return names
}

// checkOLM returns an error if OLM has installed a release of this operator and not the bundle's.
func (e *environment) checkOLM(ctx context.Context) error {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(operators.SchemeGroupVersion.WithKind("ClusterServiceVersionList"))
	err := e.List(ctx, list)
	if meta.IsNoMatchError(err) {
		e.logf("the cluster has no OLM")
		return nil
	}
	if err != nil {
		return fmt.Errorf("listing ClusterServiceVersions: %w", err)
	}
	var all []csv
	for _, o := range list.Items {
		if o.GetLabels()[operators.CopiedLabelKey] == "" {
			phase, _, _ := unstructured.NestedString(o.Object, "status", "phase")
			message, _, _ := unstructured.NestedString(o.Object, "status", "message")
			all = append(all, csv{o.GetNamespace(), o.GetName(), phase, message})
		}
	}
	sentence, err := checkCSVs(e.bundle.CSV.Name, e.bundle.Package, all)
	if err != nil {
		return err
	}
	e.logf("%s", sentence)
	return nil
}

// csv is a ClusterServiceVersion on the cluster.
type csv struct{ namespace, name, phase, message string }

// checkCSVs finds the bundle's ClusterServiceVersion among those on the cluster.
func checkCSVs(name, packageName string, all []csv) (sentence string, err error) {
	var others []string
	for _, csv := range all {
		switch {
		case csv.name == name && csv.phase == string(operators.CSVPhaseSucceeded):
			return fmt.Sprintf("ClusterServiceVersion %s is Succeeded in namespace %s", name, csv.namespace), nil
		case csv.name == name:
			err = fmt.Errorf("ClusterServiceVersion %s in namespace %s is %s and not Succeeded: %s", name, csv.namespace, csv.phase, csv.message)
		case strings.HasPrefix(csv.name, packageName+".v"):
			others = append(others, csv.name)
		}
	}
	switch {
	case err != nil:
		return "", err
	case len(others) > 0:
		slices.Sort(others)
		return "", fmt.Errorf("OLM has installed %s and not %s, which is the tested bundle", strings.Join(slices.Compact(others), ", "), name)
	}
	return "OLM has installed no release of this operator", nil
}
