package monitoring

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/internal/apiservertest"
)

const operatorNamespace = "memcached-operator-system"

// world is an API server with the operator's permissions, and the controller on it.
type world struct {
	*testing.T
	admin  client.Client
	server *apiservertest.Server
	writes atomic.Int64
	// every is how often the controller asks for the CRDs.
	every time.Duration
}

func newWorld(t *testing.T) *world {
	t.Helper()
	ctrl.SetLogger(logr.Discard())
	w := &world{T: t, server: apiservertest.StartForTest(t), every: 200 * time.Millisecond}
	scheme := runtime.NewScheme()
	w.must(errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme), apiextensionsv1.AddToScheme(scheme)))
	var err error
	w.admin, err = client.New(w.server.Admin, client.Options{Scheme: scheme})
	w.must(err)
	for _, name := range []string{operatorNamespace, "team", "other"} {
		w.must(w.admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}))
	}
	raw, err := os.ReadFile("../../config/rbac/monitoring_role.yaml")
	w.must(err)
	var role rbacv1.Role
	w.must(yaml.UnmarshalStrict(raw, &role))
	role.Namespace = operatorNamespace
	w.must(errors.Join(w.admin.Create(t.Context(), &role), w.admin.Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: "monitoring"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: apiservertest.OperatorUser}},
	})))
	return w
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// start runs the controller with its permissions until the returned function is called.
func (w *world) start(o Options) (stop func()) {
	w.Helper()
	o.OperatorNamespace, o.DashboardNamespace = operatorNamespace, operatorNamespace
	asSelf := rest.CopyConfig(w.server.Operator)
	asSelf.Wrap(func(next http.RoundTripper) http.RoundTripper { return counter{next, &w.writes} })
	scheme := runtime.NewScheme()
	w.must(v1alpha1.AddToScheme(scheme))
	mgr, err := ctrl.NewManager(asSelf, ctrl.Options{Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: new(true)},
		Cache: cache.Options{ReaderFailOnMissingInformer: true}})
	w.must(err)
	w.must(setUp(mgr, o, nil, w.every))
	ctx, cancel := context.WithCancel(w.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- mgr.Start(ctx) }()
	return func() {
		cancel()
		w.must(<-stopped)
	}
}

// counter counts the requests that are not reads.
type counter struct {
	next   http.RoundTripper
	writes *atomic.Int64
}

func (c counter) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method != http.MethodGet && request.Method != http.MethodHead {
		c.writes.Add(1)
	}
	return c.next.RoundTrip(request)
}

// crds are those of prometheus-operator that the operator uses.
func (w *world) crds() envtest.CRDInstallOptions {
	folder := os.Getenv("PROMETHEUS_CRDS")
	if folder == "" {
		w.Fatal(`PROMETHEUS_CRDS is not set, so there are no CRDs of prometheus-operator: run make test, or eval "$(make -s env)" first`)
	}
	var o envtest.CRDInstallOptions
	for _, name := range []string{"podmonitors", "prometheusrules", "servicemonitors"} {
		o.Paths = append(o.Paths, filepath.Join(folder, "monitoring.coreos.com_"+name+".yaml"))
	}
	o.ErrorIfPathMissing = true
	return o
}

func (w *world) install() {
	w.Helper()
	_, err := envtest.InstallCRDs(w.server.Admin, w.crds())
	w.must(err)
}

func (w *world) memcached(namespace, name string, monitoring v1alpha1.Monitoring) *v1alpha1.Memcached {
	w.Helper()
	m := &v1alpha1.Memcached{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: v1alpha1.MemcachedSpec{Monitoring: monitoring}}
	w.must(w.admin.Create(w.Context(), m))
	return m
}

func (w *world) eventually(what string, holds func() bool) {
	w.Helper()
	err := wait.PollUntilContextTimeout(w.Context(), 50*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) { return holds(), nil })
	if err != nil {
		w.Fatalf("%s: %v", what, err)
	}
}

