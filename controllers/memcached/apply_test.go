package memcached

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/apiserver"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/plan"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
)

// It may have become ready since.
func TestPodThatHasChangedSinceIsNotDeleted(t *testing.T) {
	env := newEnv(t)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: env.Namespace, Name: "broken"}}
	pod.Spec.Containers = []corev1.Container{{Name: "memcached", Image: "memcached"}}
	env.Must(env.Admin.Create(env.Ctx, pod))
	before := pod.DeepCopy()
	pod.Annotations = map[string]string{"example.com/changed": "true"}
	env.Must(env.Admin.Update(env.Ctx, pod))

	if res := env.apply(nil, plan.Actions{Delete: []resources.APIObject{before}}); !res.Conflict {
		t.Errorf("no conflict: %+v", res)
	}
	env.Read("broken", pod)
	if res := env.apply(nil, plan.Actions{Delete: []resources.APIObject{pod}}); res.Conflict {
		t.Errorf("conflict: %+v", res)
	}
	if err := env.Admin.Get(env.Ctx, client.ObjectKeyFromObject(pod), pod); err == nil && pod.DeletionTimestamp == nil {
		t.Error("a pod that hasn't changed was not deleted")
	}
}

func TestPatchOfPodThatHasChangedIsRejected(t *testing.T) {
	env := newEnv(t)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: env.Namespace, Name: "changed"}}
	pod.Spec.Containers = []corev1.Container{{Name: "memcached", Image: "memcached"}}
	env.Must(env.Admin.Create(env.Ctx, pod))
	before := pod.DeepCopy()
	pod.Annotations = map[string]string{"example.com/changed": "true"}
	env.Must(env.Admin.Update(env.Ctx, pod))

	stop := func(pod *corev1.Pod, value string) plan.Actions {
		return plan.Actions{Patch: []plan.PodPatch{plan.Annotate(pod, "stop", value)}}
	}
	if res := env.apply(nil, stop(before, "now")); !res.Conflict {
		t.Errorf("no conflict: %+v", res)
	}
	env.Read("changed", pod)
	if pod.Annotations["stop"] != "" {
		t.Error("a pod that had changed since was patched")
	}
	if res := env.apply(nil, stop(pod, "now")); res.Conflict {
		t.Errorf("conflict: %+v", res)
	}
	if env.Read("changed", pod); pod.Annotations["stop"] != "now" {
		t.Error("a pod that hadn't changed was not patched")
	}

	// A pod that was deleted is no failure.
	env.Must(env.Admin.Delete(env.Ctx, pod, client.GracePeriodSeconds(0)))
	env.apply(nil, stop(pod, "later"))
}

func TestDeleteSparesAnObjectThatTookTheNameSince(t *testing.T) {
	env := newEnv(t)
	env.Create("cache", "size: 2")
	env.Converge("cache")
	env.Change("cache", func(m *v1beta1.Memcached) { m.Spec.Size = ptr.To[int32](1) })
	obs := env.observe("cache")
	p := plan.Make(obs, env.reconciler.Options)
	var set appsv1.ReplicaSet
	env.Read("cache-1", &set)
	env.Must(env.Admin.Delete(env.Ctx, &set))
	other := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: env.Namespace, Name: "cache-1", Labels: set.Labels}, Spec: set.Spec}
	env.Must(env.Admin.Create(env.Ctx, other))

	if res := env.apply(obs.Memcached, p.Actions); !res.Conflict {
		t.Errorf("no conflict: %+v", res)
	}
	env.Read("cache-1", &set)
	if set.UID != other.UID || set.DeletionTimestamp != nil {
		t.Error("the new object was deleted")
	}
	if env.Exists("cache-1", &corev1.Service{}) {
		t.Error("the Service, which hasn't changed, wasn't deleted")
	}
}

