package memcached

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/plan"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/plan/plantest"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/status"
)

func TestOwnershipOf(t *testing.T) {
	controlledBy := func(group, kind, name string, uid types.UID) []metav1.OwnerReference {
		return []metav1.OwnerReference{{APIVersion: group, Kind: kind, Name: name, UID: uid, Controller: ptr.To(true)}}
	}
	ourGroup := v1alpha1.GroupVersion.String()
	for _, c := range []struct {
		name   string
		labels map[string]string
		owners []metav1.OwnerReference
		want   plan.Ownership
	}{
		{"controlled by this Memcached", nil, controlledBy(ourGroup, "Memcached", "cache", "uid"), plan.Ours},
		{"controlled by another Memcached of this name", nil, controlledBy(ourGroup, "Memcached", "cache", "before"), plan.Predecessors},
		{"controlled by a Memcached of another name", nil, controlledBy(ourGroup, "Memcached", "sessions", "other"), plan.Foreign},
		{"controlled by a Memcached of another API group", nil, controlledBy("example.com/v1", "Memcached", "cache", "other"), plan.Foreign},
		{"controlled by another kind, with our labels", resources.Labels("cache"), controlledBy("apps/v1", "Deployment", "cache", "other"), plan.Foreign},
		{"no controller, created for this name", resources.Labels("cache"), nil, plan.Orphaned},
		{"no controller, created for another name", resources.Labels("sessions"), nil, plan.Foreign},
		{"no controller, created by another program", map[string]string{v1alpha1.LabelInstance: "cache", v1alpha1.LabelManagedBy: "Helm"}, nil, plan.Foreign},
		{"no controller, no labels", nil, nil, plan.Foreign},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := &v1alpha1.Memcached{ObjectMeta: metav1.ObjectMeta{Name: "cache", UID: "uid"}}
			o := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "cache-0", Labels: c.labels, OwnerReferences: c.owners}}
			if got := plan.OwnershipOf(m, o); got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
		})
	}
}

func TestDeleteSparesAnObjectThatTookTheNameSince(t *testing.T) {
	env := newEnv(t)
	env.create("cache", "size: 2")
	env.converge("cache")
	env.change("cache", func(m *v1alpha1.Memcached) { m.Spec.Size = ptr.To[int32](1) })
	obs := env.observe("cache")
	p := plan.Make(obs, env.reconciler.Options)
	var set appsv1.ReplicaSet
	env.read("cache-1", &set)
	env.must(admin.Delete(env.ctx, &set))
	other := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: env.namespace, Name: "cache-1", Labels: set.Labels}, Spec: set.Spec}
	env.must(admin.Create(env.ctx, other))

	if res := env.apply(obs.Memcached, p.Actions); !res.Conflict {
		t.Errorf("no conflict: %+v", res)
	}
	env.read("cache-1", &set)
	if set.UID != other.UID || set.DeletionTimestamp != nil {
		t.Error("the new object was deleted")
	}
	if env.exists("cache-1", &corev1.Service{}) {
		t.Error("the Service, which hasn't changed, wasn't deleted")
	}
}

func TestObjectThatIsBeingDeletedIsNotWritten(t *testing.T) {
	env := newEnv(t)
	env.create("cache", "size: 1")
	env.converge("cache")
	var service corev1.Service
	env.read("cache-0", &service)
	controllerutil.AddFinalizer(&service, "example.com/waits")
	service.Spec.PublishNotReadyAddresses = true // differs from the desired state
	env.must(admin.Update(env.ctx, &service))
	env.must(admin.Delete(env.ctx, &service))
	env.read("cache-0", &service)

	m := env.converge("cache")
	env.wantCondition(m, v1alpha1.ConditionProgressing, metav1.ConditionTrue, v1alpha1.ReasonWaitingForGarbageCollection, "Service cache-0")
	var after corev1.Service
	env.read("cache-0", &after)
	if after.ResourceVersion != service.ResourceVersion {
		t.Error("the Service was written")
	}
	controllerutil.RemoveFinalizer(&after, "example.com/waits")
	env.must(admin.Update(env.ctx, &after))
	env.converge("cache")
	env.read("cache-0", &after)
	if after.UID == service.UID {
		t.Error("the Service was not recreated")
	}
}