// get returns an object, or nil if there is none.
func (w *world) get(k kind, namespace, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(k.resource.GroupVersion().WithKind(k.name))
	if err := w.admin.Get(w.Context(), types.NamespacedName{Namespace: namespace, Name: name}, u); err != nil {
		return nil
	}
	return u
}

func (w *world) exist(namespace string) bool {
	return w.get(podMonitor, namespace, shardsName) != nil && w.get(prometheusRule, namespace, shardsName) != nil
}

func (w *world) absent(namespace string) bool {
	return w.get(podMonitor, namespace, shardsName) == nil && w.get(prometheusRule, namespace, shardsName) == nil
}

func (w *world) idle() {
	w.Helper()
	var before int64
	w.eventually("no writes for two seconds", func() bool {
		before = w.writes.Load()
		time.Sleep(2 * time.Second) // ten times that of asking for the CRDs, which compares the operator's objects
		return w.writes.Load() == before
	})
}

func TestMonitoringObjectsFollowMemcachedsAndCRDs(t *testing.T) {
	w := newWorld(t)
	stop := w.start(Options{Labels: map[string]string{"release": "prometheus"}, Interval: "15s"})
	cacheA := w.memcached("team", "a", v1alpha1.Monitoring{})
	time.Sleep(2 * debounce)
	if n := w.writes.Load(); n != 0 {
		t.Errorf("%d writes without the CRDs", n)
	}

	w.install()
	w.eventually("the objects of the namespace exist", func() bool { return w.exist("team") })
	w.eventually("those of the operator exist", func() bool {
		return w.get(serviceMonitor, operatorNamespace, operatorName) != nil && w.get(prometheusRule, operatorNamespace, operatorName) != nil &&
			w.get(configMap, operatorNamespace, dashboardPrefix+"memcached") != nil && w.get(configMap, operatorNamespace, dashboardPrefix+"fleet") != nil
	})
	if !w.absent("other") {
		t.Error("a namespace without a Memcached has objects")
	}
	monitor := w.get(podMonitor, "team", shardsName)
	if monitor.GetLabels()["release"] != "prometheus" {
		t.Errorf("the labels are %v", monitor.GetLabels())
	}
	endpoints, _, err := unstructured.NestedSlice(monitor.Object, "spec", "podMetricsEndpoints")
	w.must(err)
	if got := fmt.Sprint(endpoints); len(endpoints) != 1 || !strings.Contains(got, "port:metrics") || !strings.Contains(got, "interval:15s") || strings.Contains(got, "__param_slabs") {
		t.Errorf("the PodMonitor scrapes %s", got)
	}
	if got := fmt.Sprint(monitor.Object["spec"]); !strings.Contains(got, "sampleLimit:5000") || !strings.Contains(got, "labelLimit:32") || !strings.Contains(got, "followRedirects:false") {
		t.Errorf("a pod with the labels of a shard can flood Prometheus, or redirect its requests: %s", got)
	}
	w.idle()

	// Another manager's change of a field that is ours is reverted; a label of its own stays.
	edited := monitor.DeepCopy()
	w.must(unstructured.SetNestedStringMap(edited.Object, map[string]string{"app": "none"}, "spec", "selector", "matchLabels"))
	edited.SetLabels(map[string]string{"release": "prometheus", "theirs": "stays", v1alpha1.LabelManagedBy: v1alpha1.ManagedByValue})
	w.must(w.admin.Update(t.Context(), edited))
	w.eventually("the selector is restored", func() bool {
		labels, _, _ := unstructured.NestedStringMap(w.get(podMonitor, "team", shardsName).Object, "spec", "selector", "matchLabels")
		return labels[v1alpha1.LabelManagedBy] == v1alpha1.ManagedByValue
	})
	if w.get(podMonitor, "team", shardsName).GetLabels()["theirs"] != "stays" {
		t.Error("the label of another manager was deleted")
	}
	w.must(w.admin.Delete(t.Context(), w.get(prometheusRule, "team", shardsName)))
	w.eventually("a deleted PrometheusRule exists again", func() bool { return w.exist("team") })

	// Excluded Memcacheds and those with slab classes are in the relabelings.
	cacheB := w.memcached("team", "b", v1alpha1.Monitoring{Slabs: true})
	cacheC := w.memcached("team", "c", v1alpha1.Monitoring{Enabled: new(false)})
	w.eventually("the relabelings name both", func() bool {
		got := fmt.Sprint(w.get(podMonitor, "team", shardsName).Object["spec"])
		return strings.Contains(got, "action:drop regex:c ") && strings.Contains(got, "regex:b replacement:true") && strings.Contains(got, "__param_slabs")
	})
	w.must(w.admin.Delete(t.Context(), cacheB))
	w.must(w.admin.Delete(t.Context(), cacheA))
	w.eventually("nothing is left if all Memcacheds are excluded", func() bool { return w.absent("team") })
	w.must(w.admin.Patch(t.Context(), cacheC, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"monitoring":{"enabled":true}}}`))))
	w.eventually("the objects exist again", func() bool { return w.exist("team") })

	// The CRDs are lost and found without a restart.
	w.uninstall()
	time.Sleep(time.Second)
	w.install()
	w.eventually("the objects exist again", func() bool { return w.exist("team") && w.get(serviceMonitor, operatorNamespace, operatorName) != nil })
	w.idle()
	w.must(w.admin.Delete(t.Context(), cacheC))
	w.eventually("they are deleted with the last Memcached", func() bool { return w.absent("team") })

	// A write that fails since its CRD was deleted isn't retried, although the controller asks seldom.
	stop()
	w.every = time.Hour
	defer w.start(Options{})()
	w.memcached("team", "d", v1alpha1.Monitoring{})
	w.eventually("the objects of the namespace exist", func() bool { return w.exist("team") })
	w.uninstall()
	w.memcached("other", "e", v1alpha1.Monitoring{})
	time.Sleep(2 * debounce)
	w.idle()
	before := w.writes.Load()
	w.memcached("other", "f", v1alpha1.Monitoring{Slabs: true})
	time.Sleep(2 * debounce)
	if n := w.writes.Load() - before; n != 0 {
		t.Errorf("%d writes of objects whose CRDs were deleted", n)
	}
}

// uninstall deletes the CRDs.
func (w *world) uninstall() {
	w.Helper()
	w.must(envtest.UninstallCRDs(w.server.Admin, w.crds()))
	w.eventually("the CRDs no longer exist", func() bool {
		var crds apiextensionsv1.CustomResourceDefinitionList
		w.must(w.admin.List(w.Context(), &crds))
		return !slices.ContainsFunc(crds.Items, func(crd apiextensionsv1.CustomResourceDefinition) bool {
			return crd.Spec.Group == prometheusGroup.Group
		})
	})
}

func TestMonitoringLeavesObjectsOfOthers(t *testing.T) {
	w := newWorld(t)
	w.install()
	theirs := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"selector": map[string]any{}, "podMetricsEndpoints": []any{}}}}
	theirs.SetGroupVersionKind(prometheusGroup.WithKind("PodMonitor"))
	theirs.SetNamespace("team")
	theirs.SetName(shardsName)
	w.must(w.admin.Create(t.Context(), theirs))
	m := w.memcached("team", "a", v1alpha1.Monitoring{})
	w.memcached("other", "a", v1alpha1.Monitoring{})
	stop := w.start(Options{})
	w.eventually("the other objects exist", func() bool { return w.get(prometheusRule, "team", shardsName) != nil && w.exist("other") })
	w.idle()
	if got := w.get(podMonitor, "team", shardsName); got.GetResourceVersion() != theirs.GetResourceVersion() {
		t.Errorf("the operator changed an object of others: %v", got.Object)
	}
	w.must(w.admin.Delete(t.Context(), m))
	w.eventually("our rule is deleted", func() bool { return w.get(prometheusRule, "team", shardsName) == nil })
	if w.get(podMonitor, "team", shardsName) == nil {
		t.Error("the operator deleted an object of others")
	}

	// What the last operator left is found by its label, also in a namespace without a Memcached.
	stop()
	w.must(w.admin.Delete(t.Context(), &v1alpha1.Memcached{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "a"}}))
	before := w.writes.Load()
	stop = w.start(Options{})
	w.eventually("objects of a namespace without a Memcached are deleted after a restart", func() bool { return w.absent("other") })
	w.idle()
	if n := w.writes.Load() - before; n != 2 {
		t.Errorf("the operator wrote %d times after its restart, and not only the two deletions", n)
	}

	// Off deletes all that is ours.
	stop()
	w.memcached("other", "b", v1alpha1.Monitoring{})
	defer w.start(Options{Disabled: true})()
	w.eventually("the operator's objects are deleted", func() bool {
		return w.get(serviceMonitor, operatorNamespace, operatorName) == nil && w.get(configMap, operatorNamespace, dashboardPrefix+"fleet") == nil
	})
	w.idle()
	if !w.absent("other") {
		t.Error("there are objects though they are off")
	}
}

// The golden file has all metrics, those of the slab classes for two of them.
func TestLimitsOfScrapesAdmitAllMetricsOfAShard(t *testing.T) {
	text, err := os.ReadFile("../../internal/agent/metrics/testdata/metrics.golden.txt")
	if err != nil {
		t.Fatal(err)
	}
	const classes, targetLabels = 63, 9 // namespace, memcached, shard, pod, container, endpoint, instance, job and the name
	samples, ofClass, labels := 0, 0, 0
	for line := range strings.Lines(string(text)) {
		switch {
		case strings.HasPrefix(line, "#"):
		case strings.Contains(line, `slab="5"`):
			ofClass++
		case !strings.Contains(line, `slab="12"`):
			samples++
		}
		labels = max(labels, strings.Count(line, `="`))
	}
	if ofClass == 0 || samples == 0 || samples+classes*ofClass > sampleLimit || labels+targetLabels > labelLimit {
		t.Errorf("a shard has %d samples and %d more for each of %d classes, of at most %d; and up to %d+%d labels, of at most %d",
			samples, ofClass, classes, sampleLimit, targetLabels, labels, labelLimit)
	}
}

