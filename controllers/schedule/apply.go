package schedule

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/memcached-operator/memcached-operator/controllers/apiserver"
)

// writer makes all writes but that of the status.
type writer struct{ client client.Writer }

// apply makes the writes in their order, and none after one that failed. It returns why the API server rejected the backup
// of a run, or nil: a quota may admit it once the others are deleted.
func (w writer) apply(ctx context.Context, a actions) (rejection, err error) {
	for i := range a.replace {
		log.FromContext(ctx).Info("Replacing a backup that is still running", "backup", a.replace[i].Name)
		if err := apiserver.Delete(ctx, w.client, &a.replace[i]); err != nil {
			return nil, err
		}
	}
	if a.create != nil {
		switch err := apiserver.Create(ctx, w.client, a.create); {
		case apiserver.IsRejected(err):
			rejection = err
		case err != nil:
			return nil, err
		}
	}
	for i := range a.prune {
		if err := apiserver.Delete(ctx, w.client, &a.prune[i]); err != nil {
			return nil, err
		}
	}
	return rejection, nil
}
