package host

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

func (s *space) helm(image string) *helm {
	s.Helper()
	root, err := cluster.Root()
	s.Must(err)
	chart, err := loader.Load(filepath.Join(root, "charts/memcached-operator"))
	s.Must(err)
	i := strings.LastIndex(image, ":")
	h := &helm{action.NewConfiguration(), chart.(*chartv2.Chart), map[string]any{
		"image":    map[string]any{"repository": image[:i], "tag": image[i+1:]},
		"settings": map[string]any{"RELATED_IMAGE_MEMCACHED": "docker.io/library/memcached:" + defaultVersion},
	}}
	settings := cli.New()
	settings.SetNamespace(cluster.OperatorNamespace)
	s.Must(h.Init(settings.RESTClientGetter(), cluster.OperatorNamespace, "secret"))
	return h
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

func (h *helm) uninstall() error {
	u := action.NewUninstall(h.Configuration)
	u.IgnoreNotFound, u.WaitStrategy, u.Timeout = true, kube.StatusWatcherStrategy, helmTimeout
	_, err := u.Run(helmRelease)
	return err
}

// crds changes the text of the chart's CRDs.
func (h *helm) crds(from, to string) {
	for _, f := range h.chart.Templates {
		f.Data = bytes.ReplaceAll(f.Data, []byte(from), []byte(to))
	}
}

// The chart has no release before this one. OLM's test upgrades from the operator of the last release.
func TestHelmAdoptsUpgradesAndRemovesTheOperatorWhileTheCacheServes(t *testing.T) {
	s := newSpace(t)
	image, err := k.OperatorImage(s.Ctx)
	s.Must(err)
	h := s.helm(image)
	s.ReturnsOperator(image, func(context.Context) error { return h.uninstall() })

	s.Must(errors.Join(h.uninstall(), k.Install(s.Ctx, image))) // of a run that was interrupted
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

	s.Must(h.uninstall())
	if image, err := k.OperatorImage(s.Ctx); image != "" || err != nil {
		t.Errorf("Helm has removed the operator, and %q runs: %v", image, err)
	}
	s.Keeps(kept)

	s.Must(k.Install(s.Ctx, image))
	_, err = h.install(s.Ctx, 4)
	s.Must(err)
	const policy, upgraded = "helm.sh/resource-policy: keep\n", "    test: upgraded\n"
	h.crds(policy, policy+upgraded)
	h.values["replicas"] = 2
	if err := h.upgrade(s.Ctx, false); err == nil || !strings.Contains(err.Error(), "conflict") {
		t.Errorf("without --force-conflicts, Helm says of the fields that kubectl owns: %v", err)
	}
	s.Must(h.upgrade(s.Ctx, true))
	d := &appsv1.Deployment{}
	s.Must(k.Get(s.Ctx, client.ObjectKey{Namespace: cluster.OperatorNamespace, Name: cluster.OperatorDeployment}, d))
	crd := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"}}
	s.Must(k.Get(s.Ctx, client.ObjectKey{Name: "memcacheds." + v1beta1.GroupVersion.Group}, crd))
	if d.Status.AvailableReplicas != 2 || crd.Annotations["test"] != "upgraded" {
		t.Errorf("after the upgrade, the operator has %d replicas, and the CRD the annotations %v", d.Status.AvailableReplicas, crd.Annotations)
	}
	s.Keeps(kept)

	// In a new namespace, with rights in this and in that of the cache only.
	s.Must(h.uninstall())
	s.Must(k.Uninstall(s.Ctx))
	since := time.Now()
	h.values["watchNamespaces"] = []any{cluster.OperatorNamespace, s.Namespace}
	_, err = h.install(s.Ctx, 0)
	s.Must(err)
	h.crds(policy+upgraded, policy)
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
