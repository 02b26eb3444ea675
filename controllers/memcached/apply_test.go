package memcached

import (
	"context"
	"errors"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
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
