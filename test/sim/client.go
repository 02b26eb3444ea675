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
	"k8s.io/apimachinery/pkg/runtime"
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

// operatorClient is the operator's client: it reads from its cache, and its writes
// go to the API server, which may fail them.
type operatorClient struct {
	client.Client // for the scheme and what else no reconcile needs
	w             *World
}

func (c operatorClient) Get(ctx context.Context, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
	return c.w.operator.cache.Get(ctx, key, o, options...)
}

func (c operatorClient) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	return c.w.operator.cache.List(ctx, list, options...)
}

func (c operatorClient) Create(ctx context.Context, o client.Object, options ...client.CreateOption) error {
	return c.w.operatorWrites("create", simtest.KindOf(o), o.GetName(), func() error { return c.w.Server.Create(ctx, o, options...) })
}

func (c operatorClient) Delete(ctx context.Context, o client.Object, options ...client.DeleteOption) error {
	return c.w.operatorWrites("delete", simtest.KindOf(o), o.GetName(), func() error { return c.w.Server.Delete(ctx, o, options...) })
}

func (c operatorClient) Patch(ctx context.Context, o client.Object, patch client.Patch, options ...client.PatchOption) error {
	return c.w.operatorWrites("patch", simtest.KindOf(o), o.GetName(), func() error { return c.w.Server.Patch(ctx, o, patch, options...) })
}

func (c operatorClient) Apply(ctx context.Context, o runtime.ApplyConfiguration, options ...client.ApplyOption) error {
	k, name := simtest.Applied(o)
	return c.w.operatorWrites("apply", k, name, func() error { return c.w.Server.Apply(ctx, o, options...) })
}

func (c operatorClient) Update(ctx context.Context, o client.Object, options ...client.UpdateOption) error {
	if simtest.KindOf(o) != simtest.KindSecret || o.GetResourceVersion() == "" {
		return fmt.Errorf("the operator updates only Secrets that it has read, and not %s of %T", o.GetName(), o)
	}
	return c.w.operatorWrites("update", simtest.KindOf(o), o.GetName(), func() error { return c.w.Server.Update(ctx, o, options...) })
}

func (c operatorClient) DeleteAllOf(context.Context, client.Object, ...client.DeleteAllOfOption) error {
	return errors.New("the operator deletes nothing by the dozen")
}

func (c operatorClient) Status() client.SubResourceWriter { return c.SubResource("status") }

func (c operatorClient) SubResource(name string) client.SubResourceClient {
	return subResource{c.w.Server.SubResource(name), name, c.w}
}

type subResource struct {
	client.SubResourceClient
	name string
	w    *World
}

func (s subResource) Patch(ctx context.Context, o client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
	return s.w.operatorWrites("patch "+s.name+" of", simtest.KindOf(o), o.GetName(), func() error { return s.SubResourceClient.Patch(ctx, o, patch, options...) })
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
func (w *World) operatorWrites(verb string, k simtest.Kind, name string, do func() error) error {
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
		w.log("operator", "%s %s %s%s", verb, k, name, w.gist(before, after))
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
