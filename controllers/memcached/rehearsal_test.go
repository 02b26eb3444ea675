package memcached

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
)

// rehearsing counts dry runs, and answers them with an error or with another image.
type rehearsing struct {
	client.Client
	err   error
	image string
	runs  int
}

func (c *rehearsing) Patch(ctx context.Context, o client.Object, patch client.Patch, options ...client.PatchOption) error {
	isDryRun := len((&client.PatchOptions{}).ApplyOptions(options).DryRun) > 0
	if isDryRun {
		if c.runs++; c.err != nil {
			return c.err
		}
	}
	err := c.Client.Patch(ctx, o, patch, options...)
	if pod, ok := o.(*corev1.Pod); ok && isDryRun && c.image != "" {
		pod.Spec.Containers[0].Image = c.image
	}
	return err
}

// newRehearsal returns a Memcached whose image was changed, and checked.
func newRehearsal(t *testing.T) (*testEnv, *rehearsing) {
	t.Helper()
	env := newEnv(t)
	c := &rehearsing{Client: env.reconciler.Client}
	env.reconciler.Client = c
	env.Create("cache", "{size: 1, version: 1.6.38}")
	env.Converge("cache")
	pod := env.run("cache-0", "10.0.0.1")
	answer := env.Agents[pod.Status.PodIP]
	answer.Version = "1.6.38"
	env.Agents[pod.Status.PodIP] = answer
	env.Converge("cache")
	env.Change("cache", func(m *v1beta1.Memcached) { m.Spec.Version = "1.6.45" })
	env.Converge("cache")
	var pods corev1.PodList
	env.Must(env.Admin.List(env.Ctx, &pods, client.InNamespace(env.Namespace), client.MatchingLabels(resources.PreflightLabels("cache"))))
	if len(pods.Items) != 1 || c.runs != 0 {
		t.Fatalf("%d preflight pods, %d dry runs before the image is checked", len(pods.Items), c.runs)
	}
	checked := &pods.Items[0]
	checked.Status.Phase = corev1.PodSucceeded
	checked.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: resources.Container,
		State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: `{"version":"1.6.45"}`, FinishedAt: metav1.NewTime(env.clock.Now())}}}}
	env.Must(env.Admin.Status().Update(env.Ctx, checked))
	return env, c
}

// stopOf returns which stop is announced to the agent of the shard.
func (env *testEnv) stopOf(shard string) string {
	env.Helper()
	pod := &corev1.Pod{}
	env.Read(shard+"-a", pod)
	return pod.Annotations[annotations.Stop]
}

func TestUpdateInPlaceIsADryRunBeforeAnythingIsAnnounced(t *testing.T) {
	env, c := newRehearsal(t)
	env.Reconcile("cache")
	if runs := c.runs; runs != 1 || env.stopOf("cache-0") == "" {
		t.Fatalf("%d dry runs; the announced stop is %q", runs, env.stopOf("cache-0"))
	}
	for range 3 { // the agent hasn't acknowledged it
		env.Reconcile("cache")
	}
	if c.runs != 1 {
		t.Errorf("%d dry runs while the operator waits for the agent", c.runs)
	}
}

func TestShardIsReplacedWhenTheDryRunHasAnotherImage(t *testing.T) {
	env, c := newRehearsal(t)
	c.image = "mirror.example/memcached:1.6.45"
	m := env.Converge("cache")
	u := m.Status.Update
	if u == nil || u.Method != v1beta1.UpdateReplace || !strings.Contains(u.Message, "only new pods") || env.stopOf("cache-0") != "" {
		t.Errorf("%+v, stop %q", u, env.stopOf("cache-0"))
	}
	if c.runs != 1 {
		t.Errorf("%d dry runs, want one for the shard and its update", c.runs)
	}
}

func TestRejectedDryRunIsReportedAndRetried(t *testing.T) {
	env, c := newRehearsal(t)
	c.err = apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "cache-0-a", errors.New("images must have a digest"))
	if _, err := env.reconciler.Reconcile(env.Ctx, ctrl.Request{NamespacedName: client.ObjectKey{Namespace: env.Namespace, Name: "cache"}}); err == nil {
		t.Error("it isn't retried")
	}
	env.WantCondition(env.Get("cache"), v1beta1.ConditionDegraded, metav1.ConditionTrue, v1beta1.ReasonApplyRejected, "images must have a digest")
	if stop := env.stopOf("cache-0"); stop != "" {
		t.Errorf("the stop %q is announced", stop)
	}
	c.err = nil
	env.WantCondition(env.Converge("cache"), v1beta1.ConditionDegraded, metav1.ConditionFalse, v1beta1.ReasonAsExpected)
	if env.stopOf("cache-0") == "" {
		t.Error("the update doesn't continue")
	}
}

func TestRejectedDryRunKeepsOtherChangesOfThePod(t *testing.T) {
	env, c := newRehearsal(t)
	c.err = apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "cache-0-a", errors.New("images must have a digest"))
	env.Change("cache", func(m *v1beta1.Memcached) { m.Spec.Access.Discovery.Mode = v1beta1.DiscoveryElastiCache })
	for range 3 { // the Service gets its address
		_, _ = env.reconciler.Reconcile(env.Ctx, ctrl.Request{NamespacedName: client.ObjectKey{Namespace: env.Namespace, Name: "cache"}})
	}
	pod := &corev1.Pod{}
	env.Read("cache-0-a", pod)
	if list := pod.Annotations[annotations.Discovery]; list == "" || pod.Annotations[annotations.Stop] != "" || c.runs == 0 {
		t.Errorf("%d dry runs, list %q, stop %q", c.runs, list, pod.Annotations[annotations.Stop])
	}
}