func TestApplySparesAnObjectThatTookTheNameSince(t *testing.T) {
	for name, change := range map[string]func(client.Object){
		"ReplicaSet": func(o client.Object) { o.(*appsv1.ReplicaSet).Spec.Replicas = ptr.To[int32](0) },
		"Service":    func(o client.Object) { o.(*corev1.Service).Spec.Ports[0].TargetPort = intstr.FromInt32(1) },
	} {
		t.Run(name, func(t *testing.T) {
			env := newEnv(t)
			env.Create("cache", "size: 1")
			env.Converge("cache")
			object := map[string]client.Object{"ReplicaSet": &appsv1.ReplicaSet{}, "Service": &corev1.Service{}}[name]
			env.Read("cache-0", object)
			change(object)
			env.Must(env.Admin.Update(env.Ctx, object))
			obs := env.observe("cache")
			p := plan.Make(obs, env.reconciler.Options)
			env.Must(env.Admin.Delete(env.Ctx, object))
			other := object.DeepCopyObject().(client.Object)
			other.SetUID("")
			other.SetResourceVersion("")
			other.SetOwnerReferences(nil)
			env.Must(env.Admin.Create(env.Ctx, other))
			if res := env.apply(obs.Memcached, p.Actions); !res.Conflict {
				t.Errorf("no conflict: %+v", res)
			}
			if env.Read("cache-0", object); object.GetUID() != other.GetUID() || object.GetResourceVersion() != other.GetResourceVersion() {
				t.Error("the new object was written")
			}
		})
	}
}

// rejectsSmall is a client of an API server with a limit range.
type rejectsSmall struct {
	client.Client
	applied []string
}

func (c *rejectsSmall) Apply(_ context.Context, o runtime.ApplyConfiguration, _ ...client.ApplyOption) error {
	name := *o.(*corev1ac.PodApplyConfiguration).Name
	c.applied = append(c.applied, name)
	if name == "small" {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, name, errors.New("minimum cpu usage per Container is 10m, but request is 1m"))
	}
	return nil
}

func TestRejectedObjectIsWrittenAsItsFallback(t *testing.T) {
	key := resources.Key{Kind: resources.KindPod, Name: "preflight"}
	small, large, other := corev1ac.Pod("small", "default"), corev1ac.Pod("large", "default"), corev1ac.Pod("other", "default")
	for name, c := range map[string]struct {
		object   resources.Object
		applied  []string
		rejected int
	}{
		"accepted":           {resources.Object{Key: key, Apply: other, Fallback: large}, []string{"other"}, 0},
		"rejected":           {resources.Object{Key: key, Apply: small, Fallback: large}, []string{"small", "large"}, 0},
		"both are":           {resources.Object{Key: key, Apply: small, Fallback: small}, []string{"small", "small"}, 1},
		"without a fallback": {resources.Object{Key: key, Apply: small}, []string{"small"}, 1},
	} {
		c1 := &rejectsSmall{}
		r := writer{c1}.apply(t.Context(), nil, plan.Actions{Apply: []plan.Apply{{Object: c.object}}})
		if !slices.Equal(c1.applied, c.applied) || len(r.Rejections) != c.rejected || r.Applied[key] != (c.rejected == 0) {
			t.Errorf("%s: wrote %q with the rejections %v", name, c1.applied, r.Rejections)
		}
	}
}

// Between the observation and the write, milliseconds pass.
func TestFirstApplySparesAnObjectThatTookTheFreeName(t *testing.T) {
	env := newEnv(t)
	m := env.Create("cache", "size: 1")
	foreign := map[string]client.Object{}
	for _, o := range []client.Object{
		// An apply with force could change all but the ReplicaSet.
		&networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Name: "cache"}},
		&policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "cache"}, Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: ptr.To(intstr.FromInt32(1))}},
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "cache-0"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}},
	} {
		o.SetNamespace(env.Namespace)
		foreign[fmt.Sprintf("%T", o)] = o
	}
	obs := env.observe("cache")
	p := plan.Make(obs, env.reconciler.Options)
	for _, o := range foreign {
		env.Must(env.Admin.Create(env.Ctx, o))
	}
	if res := env.apply(m, p.Actions); !res.Conflict {
		t.Errorf("no conflict: %+v", res)
	}
	for kind, o := range foreign {
		after := o.DeepCopyObject().(client.Object)
		if env.Read(o.GetName(), after); after.GetResourceVersion() != o.GetResourceVersion() {
			t.Errorf("%s was written", kind)
		}
	}
	if !env.Exists("cache-0", &appsv1.ReplicaSet{}) || !env.Exists("cache", &corev1.Service{}) {
		t.Error("an object whose name was free wasn't created")
	}
	env.WantCondition(env.Converge("cache"), v1beta1.ConditionDegraded, metav1.ConditionTrue, v1beta1.ReasonNameConflict)
}

// refuses is a client that deletes all objects but those with a name.
type refuses struct {
	client.Client
	name    string
	deleted []string
}

