package memcached

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/plan"
)

func TestDeleteSparesAnObjectThatTookTheNameSince(t *testing.T) {
	env := newEnv(t)
	env.create("cache", "size: 2")
	env.converge("cache")
	env.change("cache", func(m *v1alpha1.Memcached) { m.Spec.Size = ptr.To[int32](1) })
	obs := env.observe("cache")
	p := plan.Make(obs, env.reconciler.Options)
	var set appsv1.ReplicaSet
	env.read("cache-1", &set)
	env.must(env.admin.Delete(env.ctx, &set))
	other := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: env.namespace, Name: "cache-1", Labels: set.Labels}, Spec: set.Spec}
	env.must(env.admin.Create(env.ctx, other))

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
	env.must(env.admin.Update(env.ctx, &service))
	env.must(env.admin.Delete(env.ctx, &service))
	env.read("cache-0", &service)

	m := env.converge("cache")
	env.wantCondition(m, v1alpha1.ConditionProgressing, metav1.ConditionTrue, v1alpha1.ReasonWaitingForGarbageCollection, "Service cache-0")
	var after corev1.Service
	env.read("cache-0", &after)
	if after.ResourceVersion != service.ResourceVersion {
		t.Error("the Service was written")
	}
	controllerutil.RemoveFinalizer(&after, "example.com/waits")
	env.must(env.admin.Update(env.ctx, &after))
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
	env.must(env.admin.Create(env.ctx, pod))
	before := pod.DeepCopy()
	pod.Annotations = map[string]string{"example.com/changed": "true"}
	env.must(env.admin.Update(env.ctx, pod))

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
	env.must(env.admin.Delete(env.ctx, pod, client.GracePeriodSeconds(0)))
	env.apply(nil, stop(pod, "later"))
}
