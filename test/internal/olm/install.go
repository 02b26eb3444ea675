package olm

import (
	"context"
	"errors"
	"fmt"
	"slices"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
)

// OLM is a cluster on which the Operator Lifecycle Manager runs, and a namespace in which it installs the operator.
type OLM struct {
	*cluster.Cluster
	Namespace string
}

// On returns a cluster's OLM, with which the operator is installed in the given namespace.
func On(c *cluster.Cluster, namespace string) (OLM, error) {
	scheme := c.Scheme()
	if err := errors.Join(operatorsv1.AddToScheme(scheme), operatorsv1alpha1.AddToScheme(scheme), operatorsv2.AddToScheme(scheme)); err != nil {
		return OLM{}, fmt.Errorf("building the scheme: %w", err)
	}
	return OLM{c, namespace}, nil
}

// AddCatalog creates a CatalogSource of an image, for all namespaces. It has another name each time: OLM goes on for minutes to know what was in
// one of that name before.
func (o OLM) AddCatalog(ctx context.Context, image string) (*operatorsv1alpha1.CatalogSource, error) {
	source := &operatorsv1alpha1.CatalogSource{
		ObjectMeta: metav1.ObjectMeta{Namespace: "olm", GenerateName: Package + "-"},
		Spec: operatorsv1alpha1.CatalogSourceSpec{SourceType: operatorsv1alpha1.SourceTypeGrpc, Image: image, GrpcPodConfig: &operatorsv1alpha1.GrpcPodConfig{
			SecurityContextConfig: operatorsv1alpha1.Restricted,
			ExtractContent:        &operatorsv1alpha1.ExtractContentConfig{CatalogDir: "/configs"},
		}},
	}
	return source, o.Create(ctx, source)
}

