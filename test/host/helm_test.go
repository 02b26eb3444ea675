package host

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/loader"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/cli"
	"helm.sh/helm/v4/pkg/kube"
	release "helm.sh/helm/v4/pkg/release/v1"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
	"github.com/memcached-operator/memcached-operator/test/internal/suite"
)

const (
	helmRelease = "memcached-operator"
	helmTimeout = 5 * time.Minute
)

// helm is a release of the chart, with what the tests' operator has.
type helm struct {
	*action.Configuration
	chart  *chartv2.Chart
	values map[string]any
}

func (s *space) helm() *helm {
	s.Helper()
	h := &helm{Configuration: action.NewConfiguration(), values: map[string]any{
		"settings": map[string]any{"RELATED_IMAGE_MEMCACHED": "docker.io/library/memcached:" + defaultVersion},
	}}
	settings := cli.New()
	settings.SetNamespace(cluster.OperatorNamespace)
	s.Must(h.Init(settings.RESTClientGetter(), cluster.OperatorNamespace, "secret"))
	return h
}

// from takes the chart of sources, and an image of their operator.
func (h *helm) from(sources, image string) error {
	chart, err := loader.Load(filepath.Join(sources, "charts/memcached-operator"))
	if err != nil {
		return err
	}
	i := strings.LastIndex(image, ":")
	h.chart, h.values["image"] = chart.(*chartv2.Chart), map[string]any{"repository": image[:i], "tag": image[i+1:]}
	return nil
}

// install does what "helm install --create-namespace --wait" does, and returns the notes. It adopts what exists as Helm 3 or
// Helm 4 does, or not with 0.
func (h *helm) install(ctx context.Context, adopts int) (string, error) {
	i := action.NewInstall(h.Configuration)
	i.ReleaseName, i.Namespace, i.CreateNamespace = helmRelease, cluster.OperatorNamespace, true
	i.TakeOwnership, i.ServerSideApply, i.ForceConflicts = adopts > 0, adopts != 3, adopts == 4
	i.WaitStrategy, i.Timeout = kube.StatusWatcherStrategy, helmTimeout
	r, err := i.RunWithContext(ctx, h.chart, h.values)
	if err != nil {
		return "", err
	}
	return r.(*release.Release).Info.Notes, nil
}

func (h *helm) upgrade(ctx context.Context, force bool) error {
	u := action.NewUpgrade(h.Configuration)
	u.Namespace, u.ForceConflicts = cluster.OperatorNamespace, force
	u.WaitStrategy, u.Timeout = kube.StatusWatcherStrategy, helmTimeout
	_, err := u.RunWithContext(ctx, helmRelease, h.chart, h.values)
	return err
}

// rollback returns to what was installed first.
func (h *helm) rollback() error {
	r := action.NewRollback(h.Configuration)
	r.Version, r.ServerSideApply, r.ForceConflicts, r.WaitStrategy, r.Timeout = 1, "true", true, kube.StatusWatcherStrategy, helmTimeout
	return r.Run(helmRelease)
}

func (h *helm) uninstall(ctx context.Context) error {
	u := action.NewUninstall(h.Configuration)
	u.IgnoreNotFound, u.WaitStrategy, u.Timeout = true, kube.StatusWatcherStrategy, helmTimeout
	if was, err := u.Run(helmRelease); err != nil || was == nil {
		return err
	}
	return k.OperatorGone(ctx)
}

