package sim

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"

	"github.com/memcached-operator/memcached-operator/internal/simtest"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func labelsOf(o client.Object) labels.Labels { return labels.Set(o.GetLabels()) }

// copyInto sets an object to a copy of another of its type.
func copyInto(from, to client.Object) {
	reflect.ValueOf(to).Elem().Set(reflect.ValueOf(from.DeepCopyObject()).Elem())
}

// killed is what a reconcile panics with when its operator is killed.
type killed struct{}

// newOperatorClient returns the operator's client: it reads from its cache, and its writes go to the API server, which may
// fail them.
func newOperatorClient(w *World) client.Client {
	return simtest.Client{Client: cached{w.Server, w}, Write: w.operatorWrites}
}

// cached reads from the operator's cache.
type cached struct {
	client.Client
	w *World
}

func (c cached) Get(ctx context.Context, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
	return c.w.operator.cache.Get(ctx, key, o, options...)
}

func (c cached) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	return c.w.operator.cache.List(ctx, list, options...)
}

// Update is for Secrets only, as the operator read them.
func (c cached) Update(ctx context.Context, o client.Object, options ...client.UpdateOption) error {
	if simtest.KindOf(o) != simtest.KindSecret || o.GetResourceVersion() == "" {
		return fmt.Errorf("the operator updates only Secrets that it has read, and not %s of %T", o.GetName(), o)
	}
	return c.Client.Update(ctx, o, options...)
}

// liveReader reads from the API server, which may not answer.
type liveReader struct{ w *World }

func (l liveReader) Get(ctx context.Context, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
	if l.w.faulty(l.w.faults.reads) {
		l.w.log("fault", "a read of %s %s times out", simtest.KindOf(o), key.Name)
		return timeout()
	}
	return l.w.Server.Get(ctx, key, o, options...)
}

func (l liveReader) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	return l.w.Server.List(ctx, list, options...)
}

// refusal is what a write may end with that the API server does not do.
func (w *World) refusal(k simtest.Kind, name string) error {
	resource := schema.GroupResource{Resource: string(k)}
	switch w.Rand.IntN(4) {
	case 0:
		return apierrors.NewConflict(resource, name, errors.New("the object has been modified"))
	case 1:
		return timeout()
	case 2:
		return apierrors.NewInternalError(errors.New("etcdserver: leader changed"))
	default:
		return apierrors.NewTooManyRequests("too many requests", 1)
	}
}

func timeout() error {
	return apierrors.NewGenericServerResponse(http.StatusGatewayTimeout, "write", schema.GroupResource{}, "", "request timed out", 0, false)
}

// operatorWrites does a write of the operator, with the faults of the day, and watches it.
func (w *World) operatorWrites(verb string, k simtest.Kind, key client.ObjectKey, do func() error) error {
	name := key.Name
	w.writes++
	if w.faulty(w.faults.refusals) || w.writes == w.rejectAt {
		err := w.refusal(k, name)
		w.log("fault", "rejects %s %s %s: %v", verb, k, name, err)
		return err
	}
	before := w.Server.Now[k][name]
	err := do()
	after := w.Server.Now[k][name]
	if err != nil {
		w.log("operator", "%s %s %s: rejected: %v", verb, k, name, err)
	} else {
		w.log("operator", "%s %s %s: %s", verb, k, name, change{before, after})
		w.watchWrite(verb, k, name, before, after)
	}
	if w.writes == w.killAt {
		panic(killed{})
	}
	if err == nil && (w.faulty(w.faults.answers) || w.writes == w.loseAt) {
		w.log("fault", "the answer is lost")
		return timeout()
	}
	return err
}
