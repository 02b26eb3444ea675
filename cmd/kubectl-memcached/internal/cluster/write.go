package cluster

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
)

// fieldOwner owns what the plugin writes.
const fieldOwner = client.FieldOwner("kubectl-memcached")

// Pause sets spec.paused.
func (c *Cluster) Pause(ctx context.Context, key client.ObjectKey, paused bool) error {
	return c.patch(ctx, memcached(key), map[string]any{"spec": map[string]any{"paused": paused}})
}

// AnnotateMemcached sets an annotation of a Memcached.
func (c *Cluster) AnnotateMemcached(ctx context.Context, key client.ObjectKey, annotation, value string) error {
	return c.patch(ctx, memcached(key), annotating(annotation, value))
}

// AnnotatePod sets an annotation of a pod, or removes it if the value is empty.
func (c *Cluster) AnnotatePod(ctx context.Context, key client.ObjectKey, annotation, value string) error {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	return c.patch(ctx, pod, annotating(annotation, value))
}

// Create creates an object of a CRD.
func (c *Cluster) Create(ctx context.Context, crd string, o client.Object) error {
	if err := c.Client.Create(ctx, o, fieldOwner); err != nil {
		return fmt.Errorf("creating a %s: %w", crd, err)
	}
	return nil
}

func memcached(key client.ObjectKey) *v1beta1.Memcached {
	return &v1beta1.Memcached{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
}

func annotating(annotation, value string) map[string]any {
	var set any
	if value != "" {
		set = value
	}
	return map[string]any{"metadata": map[string]any{"annotations": map[string]any{annotation: set}}}
}

func (c *Cluster) patch(ctx context.Context, o client.Object, change map[string]any) error {
	raw, err := json.Marshal(change)
	if err != nil {
		return err
	}
	if err := c.Client.Patch(ctx, o, client.RawPatch("application/merge-patch+json", raw), fieldOwner); err != nil {
		return fmt.Errorf("changing %s: %w", o.GetName(), err)
	}
	return nil
}