// Provide makes the namespace, and an OperatorGroup of the target namespaces, none of them meaning all.
func (o OLM) Provide(ctx context.Context, targets ...string) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: o.Namespace}}
	group := &operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: Package}}
	for _, wanted := range []struct {
		object client.Object
		set    func()
	}{
		{namespace, func() {
			metav1.SetMetaDataLabel(&namespace.ObjectMeta, "pod-security.kubernetes.io/enforce", "restricted")
		}},
		{group, func() { group.Spec.TargetNamespaces = targets }},
	} {
		// A namespace that still ends refuses for a while.
		err := cluster.Eventually(ctx, fmt.Sprintf("making %T %s", wanted.object, wanted.object.GetName()), func(ctx context.Context) error {
			_, err := controllerutil.CreateOrUpdate(ctx, o, wanted.object, func() error { wanted.set(); return nil })
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Subscribe asks for a release of a catalog, and for those after it as they come or as the user approves. The Subscription has
// another name each time: OLM may write the status of one that was just deleted to another one of its name, which then waits forever.
func (o OLM) Subscribe(ctx context.Context, catalog *operatorsv1alpha1.CatalogSource, r Release, approval operatorsv1alpha1.Approval) error {
	return o.Create(ctx, &operatorsv1alpha1.Subscription{ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, GenerateName: Package + "-"}, Spec: &operatorsv1alpha1.SubscriptionSpec{
		CatalogSource:          catalog.Name,
		CatalogSourceNamespace: catalog.Namespace,
		Package:                Package,
		Channel:                Channel,
		StartingCSV:            r.CSV(),
		InstallPlanApproval:    approval,
	}})
}

// UseCatalog lets the Subscription take its releases from another catalog.
func (o OLM) UseCatalog(ctx context.Context, catalog *operatorsv1alpha1.CatalogSource) error {
	subscription, err := o.subscription(ctx)
	if err != nil {
		return err
	}
	return o.Patch(ctx, subscription, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"source":%q}}`, catalog.Name)))
}

func (o OLM) subscription(ctx context.Context) (*operatorsv1alpha1.Subscription, error) {
	all := operatorsv1alpha1.SubscriptionList{}
	if err := o.List(ctx, &all, client.InNamespace(o.Namespace)); err != nil {
		return nil, err
	}
	if len(all.Items) != 1 {
		return nil, fmt.Errorf("there are %d Subscriptions", len(all.Items))
	}
	return &all.Items[0], nil
}

// Approve approves the plan that installs a release, once the Subscription names it. OLM may have made others.
func (o OLM) Approve(ctx context.Context, r Release) error {
	return cluster.Eventually(ctx, "the plan that installs "+r.CSV(), func(ctx context.Context) error {
		subscription, err := o.subscription(ctx)
		if err != nil {
			return err
		}
		named := subscription.Status.InstallPlanRef
		if named == nil {
			return errors.New("the Subscription names no plan")
		}
		plan := &operatorsv1alpha1.InstallPlan{}
		if err := o.Get(ctx, client.ObjectKey{Namespace: o.Namespace, Name: named.Name}, plan); err != nil {
			return err
		}
		if !slices.Contains(plan.Spec.ClusterServiceVersionNames, r.CSV()) {
			return fmt.Errorf("the plan %s installs %v", plan.Name, plan.Spec.ClusterServiceVersionNames)
		}
		plan.Spec.Approved = true
		return o.Update(ctx, plan)
	})
}

// Succeeded waits until OLM has installed a release, and until the operator of no other one is left.
func (o OLM) Succeeded(ctx context.Context, r Release) error {
	err := cluster.Eventually(ctx, r.CSV()+" Succeeded", func(ctx context.Context) error {
		csv, err := o.CSV(ctx, r.CSV())
		if err != nil {
			return err
		}
		if csv.Status.Phase != operatorsv1alpha1.CSVPhaseSucceeded {
			return fmt.Errorf("it is %s: %s: %s", csv.Status.Phase, csv.Status.Reason, csv.Status.Message)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return o.OperatorReady(ctx)
}

// CSV returns a ClusterServiceVersion of the namespace.
func (o OLM) CSV(ctx context.Context, name string) (*operatorsv1alpha1.ClusterServiceVersion, error) {
	csv := &operatorsv1alpha1.ClusterServiceVersion{}
	err := o.Get(ctx, client.ObjectKey{Namespace: o.Namespace, Name: name}, csv)
	return csv, err
}

// Upgradeable returns what the operator of a release reported to OLM.
func (o OLM) Upgradeable(ctx context.Context, r Release) (metav1.Condition, error) {
	condition := &operatorsv2.OperatorCondition{}
	if err := o.Get(ctx, client.ObjectKey{Namespace: o.Namespace, Name: r.CSV()}, condition); err != nil {
		return metav1.Condition{}, fmt.Errorf("reading the OperatorCondition: %w", err)
	}
	c := meta.FindStatusCondition(condition.Spec.Conditions, operatorsv2.Upgradeable)
	if c == nil {
		return metav1.Condition{}, fmt.Errorf("the OperatorCondition %s says nothing of Upgradeable", condition.Name)
	}
	return *c, nil
}

// Uninstall removes the operator as a user does, by its Subscription and ClusterServiceVersions, and waits until it has
// stopped. Memcacheds stay, as does the namespace.
func (o OLM) Uninstall(ctx context.Context) error {
	if err := o.forget(ctx); err != nil {
		return err
	}
	return o.OperatorGone(ctx)
}

// Remove removes the operator, and the namespace with whatever is in it. Where nothing is installed it does nothing.
func (o OLM) Remove(ctx context.Context) error {
	if err := o.forget(ctx); err != nil {
		return err
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: o.Namespace}}
	if err := o.Delete(ctx, namespace); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting namespace %s: %w", o.Namespace, err)
	}
	if err := o.Gone(ctx, namespace); err != nil {
		return err
	}
	// OLM would keep its Operator object forever.
	kept := &operatorsv1.Operator{ObjectMeta: metav1.ObjectMeta{Name: Package + "." + o.Namespace}}
	if err := o.Delete(ctx, kept); client.IgnoreNotFound(err) != nil && !meta.IsNoMatchError(err) {
		return fmt.Errorf("deleting Operator %s: %w", kept.Name, err)
	}
	return nil
}

// forget deletes what has OLM run the operator.
func (o OLM) forget(ctx context.Context) error {
	for _, all := range []client.Object{&operatorsv1alpha1.Subscription{}, &operatorsv1alpha1.ClusterServiceVersion{}, &operatorsv1alpha1.InstallPlan{}} {
		if err := o.DeleteAllOf(ctx, all, client.InNamespace(o.Namespace)); err != nil && !meta.IsNoMatchError(err) {
			return fmt.Errorf("deleting each %T: %w", all, err)
		}
	}
	return nil
}
