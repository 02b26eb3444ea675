package memcached

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	testclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"github.com/go-logr/logr"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/manifests"
	"github.com/memcached-operator/memcached-operator/internal/agentapi"
)

// The tests of this package talk to a real API server. Where they need a pod,
// they make what the ReplicaSet controller and the kubelet would; the cluster
// tests have the real ones.
var (
	admin  client.Client // what a person with all rights does
	asSelf *rest.Config  // what the operator does: its own rights and no more
	tables rest.Interface
	scheme = runtime.NewScheme()
)

// operatorUser is the operator's ServiceAccount as the API server sees it.
const operatorUser = "system:serviceaccount:memcached-operator-system:memcached-operator-controller-manager"

func TestMain(m *testing.M) {
	code, err := runSuite(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func runSuite(m *testing.M) (int, error) {
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		return 0, fmt.Errorf("KUBEBUILDER_ASSETS is not set, so there is no API server to test against: run make test, or eval \"$(make -s env)\" first")
	}
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return 0, err
	}
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return 0, err
	}
	ctrl.SetLogger(logr.Discard())
	environment := &envtest.Environment{
		CRDDirectoryPaths:     []string{filepath.Join("..", "..", "config", "crd", "bases")},
		ErrorIfCRDPathMissing: true,
	}
	// An operator that is killed after each write makes more Services than 256.
	environment.ControlPlane.GetAPIServer().Configure().Set("service-cluster-ip-range", "10.96.0.0/16")
	defer environment.Stop()
	config, err := environment.Start()
	if err != nil {
		return 0, fmt.Errorf("starting the API server: %w", err)
	}
	if admin, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		return 0, err
	}
	forTables := rest.CopyConfig(config)
	forTables.NegotiatedSerializer = clientgoscheme.Codecs.WithoutConversion()
	if tables, err = rest.UnversionedRESTClientFor(forTables); err != nil {
		return 0, err
	}
	if err := grantOperator(context.Background()); err != nil {
		return 0, err
	}
	asSelf = rest.CopyConfig(config)
	asSelf.Impersonate = rest.ImpersonationConfig{UserName: operatorUser, Groups: []string{"system:serviceaccounts", "system:authenticated"}}
	return m.Run(), nil
}

// grantOperator gives the operator the rights that it is installed with.
func grantOperator(ctx context.Context) error {
	raw, err := os.ReadFile(filepath.Join("..", "..", "config", "rbac", "role.yaml"))
	if err != nil {
		return err
	}
	var role rbacv1.ClusterRole
	if err := yaml.UnmarshalStrict(raw, &role); err != nil {
		return fmt.Errorf("reading the operator's role: %w", err)
	}
	if err := admin.Create(ctx, &role); err != nil {
		return err
	}
	return admin.Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "operator"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: operatorUser}},
	})
}

// world is one test's namespace and the operator in it.
type world struct {
	testing.TB
	ctx        context.Context
	namespace  string
	reconciler *Reconciler
	agents     fakeAgents
	events     *events.FakeRecorder
	// writes counts the operator's requests that are not reads.
	writes *atomic.Int64
}

// fakeAgents answers by pod IP.
type fakeAgents map[string]agentapi.Status

func (a fakeAgents) Status(_ context.Context, podIP string) (agentapi.Status, error) {
	status, ok := a[podIP]
	if !ok {
		return agentapi.Status{}, fmt.Errorf("no answer from %s", podIP)
	}
	return status, nil
}

var namespaces atomic.Int64

func newWorld(t testing.TB) *world {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	w := &world{TB: t, ctx: ctx, namespace: fmt.Sprintf("test-%d", namespaces.Add(1)), agents: fakeAgents{},
		events: events.NewFakeRecorder(100), writes: &atomic.Int64{}}
	w.must(admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}}))

	config := rest.CopyConfig(asSelf)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return countWrites{next, w.writes} })
	direct, err := client.New(config, client.Options{Scheme: scheme})
	w.must(err)
	w.reconciler = &Reconciler{Client: direct, Live: direct, Agents: w.agents, Recorder: w.events, Clock: clock.RealClock{}, Options: manifests.Options{
		AgentImage:        "ghcr.io/memcached-operator/memcached-operator:v1.0.0",
		DefaultImage:      "docker.io/library/memcached:1.6.45",
		OperatorNamespace: "memcached-operator-system",
	}}
	return w
}

// countWrites counts the requests that may change something.
type countWrites struct {
	next  http.RoundTripper
	count *atomic.Int64
}

func (c countWrites) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		c.count.Add(1)
	}
	return c.next.RoundTrip(r)
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// create makes a Memcached as kubectl apply would, through the API server's
// defaults and rules.
func (w *world) create(name, spec string) *v1alpha1.Memcached {
	w.Helper()
	m, err := w.tryCreate(name, spec)
	w.must(err)
	return m
}

func (w *world) tryCreate(name, spec string) (*v1alpha1.Memcached, error) {
	w.Helper()
	o := map[string]any{}
	w.must(yaml.Unmarshal([]byte(spec), &o))
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("Memcached"))
	u.SetName(name)
	u.SetNamespace(w.namespace)
	u.Object["spec"] = o
	if err := admin.Create(w.ctx, u, client.FieldValidation(metav1.FieldValidationStrict)); err != nil {
		return nil, err
	}
	return w.get(name), nil
}

func (w *world) get(name string) *v1alpha1.Memcached {
	w.Helper()
	m := &v1alpha1.Memcached{}
	w.read(name, m)
	return m
}

func (w *world) read(name string, o client.Object) {
	w.Helper()
	w.must(admin.Get(w.ctx, types.NamespacedName{Namespace: w.namespace, Name: name}, o))
}

// change writes a Memcached after a person's edit.
func (w *world) change(name string, edit func(*v1alpha1.Memcached)) {
	w.Helper()
	m := w.get(name)
	edit(m)
	w.must(admin.Update(w.ctx, m))
}

// reconcile runs one reconcile and returns the Memcached after it.
func (w *world) reconcile(name string) *v1alpha1.Memcached {
	w.Helper()
	_, err := w.reconciler.Reconcile(w.ctx, ctrl.Request{NamespacedName: types.NamespacedName{Namespace: w.namespace, Name: name}})
	w.must(err)
	return w.get(name)
}

// settle reconciles until nothing is written any more, as watches would have it.
func (w *world) settle(name string) *v1alpha1.Memcached {
	w.Helper()
	for range 10 {
		before := w.writes.Load()
		if m := w.reconcile(name); w.writes.Load() == before {
			return m
		}
	}
	w.Fatal("the operator still writes after ten reconciles")
	return nil
}

// recorded returns the events since the last call.
func (w *world) recorded() []string {
	var all []string
	for {
		select {
		case e := <-w.events.Events:
			all = append(all, e)
		default:
			return all
		}
	}
}

func (w *world) wantEvent(events []string, reason string) {
	w.Helper()
	for _, e := range events {
		if strings.Contains(e, reason) {
			return
		}
	}
	w.Errorf("no event %s among %q", reason, events)
}

// past has the operator look at a time at which every deadline of minutes is over.
func past(w *world) { w.reconciler.Clock = testclock.NewFakePassiveClock(time.Now().Add(time.Hour)) }

func inNamespace(w *world) client.DeleteAllOfOption { return client.InNamespace(w.namespace) }