func TestPatchOfPodThatHasChangedIsRejected(t *testing.T) {
	env := newEnv(t)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: env.namespace, Name: "changed"}}
	pod.Spec.Containers = []corev1.Container{{Name: "memcached", Image: "memcached"}}
	env.must(admin.Create(env.ctx, pod))
	before := pod.DeepCopy()
	pod.Annotations = map[string]string{"example.com/changed": "true"}
	env.must(admin.Update(env.ctx, pod))

	stop := func(pod *corev1.Pod, value string) plan.Actions {
		return plan.Actions{Patch: []plan.PodPatch{plan.Annotate(pod, "stop", value)}}
	}
	if res := env.apply(nil, stop(before, "now")); !res.Conflict {
		t.Errorf("no conflict: %+v", res)
	}
	env.read("changed", pod)
	if pod.Annotations["stop"] != "" {
		t.Error("a pod that had changed since was patched")
	}
	if res := env.apply(nil, stop(pod, "now")); res.Conflict {
		t.Errorf("conflict: %+v", res)
	}
	if env.read("changed", pod); pod.Annotations["stop"] != "now" {
		t.Error("a pod that hadn't changed was not patched")
	}

	// A pod that was deleted is no failure.
	env.must(admin.Delete(env.ctx, pod, client.GracePeriodSeconds(0)))
	env.apply(nil, stop(pod, "later"))
}

// They serve until their Services are deleted, but clients must not start to use them.
func TestServersAreThoseOfTheDesiredShards(t *testing.T) {
	obs := plantest.Observation(1, "valid", [2]string{"ours", "ours"}, [2]string{"ours", "ours"}, [2]string{"starting", "ready"})
	s := status.Make(obs, plantest.Plan(obs), plan.Result{}, obs.Now)
	if s.ReadySize != 0 || s.Ready != "0/1" {
		t.Errorf("%d ready, %s", s.ReadySize, s.Ready)
	}
	if want := resources.Server("default", "cache-0"); len(s.Servers) != 1 || s.Servers[0] != want {
		t.Errorf("servers %q, want only %s", s.Servers, want)
	}
	if len(s.Shards) != 2 {
		t.Errorf("status of %d shards, want 2", len(s.Shards))
	}
}

func TestFinalizerIsNotAddedToDeletedMemcached(t *testing.T) {
	for _, deleted := range []bool{false, true} {
		obs := plantest.Observation(1, "valid", [2]string{"ours", "absent"}, [2]string{"ours", "absent"}, [2]string{"ready", "none"})
		obs.Memcached.Spec.DeletionPolicy = v1alpha1.DeletionBackup
		if deleted { // has another finalizer
			obs.Memcached.DeletionTimestamp = &metav1.Time{Time: obs.Now}
		}
		if p := plantest.Plan(obs); p.Actions.Finalizer.Add == deleted || p.Actions.Finalizer.Remove {
			t.Errorf("deleted: %v; added: %v, removed: %v", deleted, p.Actions.Finalizer.Add, p.Actions.Finalizer.Remove)
		}
	}
}

// The cache doesn't contain foreign objects, so no watch reports that the name is free.
func TestConflictingNameIsCheckedAgain(t *testing.T) {
	for state, want := range map[string]time.Duration{"ours": 0, "foreign": plan.ConflictRecheck} {
		obs := plantest.Observation(1, "valid", [2]string{"ours", "absent"}, [2]string{state, "absent"}, [2]string{"none", "none"})
		if p := plantest.Plan(obs); p.Actions.RequeueAfter != want {
			t.Errorf("Service %s: requeue after %s, want %s", state, p.Actions.RequeueAfter, want)
		}
	}
}
