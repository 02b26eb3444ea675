package olmv1

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
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
	"github.com/memcached-operator/memcached-operator/test/internal/items"
	"github.com/memcached-operator/memcached-operator/test/internal/olm"
	"github.com/memcached-operator/memcached-operator/test/internal/probe"
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
	shards   = 2
	perShard = 10_000
)

// lifecycle is the operator's life with OLM v1, one part after the other, while a
// cache is served whose pods nothing may touch.
type lifecycle struct {
	*testing.T // of the part that runs
	ctx        context.Context
	*cluster.Cluster
	whole *testing.T
	// before is the newest release of those that were cut before the unreleased one.
	before, inWork olm.Release
	// began is when OLM v1 began, and acted when the operator that runs was alone.
	began, acted time.Time
	cache        cache
}

// cache is the Memcached, and what it is to keep.
type cache struct {
	key   client.ObjectKey
	lives map[string]cluster.Life
	sets  []*items.Set
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
			l.T, l.ctx = t, t.Context()
			part.run(l)
		})
		if !ok {
			t.Log("how things stand:\n" + l.describe(context.Background()))
			return // what follows builds on it
		}
	}
}

// newLifecycle puts two releases and their catalog on the cluster, and takes the
// operator away that the other tests use, and its kind. When the test ends, one is
// there again.
func newLifecycle(t *testing.T) *lifecycle {
	t.Helper()
	k, err := cluster.Connect()
	if err != nil {
		t.Fatal(err)
	}
	image := os.Getenv("IMG")
	if image == "" {
		t.Fatal("IMG names no image of the operator: run this through make test-olmv1")
	}
	l := &lifecycle{T: t, ctx: t.Context(), Cluster: k, whole: t}
	l.must(l.nothingGoes())
	l.must(l.noCacheIsLost())
	_, err = cluster.Local(l.ctx, "olmv1", "up")
	l.must(err)
	scratch := t.TempDir()
	l.inWork, err = olm.InWork(l.ctx, scratch, image)
	l.must(err)
	l.before, err = olm.Before(l.ctx, scratch, l.inWork)
	l.must(err)
	t.Logf("from %s, built from %s, to %s, built from %s", l.before.Version, l.before.Built, l.inWork.Version, l.inWork.Built)
	l.must(olm.LoadCatalog(l.ctx, scratch, catalog, l.before, l.inWork))

	t.Cleanup(func() { // whatever happened: the other tests need it
		ctx := context.Background()
		if err := errors.Join(l.remove(ctx), k.Install(ctx, image), k.UseNewest(ctx)); err != nil {
			t.Error(err)
		}
	})
	l.must(l.remove(l.ctx)) // of a run that was interrupted
	l.must(k.Uninstall(l.ctx))
	// OLM v1 does not change a CRD of another owner, and installs nothing.
	for _, d := range definitions() {
		l.must(l.end(l.ctx, d))
	}
	return l
}