// From the release before, which is built from its sources, and back.
func TestManifestAndChartUpgradeReturnAdoptAndRemoveTheOperatorWhileTheCacheServes(t *testing.T) {
	s := newSpace(t)
	root, err := cluster.Root()
	s.Must(err)
	made := s.releases()
	image, before := made.inWork.Operator, made.before
	h := s.helm()
	s.ReturnsOperator(image, h.uninstall)
	s.Must(h.from(before.Source, before.Operator))

	s.Must(errors.Join(h.uninstall(s.Ctx), k.InstallFrom(s.Ctx, before.Source, before.Operator))) // the former of a run that was interrupted
	tookOver(s.Space, before.Operator)
	if _, err := h.install(s.Ctx, 0); err == nil || !strings.Contains(err.Error(), "invalid ownership metadata") {
		t.Fatalf("without --take-ownership, Helm says of what kubectl applied: %v", err)
	}
	notes, err := h.install(s.Ctx, 3)
	s.Must(err)
	_, manifest, _ := strings.Cut(notes, "<<'END'\n")
	manifest, _, _ = strings.Cut(manifest, "END\n")
	var m v1beta1.Memcached
	s.Must(yaml.UnmarshalStrict([]byte(manifest), &m))
	s.Serve("cache", m.Spec)
	kept, stop := s.Filled("cache", int(*m.Spec.Size), 1000), s.Probes("cache", int(*m.Spec.Size))

	s.Must(h.uninstall(s.Ctx))
	if image, err := k.OperatorImage(s.Ctx); image != "" || err != nil {
		t.Errorf("Helm has removed the operator, and %q runs: %v", image, err)
	}
	s.Keeps(kept)

	s.Must(k.InstallFrom(s.Ctx, before.Source, before.Operator))
	s.Must(k.Install(s.Ctx, image))
	tookOver(s.Space, image)
	s.Available("cache")
	s.Keeps(kept)
	s.Must(k.InstallFrom(s.Ctx, before.Source, before.Operator))
	tookOver(s.Space, before.Operator)
	_, err = h.install(s.Ctx, 4)
	s.Must(err)
	s.Available("cache")
	s.Keeps(kept)

	s.Must(h.from(root, image))
	h.values["replicas"] = 2
	if err := h.upgrade(s.Ctx, false); err == nil || !strings.Contains(err.Error(), "conflict") {
		t.Errorf("without --force-conflicts, Helm says of the fields that kubectl owns: %v", err)
	}
	runs := func(sources, image string, replicas int32) {
		t.Helper()
		d := &appsv1.Deployment{}
		s.Must(k.Get(s.Ctx, client.ObjectKey{Namespace: cluster.OperatorNamespace, Name: cluster.OperatorDeployment}, d))
		text, err := os.ReadFile(filepath.Join(sources, "config/crd/bases/cache.memcached-operator.io_memcacheds.yaml"))
		s.Must(err)
		crds, err := cluster.Objects(bytes.NewReader(text))
		s.Must(err)
		crd := crds[0].DeepCopy()
		s.Must(k.Get(s.Ctx, client.ObjectKeyFromObject(crd), crd))
		schema := func(crd *unstructured.Unstructured) any {
			versions, _, err := unstructured.NestedSlice(crd.Object, "spec", "versions")
			s.Must(err)
			return versions[0].(map[string]any)["schema"]
		}
		if got := d.Spec.Template.Spec.Containers[0].Image; got != image || d.Status.AvailableReplicas != replicas || !reflect.DeepEqual(schema(crd), schema(crds[0])) {
			t.Errorf("%d replicas of %s run, want %d of %s, or the CRD isn't theirs", d.Status.AvailableReplicas, got, replicas, image)
		}
		tookOver(s.Space, image)
		s.Available("cache")
		s.Keeps(kept)
	}
	s.Must(h.upgrade(s.Ctx, true))
	runs(root, image, 2)
	s.Must(h.rollback())
	runs(before.Source, before.Operator, 1)
	s.Must(h.upgrade(s.Ctx, true))
	runs(root, image, 2)

	// In a new namespace, with rights in this and in that of the cache only.
	s.Must(h.uninstall(s.Ctx))
	s.Must(k.Uninstall(s.Ctx))
	since := time.Now()
	h.values["watchNamespaces"] = []any{cluster.OperatorNamespace, s.Namespace}
	_, err = h.install(s.Ctx, 0)
	s.Must(err)
	s.Must(h.upgrade(s.Ctx, false))
	s.Serve("other", suite.Small(1))
	s.Available("cache")
	s.Keeps(kept)
	stop()
	if err := k.Get(s.Ctx, client.ObjectKey{Name: helmRelease + "-manager-role"}, &rbacv1.ClusterRole{}); !apierrors.IsNotFound(err) {
		t.Errorf("the operator has a ClusterRole: %v", err)
	}
	s.HadItsRights(cluster.OperatorAccount, since)
}
