package cluster

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
)

// RunStatus returns the common status of a MemcachedBackup or a MemcachedRestore.
func RunStatus(o client.Object) *v1beta1.TransferStatus {
	switch o := o.(type) {
	case *v1beta1.MemcachedBackup:
		return &o.Status.TransferStatus
	case *v1beta1.MemcachedRestore:
		return &o.Status.TransferStatus
	default:
		panic(fmt.Sprintf("%T has no such status", o))
	}
}

// AwaitFinished waits until a MemcachedBackup or MemcachedRestore has finished and reads it. It calls seen, unless that is nil,
// when the progress changes.
func (c *Cluster) AwaitFinished(ctx context.Context, o client.Object, seen func(*v1beta1.TransferStatus)) error {
	var last v1beta1.TransferProgress
	return Eventually(ctx, "completion of "+o.GetName(), func(ctx context.Context) error {
		if err := c.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		status := RunStatus(o)
		if p := status.Progress; seen != nil && p != nil && *p != last {
			last = *p
			seen(status)
		}
		if !status.IsFinished() {
			return fmt.Errorf("it is %q: %s: %s", status.Phase, status.Reason(), status.Message())
		}
		return nil
	})
}

// Complete waits until a MemcachedBackup or MemcachedRestore has finished, and returns an error unless it is Complete.
func (c *Cluster) Complete(ctx context.Context, o client.Object, seen func(*v1beta1.TransferStatus)) error {
	if err := c.AwaitFinished(ctx, o, seen); err != nil {
		return err
	}
	if status := RunStatus(o); status.Phase != v1beta1.TransferComplete {
		return fmt.Errorf("%s is %s: %s: %s", o.GetName(), status.Phase, status.Reason(), status.Message())
	}
	return nil
}

// Unlimited is the rate limit of a backup or restore that copies as fast as it can.
func Unlimited() *v1beta1.RateLimit {
	return &v1beta1.RateLimit{ItemsPerSecond: new(int32(0)), BytesPerSecond: &resource.Quantity{}}
}
