package olmv1

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
	"github.com/memcached-operator/memcached-operator/test/internal/olm"
	"github.com/memcached-operator/memcached-operator/test/internal/suite"
)

const (
	// samples is what users apply.
	samples = "config/samples/olmv1"
	// installer is its ServiceAccount, by which OLM v1 installs.
	installer = "memcached-operator-installer"
	// olmNamespace is where OLM v1 notes what it has installed.
	olmNamespace = "olmv1-system"
	catalog      = "ghcr.io/memcached-operator/memcached-operator-catalog:test-olmv1"

	owner    = client.FieldOwner("olmv1")
	cache    = "cache"
	shards   = 2
	perShard = 10_000
)

var k *cluster.Cluster

// lifecycle is the operator's life with OLM v1, one part after the other, while a cache is served whose pods nothing may touch.
type lifecycle struct {
	*suite.Space // of the part that runs
	whole        *suite.Space
	// before is the newest release of those that were cut before the unreleased one.
	before, inWork olm.Release
	// began is when OLM v1 began, and acted when the operator that runs was alone.
	began, acted time.Time
	kept         suite.Kept
}

func TestOLMv1InstallsAndUpgradesWithItsInstallersPermissions(t *testing.T) {
	l := newLifecycle(t)
	l.began = time.Now()
	for _, part := range []struct {
		name string
		run  func(*lifecycle)
	}{
		{"a ClusterExtension of one version installs the release before", (*lifecycle).installs},
		{"a cache is filled", (*lifecycle).fills},
		{"without a version the newest release follows, and the cache is untouched", (*lifecycle).upgrades},
		{"with OLM v1 stopped, the ClusterExtension goes alone, and a new one takes over", (*lifecycle).leavesAndReturns},
		{"with OLM v1, the kind goes with the ClusterExtension, and every cache", (*lifecycle).uninstalls},
	} {
		ok := t.Run(part.name, func(t *testing.T) {
			l.Space = l.whole.In(t)
			part.run(l)
		})
		if !ok {
			t.Log("how things stand:\n" + l.describe(context.Background()))
			return // what follows builds on it
		}
	}
}

// newLifecycle puts two releases and their catalog on the cluster, and takes the operator away that the other tests use, and
// its kind. When the test ends, one is there again.
func newLifecycle(t *testing.T) *lifecycle {
	t.Helper()
	l := &lifecycle{whole: &suite.Space{T: t, Ctx: t.Context()}}
	l.Space = l.whole
	var err error
	k, err = cluster.Connect()
	l.Must(err)
	suite.K = k
	image := os.Getenv("IMG")
	if image == "" {
		t.Fatal("IMG names no image of the operator: run this through make test-olmv1")
	}
	l.Must(l.nothingGoes())
	l.Must(l.noCacheIsLost())
	_, err = cluster.Local(l.Ctx, "olmv1", "up")
	l.Must(err)
	scratch := t.TempDir()
	l.inWork, err = olm.InWork(l.Ctx, scratch, image)
	l.Must(err)
	l.before, err = olm.Before(l.Ctx, scratch, l.inWork)
	l.Must(err)
	t.Logf("from %s, built from %s, to %s, built from %s", l.before.Version, l.before.Built, l.inWork.Version, l.inWork.Built)
	l.Must(olm.LoadCatalog(l.Ctx, scratch, catalog, l.before, l.inWork))

	l.ReturnsOperator(image, l.remove)
	l.Must(l.remove(l.Ctx)) // of a run that was interrupted
	l.Must(k.Uninstall(l.Ctx))
	// OLM v1 does not change a CRD of another owner, and installs nothing.
	for _, d := range definitions() {
		l.Must(l.end(l.Ctx, d))
	}
	return l
}

// nothingGoes waits until no namespace is being deleted: those of tests that have just finished need the operator for it.
func (l *lifecycle) nothingGoes() error {
	return cluster.Eventually(l.Ctx, "the end of namespaces that are being deleted", func(ctx context.Context) error {
		var all corev1.NamespaceList
		if err := k.List(ctx, &all); err != nil {
			return err
		}
		for _, namespace := range all.Items {
			if namespace.DeletionTimestamp != nil {
				return fmt.Errorf("%s is there", namespace.Name)
			}
		}
		return nil
	})
}

// noCacheIsLost fails the test when there is a Memcached, or what is reported of its
// backups, which would go as the test's own one does.
func (l *lifecycle) noCacheIsLost() error {
	var found []error
	for _, all := range []client.ObjectList{
		&v1beta1.MemcachedList{}, &v1beta1.MemcachedBackupList{}, &v1beta1.MemcachedScheduledBackupList{}, &v1beta1.MemcachedRestoreList{},
	} {
		if err := k.List(l.Ctx, all); err != nil && !meta.IsNoMatchError(err) {
			return err
		}
		err := meta.EachListItem(all, func(o runtime.Object) error {
			m := o.(client.Object)
			found = append(found, fmt.Errorf("this test would delete %T %s of namespace %s, as OLM v1 does: delete it first", o, m.GetName(), m.GetNamespace()))
			return nil
		})
		if err != nil {
			return err
		}
	}
	return errors.Join(found...)
}

