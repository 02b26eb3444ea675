package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	operators "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// operatorInstall tests that the cluster serves the bundle's API, that an operator
// works on it and, where OLM installed it, that OLM is done.
func operatorInstall(ctx context.Context, t *trial) error {
	for _, shipped := range t.bundle.V1CRDs {
		if err := t.serves(ctx, shipped); err != nil {
			return err
		}
	}
	if err := t.installedByOLM(ctx); err != nil {
		return err
	}
	s, err := t.create(ctx, "scorecard-install", small(0))
	if err != nil {
		return err
	}
	t.tell("an operator has taken notice of Memcached %s", s.key.Name)
	return nil
}

// serves is an error unless the cluster serves a kind in the versions in which the
// bundle ships it.
func (t *trial) serves(ctx context.Context, shipped *apiextensionsv1.CustomResourceDefinition) error {
	found := &unstructured.Unstructured{}
	found.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	if err := t.Get(ctx, client.ObjectKey{Name: shipped.Name}, found); err != nil {
		return fmt.Errorf("reading the CustomResourceDefinition that the bundle ships: %w", err)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(found.Object, crd); err != nil {
		return fmt.Errorf("reading CustomResourceDefinition %s: %w", shipped.Name, err)
	}
	if !isEstablished(crd) {
		return fmt.Errorf("CustomResourceDefinition %s is not Established: %+v", crd.Name, crd.Status.Conditions)
	}
	if got, want := servedVersions(crd), servedVersions(shipped); !slices.Equal(got, want) {
		return fmt.Errorf("CustomResourceDefinition %s serves versions %v, the bundle ships %v", crd.Name, got, want)
	}
	for _, version := range servedVersions(shipped) {
		group := shipped.Spec.Group + "/" + version
		resources, err := t.Set.Discovery().ServerResourcesForGroupVersion(group)
		if err != nil {
			return fmt.Errorf("asking the API server what it serves of %s: %w", group, err)
		}
		served := false
		for _, r := range resources.APIResources {
			served = served || r.Name == shipped.Spec.Names.Plural
		}
		if !served {
			return fmt.Errorf("the API server does not serve %s of %s", shipped.Spec.Names.Plural, group)
		}
		t.tell("%s are served in %s", shipped.Spec.Names.Plural, group)
	}
	return nil
}

func isEstablished(crd *apiextensionsv1.CustomResourceDefinition) bool {
	return slices.ContainsFunc(crd.Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
		return c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
	})
}

// servedVersions returns the versions in which a kind is served, sorted.
func servedVersions(crd *apiextensionsv1.CustomResourceDefinition) []string {
	var names []string
	for _, v := range crd.Spec.Versions {
		if v.Served {
			names = append(names, v.Name)
		}
	}
	slices.Sort(names)
	return names
}

// installedByOLM is an error unless OLM has installed the bundle, where OLM has
// installed any release of this operator at all.
func (t *trial) installedByOLM(ctx context.Context) error {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(operators.SchemeGroupVersion.WithKind("ClusterServiceVersionList"))
	err := t.List(ctx, list)
	if meta.IsNoMatchError(err) {
		t.tell("this cluster has no OLM: its ClusterServiceVersion is not looked at")
		return nil
	}
	if err != nil {
		return fmt.Errorf("listing ClusterServiceVersions: %w", err)
	}
	var all []installed
	for _, o := range list.Items {
		if o.GetLabels()[operators.CopiedLabelKey] != "" {
			continue // it tells what the original tells
		}
		phase, _, _ := unstructured.NestedString(o.Object, "status", "phase")
		message, _, _ := unstructured.NestedString(o.Object, "status", "message")
		all = append(all, installed{o.GetNamespace(), o.GetName(), phase, message})
	}
	sentence, err := judgeCSVs(t.bundle.CSV.Name, t.bundle.Package, all)
	if err != nil {
		return err
	}
	t.tell("%s", sentence)
	return nil
}

// installed is what a ClusterServiceVersion on the cluster tells.
type installed struct{ namespace, name, phase, message string }

// judgeCSVs finds the bundle's ClusterServiceVersion among those on the cluster.
func judgeCSVs(name, packageName string, all []installed) (sentence string, err error) {
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
		return "", fmt.Errorf("OLM has installed %s and not %s, the bundle that is tested", strings.Join(slices.Compact(others), ", "), name)
	}
	return "OLM has installed no release of this operator: it was installed in another way", nil
}
