package cluster

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
)

// RunStatus returns what a MemcachedBackup and a MemcachedRestore tell alike. Of
// another kind it panics.
func RunStatus(o client.Object) *v1alpha1.RunStatus {
	switch o := o.(type) {
	case *v1alpha1.MemcachedBackup:
		return &o.Status.RunStatus
	case *v1alpha1.MemcachedRestore:
		return &o.Status.RunStatus
	default:
		panic(fmt.Sprintf("%T does not run once", o))
	}
}

// Ended waits until a MemcachedBackup or MemcachedRestore has ended, either way, and
// reads it. Whenever it tells of more progress, seen is called, unless that is nil.
func (c *Cluster) Ended(ctx context.Context, o client.Object, within time.Duration, seen func(*v1alpha1.RunStatus)) error {
	var last v1alpha1.RunProgress
	return Eventually(ctx, within, "the end of "+o.GetName(), func(ctx context.Context) error {
		if err := c.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		status := RunStatus(o)
		if p := status.Progress; seen != nil && p != nil && *p != last {
			last = *p
			seen(status)
		}
		if status.Phase != v1alpha1.RunComplete && status.Phase != v1alpha1.RunFailed {
			return fmt.Errorf("it is %q: %s: %s", status.Phase, status.Reason, status.Message)
		}
		return nil
	})
}

// Complete is Ended, and an error unless it is Complete.
func (c *Cluster) Complete(ctx context.Context, o client.Object, within time.Duration, seen func(*v1alpha1.RunStatus)) error {
	if err := c.Ended(ctx, o, within, seen); err != nil {
		return err
	}
	if status := RunStatus(o); status.Phase != v1alpha1.RunComplete {
		return fmt.Errorf("%s is %s: %s: %s", o.GetName(), status.Phase, status.Reason, status.Message)
	}
	return nil
}
