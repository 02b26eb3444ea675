package memcached

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/cache"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/observation"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/plan"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/simtest"
)

// testEnv is one test's namespace and the operator in it.
type testEnv struct {
	*simtest.Env
	reconciler *Reconciler
	// clock is that of the operator and of the API server: a machine that stalls between two reconciles lets no time pass.
	clock *testclock.FakePassiveClock
	// related has the pods to which events are related, by reason.
	related map[string][]string
	// readableSecret is the only Secret that the operator may read and update: its role lets it create Secrets.
	readableSecret string
}

// newEnv returns an environment of a test, with an API server in memory. What the operator reads is trimmed as by its cache.
func newEnv(t testing.TB) *testEnv {
	t.Helper()
	uids, now := 0, testclock.NewFakePassiveClock(time.Now())
	server := simtest.NewServer(now.Now, func() types.UID {
		uids++
		return types.UID(fmt.Sprintf("%08x-0000-4000-8000-000000000000", uids))
	})
	env := &testEnv{Env: simtest.NewEnv(t, server, simtest.InMemory), clock: now, related: map[string][]string{}}
	direct := simtest.Client{Client: operatorReads{server, env}, Write: env.write}
	env.reconciler = &Reconciler{Client: cachedClient{direct}, APIReader: direct, AgentClient: env.Agents, Recorder: podRecorder{env.Events, env.related}, Clock: now, Options: resources.Options{
		AgentImage:        "ghcr.io/memcached-operator/memcached-operator:v1.0.0",
		DefaultImage:      "docker.io/library/memcached:1.6.45",
		OperatorNamespace: "memcached-operator-system",
	}, DefaultImageUpdates: 1}
	env.Operator = env.reconciler
	return env
}

// podRecorder records which pods the events are related to.
type podRecorder struct {
	events.EventRecorder
	pods map[string][]string
}

func (r podRecorder) Eventf(regarding, related runtime.Object, kind, reason, action, note string, args ...any) {
	if pod, ok := related.(*corev1.ObjectReference); ok {
		r.pods[reason] = append(r.pods[reason], pod.Name)
	}
	r.EventRecorder.Eventf(regarding, related, kind, reason, action, note, args...)
}

// write makes a write of the operator.
func (env *testEnv) write(verb string, k simtest.Kind, key client.ObjectKey, do func() error) error {
	if verb == "update" {
		if err := env.allows(k, key.Name); err != nil {
			return err
		}
	}
	env.Writes.Add(1)
	return do()
}

// allows returns why the operator can't read or update an object.
func (env *testEnv) allows(k simtest.Kind, name string) error {
	if k == simtest.KindSecret && name != env.readableSecret {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, name, errors.New("the role has no rule for it"))
	}
	return nil
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

// cachedClient reads what the cache would contain, so that tests fail when it lacks a field that the operator needs.
type cachedClient struct{ client.Client }

func trim(o runtime.Object) error {
	_, err := cache.Transform(o)
	return err
}

// Get implements client.Reader.
func (c cachedClient) Get(ctx context.Context, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
	if err := c.Client.Get(ctx, key, o, options...); err != nil {
		return err
	}
	return trim(o)
}

// List implements client.Reader.
func (c cachedClient) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if err := c.Client.List(ctx, list, options...); err != nil {
		return err
	}
	return meta.EachListItem(list, trim)
}

// skipAnHour sets the operator's clock ahead.
func (env *testEnv) skipAnHour() {
	env.clock.SetTime(env.clock.Now().Add(time.Hour))
}

// keysOf returns the keys of a Memcached of this size.
func keysOf(name string, size int32) []resources.Key {
	m := &v1beta1.Memcached{}
	m.Name, m.Spec.Size = name, &size
	return resources.Keys(m)
}

// observe returns what the operator observes of a Memcached.
func (env *testEnv) observe(name string) *observation.Observation {
	env.Helper()
	obs, err := env.reconciler.observer().observe(env.Ctx, env.Get(name), observation.Memory{})
	env.Must(err)
	return obs
}

// apply makes the writes of a plan, or fails the test if they fail in a way that a retry fixes
// or none does.
func (env *testEnv) apply(m *v1beta1.Memcached, a plan.Actions) plan.Result {
	env.Helper()
	res := writer{env.reconciler.Client}.apply(env.Ctx, m, a)
	if res.Retry() != nil || len(res.Rejections) > 0 {
		env.Errorf("failures %v, rejections %v", res.Failures, res.Rejections)
	}
	return res
}

// run creates a ready pod of a shard, whose agent reports an empty start.
func (env *testEnv) run(shard, ip string) *corev1.Pod {
	env.Helper()
	pod := env.RunPod(shard, "a", ip)
	env.Answer(pod, agentwire.Start{Result: agentwire.StartCold, At: env.clock.Now()}, "1.6.45")
	return pod
}
