package memcached

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/controllers/memcached/plan"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
)

// It may have become ready since.
func TestPodThatHasChangedSinceIsNotDeleted(t *testing.T) {
	env := newEnv(t)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: env.namespace, Name: "broken"}}
	pod.Spec.Containers = []corev1.Container{{Name: "memcached", Image: "memcached"}}
	env.must(env.admin.Create(env.ctx, pod))
	before := pod.DeepCopy()
	pod.Annotations = map[string]string{"example.com/changed": "true"}
	env.must(env.admin.Update(env.ctx, pod))

	if res := env.apply(nil, plan.Actions{Delete: []resources.APIObject{before}}); !res.Conflict {
		t.Errorf("no conflict: %+v", res)
	}
	env.read("broken", pod)
	if res := env.apply(nil, plan.Actions{Delete: []resources.APIObject{pod}}); res.Conflict {
		t.Errorf("conflict: %+v", res)
	}
	if err := env.admin.Get(env.ctx, client.ObjectKeyFromObject(pod), pod); err == nil && pod.DeletionTimestamp == nil {
		t.Error("a pod that hasn't changed was not deleted")
	}
}
