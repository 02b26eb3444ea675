package memcached

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	testclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/plan"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/apiservertest"
)

// The tests of this package use a real API server. They simulate the ReplicaSet controller
// and the kubelet; the cluster tests have the real ones.
var (
	admin          client.Client // has all rights
	operatorConfig *rest.Config  // has the rights that the operator is installed with
	tables         rest.Interface
	scheme         = runtime.NewScheme()
)

func TestMain(m *testing.M) {
	apiservertest.Main(m, func(server *apiservertest.Server) (err error) {
		ctrl.SetLogger(logr.Discard())
		utilruntime.Must(errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)))
		operatorConfig = server.Operator
		if admin, err = client.New(server.Admin, client.Options{Scheme: scheme}); err != nil {
			return err
		}
		forTables := rest.CopyConfig(server.Admin)
		forTables.NegotiatedSerializer = clientgoscheme.Codecs.WithoutConversion()
		tables, err = rest.UnversionedRESTClientFor(forTables)
		return err
	})
}

// testEnv is one test's namespace and the operator in it.
type testEnv struct {
	testing.TB
	ctx        context.Context
	namespace  string
	reconciler *Reconciler
	agents     fakeAgents
	events     *events.FakeRecorder
	// writes is the number of the operator's requests that are not reads.
	writes *atomic.Int64
}

// fakeAgents are the agents' answers by pod IP.
type fakeAgents map[string]agentwire.Status

func (a fakeAgents) Status(_ context.Context, podIP string) (agentwire.Status, error) {
	status, ok := a[podIP]
	if !ok {
		return agentwire.Status{}, fmt.Errorf("no answer from %s", podIP)
	}
	return status, nil
}

var namespaces atomic.Int64

// parallel has the names of the tests that run beside others.
var parallel sync.Map

// newEnv returns an environment of a test, which then runs beside others. Cases of a test
// stay in their order, since tests compare them.
func newEnv(t testing.TB) *testEnv {
	t.Helper()
	if test, ok := t.(*testing.T); ok && !strings.Contains(t.Name(), "/") {
		if _, again := parallel.LoadOrStore(t.Name(), true); !again {
			test.Parallel()
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	env := &testEnv{TB: t, ctx: ctx, namespace: fmt.Sprintf("test-%d", namespaces.Add(1)), agents: fakeAgents{},
		events: events.NewFakeRecorder(100), writes: &atomic.Int64{}}
	env.must(admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: env.namespace}}))

	config := rest.CopyConfig(operatorConfig)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return countWrites{next, env.writes} })
	direct, err := client.New(config, client.Options{Scheme: scheme})
	env.must(err)
	env.reconciler = &Reconciler{Client: unindexed{direct, env.namespace}, APIReader: direct, AgentClient: env.agents, Recorder: env.events, Clock: clock.RealClock{}, Options: resources.Options{
		AgentImage:        "ghcr.io/memcached-operator/memcached-operator:v1.0.0",
		DefaultImage:      "docker.io/library/memcached:1.6.45",
		OperatorNamespace: "memcached-operator-system",
	}, DefaultImageUpdates: 1}
	return env
}

// countWrites counts the requests other than reads.
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

func (env *testEnv) must(err error) {
	env.Helper()
	if err != nil {
		env.Fatal(err)
	}
}

// create creates a Memcached with a spec in YAML.
func (env *testEnv) create(name, spec string) *v1alpha1.Memcached {
	env.Helper()
	m, err := env.tryCreate(name, spec)
	env.must(err)
	return m
}

func (env *testEnv) tryCreate(name, spec string) (*v1alpha1.Memcached, error) {
	env.Helper()
	o := map[string]any{}
	env.must(yaml.Unmarshal([]byte(spec), &o))
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("Memcached"))
	u.SetName(name)
	u.SetNamespace(env.namespace)
	u.Object["spec"] = o
	if err := admin.Create(env.ctx, u, client.FieldValidation(metav1.FieldValidationStrict)); err != nil {
		return nil, err
	}
	return env.get(name), nil
}

func (env *testEnv) get(name string) *v1alpha1.Memcached {
	env.Helper()
	m := &v1alpha1.Memcached{}
	env.read(name, m)
	return m
}

func (env *testEnv) read(name string, o client.Object) {
	env.Helper()
	env.must(admin.Get(env.ctx, types.NamespacedName{Namespace: env.namespace, Name: name}, o))
}

// change edits a Memcached as a user does.
func (env *testEnv) change(name string, edit func(*v1alpha1.Memcached)) {
	env.Helper()
	m := env.get(name)
	edit(m)
	env.must(admin.Update(env.ctx, m))
}

// reconcile runs one reconcile and returns the Memcached after it.
func (env *testEnv) reconcile(name string) *v1alpha1.Memcached {
	env.Helper()
	_, err := env.reconciler.Reconcile(env.ctx, ctrl.Request{NamespacedName: types.NamespacedName{Namespace: env.namespace, Name: name}})
	env.must(err)
	return env.get(name)
}

// converge reconciles until the operator writes nothing more.
func (env *testEnv) converge(name string) *v1alpha1.Memcached {
	env.Helper()
	for range 10 {
		before := env.writes.Load()
		if m := env.reconcile(name); env.writes.Load() == before {
			return m
		}
	}
	env.Fatal("the operator still writes after ten reconciles")
	return nil
}

// recorded returns the events since the last call.
func (env *testEnv) recorded() []string {
	var all []string
	for {
		select {
		case e := <-env.events.Events:
			all = append(all, e)
		default:
			return all
		}
	}
}

func (env *testEnv) wantEvent(events []string, reason string) {
	env.Helper()
	for _, e := range events {
		if strings.Contains(e, reason) {
			return
		}
	}
	env.Errorf("no event %s in %q", reason, events)
}

// skipAnHour sets the operator's clock ahead.
func (env *testEnv) skipAnHour() {
	env.reconciler.Clock = testclock.NewFakePassiveClock(env.reconciler.Clock.Now().Add(time.Hour))
}

// keysOf returns the keys of a Memcached of this size.
func keysOf(name string, size int32) []resources.Key {
	m := &v1alpha1.Memcached{}
	m.Name, m.Spec.Size = name, &size
	return resources.Keys(m)
}

// observe returns what the operator observes of a Memcached.
func (env *testEnv) observe(name string) *plan.Observation {
	env.Helper()
	obs, err := env.reconciler.observer().observe(env.ctx, env.get(name))
	env.must(err)
	return obs
}

// apply makes the writes of a plan, or fails the test if they fail in a way that a retry fixes
// or none does.
func (env *testEnv) apply(m *v1alpha1.Memcached, a plan.Actions) plan.Result {
	env.Helper()
	res := writer{env.reconciler.Client}.apply(env.ctx, m, a)
	if res.Retry() != nil || len(res.Rejections) > 0 {
		env.Errorf("failures %v, rejections %v", res.Failures, res.Rejections)
	}
	return res
}

// unindexed is a client without a cache, of an operator that watches one namespace. The API
// server has none of the cache's indexes, and the labels of a list select the same objects.
type unindexed struct {
	client.Client
	namespace string
}

// List implements client.Reader.
func (c unindexed) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	o := (&client.ListOptions{}).ApplyOptions(options)
	o.FieldSelector, o.Namespace = nil, c.namespace
	return c.Client.List(ctx, list, o)
}