func (l *lifecycle) installs() {
	began := time.Now()
	l.install(l.before.Version)
	l.installed(l.before)
	l.Logf("from ClusterCatalog and ClusterExtension to Installed: %s", time.Since(began).Round(100*time.Millisecond))
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User:               "system:serviceaccount:" + cluster.OperatorNamespace + ":" + installer,
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "*", Group: "*", Resource: "*"},
	}}
	l.Must(k.Create(l.Ctx, review))
	if review.Status.Allowed {
		l.Errorf("the installer may do everything: %s", review.Status.Reason)
	}
}

func (l *lifecycle) fills() {
	l.whole.Namespace = suite.NewKept(l.whole.T).Namespace
	l.Namespace = l.whole.Namespace
	l.whole.Finally(func(ctx context.Context) error {
		return k.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: l.whole.Namespace}})
	})
	l.scale(shards)
	l.kept = l.Filled(cache, shards, perShard)
	l.HadItsRights(cluster.OperatorAccount, l.acted)
}

func (l *lifecycle) upgrades() {
	stop := l.Probes(cache, shards)
	began := time.Now()
	l.install("")
	l.installed(l.inWork)
	l.Logf("from the version's removal to the newest release Installed: %s", time.Since(began).Round(100*time.Millisecond))
	l.acts()
	stop()
}

// leavesAndReturns is the way out that keeps caches. While OLM v1 runs there is
// none: it recreates what the deletion of the ClusterExtension alone releases.
func (l *lifecycle) leavesAndReturns() {
	stop := l.Probes(cache, shards)
	_, err := cluster.Local(l.Ctx, "olmv1", "down")
	l.Must(err)
	e := clusterExtension()
	l.Must(k.Delete(l.Ctx, e, client.PropagationPolicy(metav1.DeletePropagationOrphan)))
	l.Eventually("what is installed let go", func(ctx context.Context) error {
		if err := k.Get(ctx, client.ObjectKeyFromObject(e), e); err != nil {
			return err
		}
		if slices.Contains(e.GetFinalizers(), metav1.FinalizerOrphanDependents) {
			return errors.New("the garbage collector is at it")
		}
		return nil
	})
	before := e.DeepCopy()
	e.SetFinalizers(nil) // they are OLM's, for what it keeps in memory and on its disk
	l.Must(k.Patch(l.Ctx, e, client.MergeFrom(before), owner))
	for _, d := range definitions() {
		l.Must(k.Get(l.Ctx, client.ObjectKeyFromObject(d), d))
		if owners := d.GetOwnerReferences(); len(owners) > 0 {
			l.Errorf("%s goes with %v", d.GetName(), owners)
		}
	}
	l.acts()
	_, err = cluster.Local(l.Ctx, "olmv1", "up")
	l.Must(err)
	l.install("")
	l.installed(l.inWork)
	l.acts()
	stop()
}

func (l *lifecycle) uninstalls() {
	l.HadItsRights(installer, l.began)
	began := time.Now()
	l.Must(l.end(l.Ctx, clusterExtension()))
	for _, o := range append(definitions(), named("apps/v1", "Deployment", cluster.OperatorNamespace, cluster.OperatorDeployment)) {
		l.Must(k.Gone(l.Ctx, o))
	}
	l.Eventually("the end of the cache", func(ctx context.Context) error {
		var pods corev1.PodList
		if err := k.List(ctx, &pods, client.InNamespace(l.whole.Namespace)); err != nil {
			return err
		}
		if len(pods.Items) > 0 {
			return fmt.Errorf("%d pods of it are there", len(pods.Items))
		}
		return nil
	})
	l.Logf("from the ClusterExtension's deletion to the end of all: %s", time.Since(began).Round(100*time.Millisecond))
}

// install applies the samples with the test's catalog, and with a version to stay at unless it is empty.
func (l *lifecycle) install(version string) {
	l.Helper()
	objects, err := cluster.Render(l.Ctx, samples)
	l.Must(err)
	for _, o := range objects {
		switch o.GetKind() {
		case "ClusterCatalog":
			l.Must(unstructured.SetNestedField(o.Object, catalog, "spec", "source", "image", "ref"))
		case "ClusterExtension":
			if version != "" {
				l.Must(unstructured.SetNestedField(o.Object, version, "spec", "source", "catalog", "version"))
			}
		}
		l.Must(k.Apply(l.Ctx, client.ApplyConfigurationFromUnstructured(o), owner, client.ForceOwnership))
	}
}