// nothingGoes waits until no namespace is being deleted: those of tests that have just
// finished need the operator for it.
func (l *lifecycle) nothingGoes() error {
	return cluster.Eventually(l.ctx, "the end of namespaces that are being deleted", func(ctx context.Context) error {
		var all corev1.NamespaceList
		if err := l.List(ctx, &all); err != nil {
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
		if err := l.List(l.ctx, all); err != nil && !meta.IsNoMatchError(err) {
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
	l.apply(l.before.Version)
	l.installed(l.before)
	l.Logf("from ClusterCatalog and ClusterExtension to Installed: %s", time.Since(began).Round(100*time.Millisecond))
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User:               "system:serviceaccount:" + cluster.OperatorNamespace + ":" + installer,
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "*", Group: "*", Resource: "*"},
	}}
	l.must(l.Create(l.ctx, review))
	if review.Status.Allowed {
		l.Errorf("the installer may do everything: %s", review.Status.Reason)
	}
}

func (l *lifecycle) fills() {
	namespace, err := l.CreateNamespace(l.ctx, "olmv1-")
	l.must(err)
	l.whole.Cleanup(func() {
		if err := l.Delete(context.Background(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
			l.whole.Error(err)
		}
	})
	l.cache.key = client.ObjectKey{Namespace: namespace, Name: "cache"}
	l.scale(shards)
	for ordinal, address := range l.addresses() {
		set := items.New(cluster.ShardName(l.cache.key.Name, ordinal), perShard, address)
		l.whole.Cleanup(func() { _ = set.Close() })
		l.must(set.Write())
		l.cache.sets = append(l.cache.sets, set)
	}
	l.cache.lives = l.lives()
	l.hasAllPermissions(cluster.OperatorAccount, l.acted)
}

func (l *lifecycle) upgrades() {
	stop := l.probes()
	began := time.Now()
	l.apply("")
	l.installed(l.inWork)
	l.Logf("from the version's removal to the newest release Installed: %s", time.Since(began).Round(100*time.Millisecond))
	l.acts()
	stop()
}

// leavesAndReturns is the way out that keeps caches. While OLM v1 runs there is
// none: it recreates what the deletion of the ClusterExtension alone releases.
func (l *lifecycle) leavesAndReturns() {
	stop := l.probes()
	_, err := cluster.Local(l.ctx, "olmv1", "down")
	l.must(err)
	e := clusterExtension()
	l.must(l.Delete(l.ctx, e, client.PropagationPolicy(metav1.DeletePropagationOrphan)))
	l.eventually("what is installed let go", func(ctx context.Context) error {
		if err := l.Get(ctx, client.ObjectKeyFromObject(e), e); err != nil {
			return err
		}
		if slices.Contains(e.GetFinalizers(), metav1.FinalizerOrphanDependents) {
			return errors.New("the garbage collector is at it")
		}
		return nil
	})
	before := e.DeepCopy()
	e.SetFinalizers(nil) // they are OLM's, for what it keeps in memory and on its disk
	l.must(l.Patch(l.ctx, e, client.MergeFrom(before), owner))
	for _, d := range definitions() {
		l.must(l.Get(l.ctx, client.ObjectKeyFromObject(d), d))
		if owners := d.GetOwnerReferences(); len(owners) > 0 {
			l.Errorf("%s goes with %v", d.GetName(), owners)
		}
	}
	l.acts()
	_, err = cluster.Local(l.ctx, "olmv1", "up")
	l.must(err)
	l.apply("")
	l.installed(l.inWork)
	l.acts()
	stop()
}

func (l *lifecycle) uninstalls() {
	l.hasAllPermissions(installer, l.began)
	began := time.Now()
	l.must(l.end(l.ctx, clusterExtension()))
	for _, o := range append(definitions(), named("apps/v1", "Deployment", cluster.OperatorNamespace, cluster.OperatorDeployment)) {
		l.must(l.Gone(l.ctx, o))
	}
	l.eventually("the end of the cache", func(ctx context.Context) error {
		var pods corev1.PodList
		if err := l.List(ctx, &pods, client.InNamespace(l.cache.key.Namespace)); err != nil {
			return err
		}
		if len(pods.Items) > 0 {
			return fmt.Errorf("%d pods of it are there", len(pods.Items))
		}
		return nil
	})
	l.Logf("from the ClusterExtension's deletion to the end of all: %s", time.Since(began).Round(100*time.Millisecond))
}

// apply applies the samples with the test's catalog, and with a version to stay at
// unless it is empty.
func (l *lifecycle) apply(version string) {
	l.Helper()
	objects, err := cluster.Render(l.ctx, samples)
	l.must(err)
	for _, o := range objects {
		switch o.GetKind() {
		case "ClusterCatalog":
			l.must(unstructured.SetNestedField(o.Object, catalog, "spec", "source", "image", "ref"))
		case "ClusterExtension":
			if version != "" {
				l.must(unstructured.SetNestedField(o.Object, version, "spec", "source", "catalog", "version"))
			}
		}
		l.must(l.Apply(l.ctx, client.ApplyConfigurationFromUnstructured(o), owner, client.ForceOwnership))
	}
}

// installed waits until OLM v1 has installed a release and watches what it
// installed, and until the operator of no other one is left.
func (l *lifecycle) installed(r olm.Release) {
	l.Helper()
	l.eventually("release "+r.Version+" installed", func(ctx context.Context) error {
		var e struct {
			Metadata metav1.ObjectMeta
			Status   struct {
				Conditions []metav1.Condition
				Install    struct{ Bundle struct{ Version string } }
			}
		}
		found := clusterExtension()
		if err := l.Get(ctx, client.ObjectKeyFromObject(found), found); err != nil {
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
	l.must(l.OperatorReady(l.ctx))
	l.acted = time.Now()
	image, err := l.OperatorImage(l.ctx)
	l.must(err)
	if image != r.Operator {
		l.Errorf("image %s of the operator runs, not %s", image, r.Operator)
	}
}

// acts ends the test unless the operator that runs now does its work, and the
// cache's first shards are as they were and hold every item.
func (l *lifecycle) acts() {
	l.Helper()
	m, err := l.Memcached(l.ctx, l.cache.key)
	l.must(err)
	l.scale(2*shards - *m.Spec.Size + 1) // between shards and one more
	now := l.lives()
	delete(now, cluster.ShardName(l.cache.key.Name, shards))
	if !maps.Equal(now, l.cache.lives) {
		l.Fatalf("pods should be unchanged: they were %v and are %v", l.cache.lives, now)
	}
	for _, set := range l.cache.sets {
		_, err := set.Keep(1)
		l.must(err)
	}
	l.hasAllPermissions(cluster.OperatorAccount, l.acted)
}

// hasAllPermissions fails the test when a ServiceAccount requested something
// since a time to which it has no right. An operator that is replaced or removed
// may lose its rights before it ends.
func (l *lifecycle) hasAllPermissions(account string, since time.Time) {
	l.Helper()
	refused, err := cluster.Refusals(l.ctx, account, since)
	l.must(err)
	for _, r := range refused {
		l.Errorf("%s lacks a right: %s", account, r)
	}
}

// scale sets the number of shards and waits until they serve.
func (l *lifecycle) scale(size int32) {
	l.Helper()
	l.must(l.ApplyMemcached(l.ctx, l.cache.key, v1beta1.MemcachedSpec{Size: &size}, owner))
	_, err := l.Await(l.ctx, l.cache.key, "available and up to date", cluster.Available)
	l.must(err)
}

// lives returns what changes when a pod of the cache or its container is another one, by shard.
func (l *lifecycle) lives() map[string]cluster.Life {
	l.Helper()
	pods, err := l.Pods(l.ctx, l.cache.key)
	l.must(err)
	return cluster.LivesOf(pods)
}

// addresses returns the addresses of the cache's shards, once they answer.
func (l *lifecycle) addresses() []string {
	l.Helper()
	addresses, err := l.AnsweringAddresses(l.ctx, l.cache.key, shards)
	l.must(err)
	return addresses
}

// probes opens connections to the cache until it is stopped, which is an error of
// the test when one was not answered.
func (l *lifecycle) probes() (stop func()) {
	l.Helper()
	var running []*probe.Probe
	for _, a := range l.addresses() {
		p := probe.Start(a)
		l.Cleanup(func() { p.Stop() })
		running = append(running, p)
	}
	return func() {
		l.Helper()
		for _, p := range running {
			report := p.Stop()
			l.Log(report)
			if len(report.Failures) > 0 || report.Connections == 0 {
				l.Error("connections failed")
			}
		}
	}
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
		l.DeleteAllOf(ctx, &rbacv1.ClusterRoleBinding{}, made),
		l.DeleteAllOf(ctx, &rbacv1.ClusterRole{}, made),
		l.DeleteAllOf(ctx, &corev1.Secret{}, client.InNamespace(olmNamespace), client.MatchingLabels{"name": olm.Package}),
	)
}

// end deletes an object and waits until it no longer exists.
func (l *lifecycle) end(ctx context.Context, o client.Object) error {
	what := fmt.Sprintf("the end of %s %s", o.GetObjectKind().GroupVersionKind().Kind, o.GetName())
	return cluster.Eventually(ctx, what, func(ctx context.Context) error {
		err := l.Delete(ctx, o)
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
		err := l.Get(ctx, client.ObjectKeyFromObject(o), o)
		status, _ := yaml.Marshal(o.Object["status"])
		fmt.Fprintf(&b, "== %s (%v)\n%s", o.GetKind(), err, status)
	}
	return b.String() + l.Describe(ctx, l.cache.key.Namespace)
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
	o := &unstructured.Unstructured{}
	o.SetAPIVersion(version)
	o.SetKind(kind)
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}

func (l *lifecycle) eventually(what string, check func(context.Context) error) {
	l.Helper()
	l.must(cluster.Eventually(l.ctx, what, check))
}

// must ends the test unless there is no error.
func (l *lifecycle) must(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}