func TestMonitoringSettingsAreRejectedWithTheirName(t *testing.T) {
	for variables, want := range map[string]string{
		"MONITORING=on":                         "MONITORING",
		"MONITORING_INTERVAL=often":             "MONITORING_INTERVAL",
		"MONITORING_LABELS=release=a,team=b c":  "MONITORING_LABELS",
		"MONITORING_LABELS=release":             "MONITORING_LABELS",
		"MONITORING_LABELS=release=a, team=b":   "",
		"MONITORING_NAMESPACES=monitoring, p8s": "",
		"MONITORING_NAMESPACES=Prometheus":      "MONITORING_NAMESPACES",
		"MONITORING_INTERVAL=1m":                "",
		"MONITORING_DASHBOARD_NAMESPACE=charts": "",
	} {
		name, value, _ := strings.Cut(variables, "=")
		o, err := ParseOptions(func(n string) string {
			if n == name {
				return value
			}
			return ""
		}, "system")
		switch {
		case want == "" && err != nil:
			t.Errorf("%s: %v", variables, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %v", variables, err)
		case name == "MONITORING_NAMESPACES" && want == "" && !slices.Equal(o.Namespaces, []string{"monitoring", "p8s"}), name == "MONITORING_DASHBOARD_NAMESPACE" && o.DashboardNamespace != value, name == "MONITORING_INTERVAL" && want == "" && o.Interval != value:
			t.Errorf("%s: %+v", variables, o)
		}
	}
}