// installed waits until OLM v1 has installed a release and watches what it
// installed, and until the operator of no other one is left.
func (l *lifecycle) installed(r olm.Release) {
	l.Helper()
	l.Eventually("release "+r.Version+" installed", func(ctx context.Context) error {
		var e struct {
			Metadata metav1.ObjectMeta
			Status   struct {
				Conditions []metav1.Condition
				Install    struct{ Bundle struct{ Version string } }
			}
		}
		found := clusterExtension()
		if err := k.Get(ctx, client.ObjectKeyFromObject(found), found); err != nil {
			return err
		}
		content, err := found.MarshalJSON()
		if err != nil {
			return err
		}
		if err := json.Unmarshal(content, &e); err != nil {
			return err
		}
		if v := e.Status.Install.Bundle.Version; v != r.Version {
			return fmt.Errorf("%q is installed", v)
		}
		for _, name := range []string{"Installed", "Progressing"} {
			c := meta.FindStatusCondition(e.Status.Conditions, name)
			if c == nil || c.ObservedGeneration != e.Metadata.Generation || c.Status != metav1.ConditionTrue || c.Reason != "Succeeded" {
				return fmt.Errorf("%s is %+v", name, c)
			}
		}
		return nil
	})
	l.Must(k.OperatorReady(l.Ctx))
	l.acted = time.Now()
	image, err := k.OperatorImage(l.Ctx)
	l.Must(err)
	if image != r.Operator {
		l.Errorf("image %s of the operator runs, not %s", image, r.Operator)
	}
}

// acts ends the test unless the operator that runs now does its work, and the
// cache's first shards are as they were and hold every item.
func (l *lifecycle) acts() {
	l.Helper()
	m, err := k.Memcached(l.Ctx, l.Key(cache))
	l.Must(err)
	l.scale(2*shards - *m.Spec.Size + 1) // between shards and one more
	l.Keeps(l.kept)
	l.HadItsRights(cluster.OperatorAccount, l.acted) // an operator that is replaced or removed may lose its rights before it ends
}

// scale sets the number of shards and waits until they serve.
func (l *lifecycle) scale(size int32) {
	l.Helper()
	l.Serve(cache, v1beta1.MemcachedSpec{Size: &size})
}

// remove removes all that the test may have left.
func (l *lifecycle) remove(ctx context.Context) error {
	if _, err := cluster.Local(ctx, "olmv1", "up"); err != nil {
		return err
	}
	objects, err := cluster.Render(ctx, samples)
	if err != nil {
		return err
	}
	for _, o := range slices.Backward(objects) { // what has OLM install goes before its rights
		if err := l.end(ctx, o); err != nil {
			return err
		}
	}
	// what the deletion of a ClusterExtension alone did not delete
	made := client.MatchingLabels{"olm.operatorframework.io/owner-name": olm.Package}
	return errors.Join(
		k.DeleteAllOf(ctx, &rbacv1.ClusterRoleBinding{}, made),
		k.DeleteAllOf(ctx, &rbacv1.ClusterRole{}, made),
		k.DeleteAllOf(ctx, &corev1.Secret{}, client.InNamespace(olmNamespace), client.MatchingLabels{"name": olm.Package}),
	)
}

// end deletes an object and waits until it no longer exists.
func (l *lifecycle) end(ctx context.Context, o client.Object) error {
	what := fmt.Sprintf("the end of %s %s", o.GetObjectKind().GroupVersionKind().Kind, o.GetName())
	return cluster.Eventually(ctx, what, func(ctx context.Context) error {
		err := k.Delete(ctx, o)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(errors.New("it is there"), err)
	})
}

// describe describes the state.
func (l *lifecycle) describe(ctx context.Context) string {
	var b strings.Builder
	for _, o := range []*unstructured.Unstructured{clusterExtension(), named("olm.operatorframework.io/v1", "ClusterCatalog", "", olm.Package)} {
		err := k.Get(ctx, client.ObjectKeyFromObject(o), o)
		status, _ := yaml.Marshal(o.Object["status"])
		fmt.Fprintf(&b, "== %s (%v)\n%s", o.GetKind(), err, status)
	}
	return b.String() + k.Describe(ctx, l.whole.Namespace)
}

func clusterExtension() *unstructured.Unstructured {
	return named("olm.operatorframework.io/v1", "ClusterExtension", "", olm.Package)
}

// definitions are those of the kinds.
func definitions() []*unstructured.Unstructured {
	var all []*unstructured.Unstructured
	for _, kind := range []string{"memcacheds", "memcachedbackups", "memcachedscheduledbackups", "memcachedrestores"} {
		all = append(all, named("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", kind+"."+v1beta1.GroupVersion.Group))
	}
	return all
}

func named(version, kind, namespace, name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": version, "kind": kind, "metadata": map[string]any{"namespace": namespace, "name": name},
	}}
}
