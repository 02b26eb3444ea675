package drain

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/apiserver"
)

// writer makes all writes.
type writer struct{ client client.Writer }

// apply sets or removes the annotation of a pod, unless the pod has changed since it was read.
func (w writer) apply(ctx context.Context, m move) error {
	after := m.pod.DeepCopy()
	delete(after.Annotations, v1beta1.AnnotationMove)
	if m.value != "" {
		after.Annotations[v1beta1.AnnotationMove] = m.value
	}
	return apiserver.WriteMetadata(ctx, w.client, m.pod.Pod, after)
}
