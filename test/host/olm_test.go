package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
	"github.com/memcached-operator/memcached-operator/test/internal/olm"
	"github.com/memcached-operator/memcached-operator/test/internal/suite"
)

const (
	catalogBefore = "ghcr.io/memcached-operator/memcached-operator-catalog:test-before"
	catalogNow    = "ghcr.io/memcached-operator/memcached-operator-catalog:test-now"
)

// lifecycle is the operator's life with OLM, one part after the other, while a cache is served whose pods nothing may touch.
type lifecycle struct {
	*suite.Space // of the part that runs
	*releases
	whole *suite.Space
	cache *suite.Kept
	// since is when the operator that is installed was.
	since *time.Time
}

func TestOLMInstallsUpgradesAndRemovesTheOperatorWhileTheCacheServes(t *testing.T) {
	s := newSpace(t)
	l := s.lifecycle()
	for _, part := range []struct {
		name string
		run  func(*lifecycle)
	}{
		{"an OperatorGroup of one namespace is rejected with a message", (*lifecycle).refusesOneNamespace},
		{"OLM installs the release before once the OperatorGroup is of all namespaces", (*lifecycle).installs},
		{"a cache is filled", (*lifecycle).fills},
		{"an upgrade waits while a Memcached is being changed", (*lifecycle).holdsBack},
		{"the upgrade goes on once the Memcached is up to date, and the cache is untouched", (*lifecycle).upgrades},
		{"the operator is removed and the cache keeps serving", (*lifecycle).uninstalls},
		{"the release before is installed by hand and takes the cache over", (*lifecycle).rollsBack},
		{"the newest release follows when the user approves", (*lifecycle).approves},
	} {
		ok := t.Run(part.name, func(t *testing.T) {
			now := *l
			now.Space = l.whole.In(t)
			part.run(&now)
		})
		if !ok {
			t.Log("how things stand with OLM:\n" + l.Describe(context.Background(), l.OLM.Namespace))
			return // what follows builds on it
		}
	}
	l.HadItsRights(cluster.OperatorAccount, *l.since)
	l.startsWithoutWarning()
}

// startsWithoutWarning fails the test if the operator answered a startup probe before its
// caches were filled: each such answer is an event that alerts.
func (l *lifecycle) startsWithoutWarning() {
	l.Helper()
	var events corev1.EventList
	l.Must(k.List(l.Ctx, &events, client.InNamespace(l.OLM.Namespace)))
	for _, e := range events.Items {
		if e.Type == corev1.EventTypeWarning && e.Reason == "Unhealthy" && strings.Contains(e.Message, "statuscode: 500") {
			l.Errorf("%s %s: %s", e.InvolvedObject.Kind, e.InvolvedObject.Name, e.Message)
		}
	}
}

// releases are on the cluster, with catalogs.
type releases struct {
	olm.OLM
	// before is the newest release of those that were cut before the unreleased one.
	before, inWork olm.Release
	// released has the release before, and all the newest one as well.
	released, all *operatorsv1alpha1.CatalogSource
}

var made *releases

// releases puts them on the cluster, with the operator that runs there as the newest. The first test that needs one of them makes
// all, since it takes half a minute until a catalog is served.
func (s *space) releases() *releases {
	s.Helper()
	if made != nil {
		return made
	}
	image, err := k.OperatorImage(s.Ctx)
	s.Must(err)
	_, err = cluster.Local(s.Ctx, "olm", "up")
	s.Must(err)
	scratch, err := os.MkdirTemp("", "releases-")
	s.Must(err)
	atEnd = append(atEnd, func(context.Context) error { return os.RemoveAll(scratch) })
	r := &releases{}
	r.OLM, err = olm.On(k, cluster.OperatorNamespace)
	s.Must(err)
	r.inWork, err = olm.InWork(s.Ctx, scratch, image)
	s.Must(err)
	r.before, err = olm.Before(s.Ctx, scratch, r.inWork)
	s.Must(err)
	s.Logf("%s is built from %s, %s from %s", r.before.CSV(), r.before.Built, r.inWork.CSV(), r.inWork.Built)
	catalog := func(image string, of ...olm.Release) *operatorsv1alpha1.CatalogSource {
		s.Must(olm.LoadCatalog(s.Ctx, scratch, image, of...))
		source, err := r.AddCatalog(s.Ctx, image)
		s.Must(err)
		atEnd = append(atEnd, func(ctx context.Context) error { return k.Delete(ctx, source) })
		return source
	}
	r.released, r.all = catalog(catalogBefore, r.before), catalog(catalogNow, r.before, r.inWork)
	made = r
	return r
}

// lifecycle takes the operator away that the other tests use, until the end of the test.
func (s *space) lifecycle() *lifecycle {
	s.Helper()
	l := &lifecycle{Space: s.Space, releases: s.releases(), whole: s.Space, cache: &suite.Kept{}, since: ptr.To(time.Now())}
	s.ReturnsOperator(l.inWork.Operator, l.Remove)
	s.Must(k.Uninstall(s.Ctx))
	*l.since = time.Now()
	return l
}

func (l *lifecycle) refusesOneNamespace() {
	l.Must(l.Provide(l.Ctx, l.OLM.Namespace))
	l.Must(l.Subscribe(l.Ctx, l.released, l.before, operatorsv1alpha1.ApprovalAutomatic))
	l.Eventually("a ClusterServiceVersion that failed", func(ctx context.Context) error {
		csv, err := l.CSV(ctx, l.before.CSV())
		if err != nil {
			return err
		}
		if csv.Status.Phase != operatorsv1alpha1.CSVPhaseFailed || csv.Status.Reason != operatorsv1alpha1.CSVReasonUnsupportedOperatorGroup {
			return fmt.Errorf("it is %s: %s: %s", csv.Status.Phase, csv.Status.Reason, csv.Status.Message)
		}
		l.Logf("OLM says: %s", csv.Status.Message)
		return nil
	})
}