func (c *refuses) Delete(_ context.Context, o client.Object, _ ...client.DeleteOption) error {
	if o.GetName() == c.name {
		return apierrors.NewForbidden(schema.GroupResource{}, c.name, errors.New("a policy"))
	}
	c.deleted = append(c.deleted, o.GetName())
	return nil
}

// Clients must lose a shard's name before its pod, and the highest shard first.
func TestWhatCannotBeDeletedDelaysOnlyTheRestOfAScaleIn(t *testing.T) {
	named := func(names ...string) (objects []resources.APIObject) {
		for _, name := range names {
			objects = append(objects, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name}})
		}
		return objects
	}
	c := &refuses{name: "refused"}
	a := plan.Actions{Delete: named("first", "refused", "second"), ScaleIn: named("third", "refused", "later")}
	res := writer{client: c}.apply(t.Context(), nil, a)
	if want := []string{"first", "second", "third"}; !slices.Equal(c.deleted, want) {
		t.Errorf("%q are deleted, want %q", c.deleted, want)
	}
	if len(res.Failures) != 2 || len(res.Rejections) != 2 {
		t.Errorf("failures %v, rejections %v: want the refused object of each list", res.Failures, res.Rejections)
	}
}

// creates answers each creation with an error.
type creates struct {
	client.Client
	err error
}

func (c creates) Create(context.Context, client.Object, ...client.CreateOption) error { return c.err }

// The status describes the loss of a shard when its restore exists.
func TestObjectExistsUnlessItsCreationFails(t *testing.T) {
	restore := &v1beta1.MemcachedRestore{ObjectMeta: metav1.ObjectMeta{Name: "refill"}}
	for want, errs := range map[bool][]error{
		true:  {nil, apierrors.NewAlreadyExists(schema.GroupResource{}, "refill")},
		false: {apierrors.NewInternalError(errors.New("failed calling webhook")), apierrors.NewForbidden(schema.GroupResource{}, "refill", errors.New("a policy")), context.DeadlineExceeded},
	} {
		for _, err := range errs {
			res := writer{client: creates{err: err}}.apply(t.Context(), nil, plan.Actions{Create: []resources.APIObject{restore}})
			if got := res.Applied[resources.KeyOf(restore)]; got != want {
				t.Errorf("%v: it exists: %t", err, got)
			}
		}
	}
}

// A finalizer that another controller has added since must not be lost.
func TestFinalizerOfAnotherControllerIsKept(t *testing.T) {
	env := newEnv(t)
	env.Create("cache", "{size: 0, deletionPolicy: Backup, backup: {final: {store: {persistentVolumeClaim: {claimName: store}}}}}")
	obs := env.observe("cache")
	env.Change("cache", func(m *v1beta1.Memcached) { m.Finalizers = []string{"example.com/theirs"} })
	if res := env.apply(obs.Memcached, plan.Make(obs, env.reconciler.Options).Actions); !res.Conflict {
		t.Errorf("no conflict: %+v", res)
	}
	m := env.Converge("cache")
	if want := []string{"example.com/theirs", v1beta1.FinalizerFinalBackup}; !slices.Equal(m.Finalizers, want) {
		t.Errorf("finalizers %v, want %v", m.Finalizers, want)
	}
	env.Must(env.Admin.Delete(env.Ctx, m))
	_, err := env.reconciler.Reconcile(env.Ctx, env.Request("cache"))
	env.Must(err)
	if m = env.Get("cache"); !slices.Equal(m.Finalizers, []string{"example.com/theirs"}) {
		t.Errorf("after the deletion: %+v", m)
	}
	if _, err := env.TryCreate("cache", "{}"); !apierrors.IsAlreadyExists(err) {
		t.Errorf("the Memcached is deleted: %v", err)
	}
}

func TestStatusComputedFromAnOldVersionIsNotWritten(t *testing.T) {
	env := newEnv(t)
	stale := env.Create("cache", "size: 1")
	env.Converge("cache")
	before := env.Get("cache")
	_, err := apiserver.WriteStatus(env.Ctx, env.reconciler.Client, stale, stale.Status.Version, "invented", func() { stale.Status.Version = "invented" })
	if !errors.Is(err, apiserver.ErrStale) {
		t.Error(err)
	}
	if diff := cmp.Diff(before.Status, env.Get("cache").Status); diff != "" {
		t.Errorf("the status was written (-before +after):\n%s", diff)
	}
}
