package memcached

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	testclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/observation"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/plan"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/simtest"
)

// testEnv is one test's namespace and the operator in it.
type testEnv struct {
	testing.TB
	ctx        context.Context
	admin      *simtest.Server
	namespace  string
	reconciler *Reconciler
	agents     fakeAgents
	events     *events.FakeRecorder
	// writes is the number of the operator's writes, and writesLeft how many it makes before it is killed.
	writes, writesLeft *atomic.Int64
	// readableSecret is the only Secret that the operator may read and update: its role lets it create Secrets.
	readableSecret string
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

// newEnv returns an environment of a test, with an API server in memory.
func newEnv(t testing.TB) *testEnv {
	t.Helper()
	uids := 0
	env := &testEnv{TB: t, ctx: t.Context(), namespace: simtest.InMemory, agents: fakeAgents{}, events: events.NewFakeRecorder(100), writes: &atomic.Int64{}, writesLeft: &atomic.Int64{}}
	env.admin = simtest.NewServer(time.Now, func() types.UID {
		uids++
		return types.UID(fmt.Sprintf("%08x-0000-4000-8000-000000000000", uids))
	})
	env.writesLeft.Store(math.MaxInt64)
	direct := simtest.Client{Client: operatorReads{env.admin, env}, Write: env.write}
	env.reconciler = &Reconciler{Client: direct, APIReader: direct, AgentClient: env.agents, Recorder: env.events, Clock: clock.RealClock{}, Options: resources.Options{
		AgentImage:        "ghcr.io/memcached-operator/memcached-operator:v1.0.0",
		DefaultImage:      "docker.io/library/memcached:1.6.45",
		OperatorNamespace: "memcached-operator-system",
	}, DefaultImageUpdates: 1}
	return env
}

// errKilled is the result of the requests of an operator that was killed.
var errKilled = errors.New("the operator was killed")

// write makes a write of the operator.
func (env *testEnv) write(verb string, k simtest.Kind, key client.ObjectKey, do func() error) error {
	if err := env.allows(k, key.Name); err != nil && (env.isKilled() || verb == "update") {
		return err
	}
	env.writes.Add(1)
	env.writesLeft.Add(-1)
	return do()
}

func (env *testEnv) isKilled() bool { return env.writesLeft.Load() <= 0 }

// allows returns why the operator can't read an object.
func (env *testEnv) allows(k simtest.Kind, name string) error {
	switch {
	case env.isKilled():
		return errKilled
	case k == simtest.KindSecret && name != env.readableSecret:
		return apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, name, errors.New("the role has no rule for it"))
	default:
		return nil
	}
}

// operatorReads is what the operator reads with.
type operatorReads struct {
	client.Client
	env *testEnv
}

// Get implements client.Reader.
func (r operatorReads) Get(ctx context.Context, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
	if err := r.env.allows(simtest.KindOf(o), key.Name); err != nil {
		return err
	}
	return r.Client.Get(ctx, key, o, options...)
}

// List implements client.Reader.
func (r operatorReads) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if r.env.isKilled() {
		return errKilled
	}
	return r.Client.List(ctx, list, options...)
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
	raw, err := yaml.YAMLToJSON([]byte(spec))
	env.must(err)
	o := map[string]any{}
	env.must(json.Unmarshal(raw, &o)) // with integers
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("Memcached"))
	u.SetName(name)
	u.SetNamespace(env.namespace)
	u.Object["spec"] = o
	if err := env.admin.Create(env.ctx, u); err != nil {
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
	env.must(env.admin.Get(env.ctx, types.NamespacedName{Namespace: env.namespace, Name: name}, o))
}

// change edits a Memcached as a user does.
func (env *testEnv) change(name string, edit func(*v1alpha1.Memcached)) {
	env.Helper()
	m := env.get(name)
	edit(m)
	env.must(env.admin.Update(env.ctx, m))
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
func (env *testEnv) observe(name string) *observation.Observation {
	env.Helper()
	obs, err := env.reconciler.observer().observe(env.ctx, env.get(name), observation.Memory{})
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