func (l *lifecycle) installs() {
	began := time.Now()
	l.Must(l.Provide(l.Ctx)) // with an OperatorGroup of all namespaces
	l.Must(l.Succeeded(l.Ctx, l.before))
	l.Logf("from the OperatorGroup of all namespaces to Succeeded: %s", time.Since(began).Round(100*time.Millisecond))
	tookOver(l.Space, l.before.Operator)
}

func (l *lifecycle) fills() {
	l.Serve("cache", suite.Small(3))
	*l.cache = l.Filled("cache", 3, 10_000)
}

// holdsBack has a Memcached whose change cannot end, as one of its shards may not be removed.
func (l *lifecycle) holdsBack() {
	l.Serve("other", suite.Small(2))
	l.Must(l.hold(l.Ctx, "other-1", true))
	l.whole.Finally(func(ctx context.Context) error { // the namespace could not end otherwise
		return client.IgnoreNotFound(l.hold(ctx, "other-1", false))
	})
	l.Apply("other", suite.Small(1))
	l.Eventually("Upgradeable False", func(ctx context.Context) error {
		c, err := l.Upgradeable(ctx, l.before)
		if err != nil {
			return err
		}
		if c.Status != metav1.ConditionFalse || !strings.Contains(c.Message, l.Space.Namespace+"/other") {
			return fmt.Errorf("it is %s: %s", c.Status, c.Message)
		}
		return nil
	})
	began := time.Now()
	l.Must(l.UseCatalog(l.Ctx, l.all))
	l.Eventually("OLM delays the newest release for the operator", func(ctx context.Context) error {
		csv, err := l.CSV(ctx, l.inWork.CSV())
		if err != nil {
			return err
		}
		if csv.Status.Phase != operatorsv1alpha1.CSVPhasePending || csv.Status.Reason != operatorsv1alpha1.CSVReasonOperatorConditionNotUpgradeable {
			return fmt.Errorf("%s is %s: %s: %s", csv.Name, csv.Status.Phase, csv.Status.Reason, csv.Status.Message)
		}
		return nil
	})
	l.Logf("from the catalog's change to the newest release, delayed: %s", time.Since(began).Round(100*time.Millisecond))
}

// hold keeps a ReplicaSet from being removed, or lets it go.
func (l *lifecycle) hold(ctx context.Context, name string, held bool) error {
	set := &appsv1.ReplicaSet{}
	if err := k.Get(ctx, l.Key(name), set); err != nil {
		return err
	}
	before := set.DeepCopy()
	const finalizer = "memcached-operator.io/test"
	if held {
		controllerutil.AddFinalizer(set, finalizer)
	} else {
		controllerutil.RemoveFinalizer(set, finalizer)
	}
	return k.Patch(ctx, set, client.MergeFrom(before), suite.Owner)
}

func (l *lifecycle) upgrades() {
	stop := l.Probes("cache", 3)
	began := time.Now()
	l.Must(l.hold(l.Ctx, "other-1", false))
	l.Must(l.Succeeded(l.Ctx, l.inWork))
	l.Logf("from the end of the change to the newest release Succeeded: %s", time.Since(began).Round(100*time.Millisecond))
	tookOver(l.Space, l.inWork.Operator)
	l.acts()
	stop()
}

// acts ends the test unless the operator that runs now does its work and did not change the cache.
func (l *lifecycle) acts() {
	l.Helper()
	m, err := k.Memcached(l.Ctx, l.Key("other"))
	l.Must(err)
	size := *m.Spec.Size%2 + 1 // 1, 2, 1 …
	l.Serve("other", suite.Small(size))
	l.Eventually("Upgradeable True", func(ctx context.Context) error {
		for _, r := range []olm.Release{l.before, l.inWork} {
			if c, err := l.Upgradeable(ctx, r); err == nil && c.Status == metav1.ConditionTrue {
				return nil
			}
		}
		return errors.New("no operator says so")
	})
	l.Available("cache")
	l.Keeps(*l.cache)
}

func (l *lifecycle) uninstalls() {
	l.HadItsRights(cluster.OperatorAccount, *l.since)
	stop := l.Probes("cache", 3)
	l.Must(l.Uninstall(l.Ctx))
	stop()
	*l.since = time.Now() // OLM took its rights away while it still said goodbye
	l.Keeps(*l.cache)
}

func (l *lifecycle) rollsBack() {
	l.Must(l.Subscribe(l.Ctx, l.all, l.before, operatorsv1alpha1.ApprovalManual))
	l.Must(l.Approve(l.Ctx, l.before))
	l.Must(l.Succeeded(l.Ctx, l.before))
	tookOver(l.Space, l.before.Operator)
	l.acts()
}

func (l *lifecycle) approves() {
	l.Must(l.Approve(l.Ctx, l.inWork))
	l.Must(l.Succeeded(l.Ctx, l.inWork))
	tookOver(l.Space, l.inWork.Operator)
	l.acts()
	if image, err := k.OperatorImage(l.Ctx); err != nil || image != l.inWork.Operator {
		l.Errorf("image %s of the operator runs, not %s: %v", image, l.inWork.Operator, err)
	}
}
