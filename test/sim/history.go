package sim

import (
	"context"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// change is one version of an object after another; nil is none.
type change struct {
	name    string
	was, is client.Object
}

// history is an API server with all that was ever written to it, in order. Objects
// in it are never changed.
type history struct {
	client.Client
	namespace string
	// look reads an object.
	look func(k kind, name string) (client.Object, error)
	now  map[kind]map[string]client.Object
	past map[kind][]change
}

func newHistory(server client.Client, namespace string) *history {
	h := &history{Client: server, namespace: namespace, now: map[kind]map[string]client.Object{}, past: map[kind][]change{}}
	h.look = func(k kind, name string) (client.Object, error) {
		o := newObject(k)
		return o, server.Get(context.Background(), client.ObjectKey{Namespace: namespace, Name: name}, o)
	}
	for _, k := range kinds {
		h.now[k] = map[string]client.Object{}
	}
	return h
}

// note reads an object, and keeps how it changed.
func (h *history) note(k kind, name string) {
	o, err := h.look(k, name)
	was := h.now[k][name]
	switch {
	case apierrors.IsNotFound(err):
		if was == nil {
			return
		}
		delete(h.now[k], name)
		h.past[k] = append(h.past[k], change{name, was, nil})
		return
	case err != nil:
		panic(fmt.Sprintf("looking at %s %s: %v", k, name, err))
	}
	switch {
	case was != nil && was.GetResourceVersion() == o.GetResourceVersion():
		return
	case was != nil && was.GetUID() != o.GetUID(): // the end of the one was not noted
		h.past[k] = append(h.past[k], change{name, was, nil})
		was = nil
	}
	h.now[k][name] = o
	h.past[k] = append(h.past[k], change{name, was, o})
}

// write writes to an object and notes how it changed.
func (h *history) write(k kind, name string, do func() error) error {
	err := do()
	h.note(k, name)
	return err
}

// must is for the models, whose writes are never rejected.
func (h *history) must(o client.Object, do func() error) {
	if err := h.write(kindOf(o), o.GetName(), do); err != nil {
		panic(fmt.Sprintf("writing %s %s: %v", kindOf(o), o.GetName(), err))
	}
}

func (h *history) create(o client.Object) {
	h.must(o, func() error { return h.Create(context.Background(), o) })
}

func (h *history) update(o client.Object) {
	h.must(o, func() error { return h.Update(context.Background(), o) })
}

func (h *history) updateStatus(o client.Object) {
	h.must(o, func() error { return h.Status().Update(context.Background(), o) })
}

func (h *history) delete(o client.Object, options ...client.DeleteOption) {
	h.must(o, func() error { return client.IgnoreNotFound(h.Delete(context.Background(), o, options...)) })
}

// names of the objects of a kind that there are, in order.
func (h *history) names(k kind) []string { return slices.Sorted(maps.Keys(h.now[k])) }

// all returns the objects of a kind that there are, in the order of their names. Who
// changes one takes a copy.
func all[T client.Object](h *history) []T {
	var blank T
	k := kindOf(blank)
	objects := make([]T, 0, len(h.now[k]))
	for _, name := range h.names(k) {
		objects = append(objects, h.now[k][name].(T))
	}
	return objects
}

// get returns an object, nil where there is none of that name.
func get[T client.Object](h *history, name string) T {
	var none T
	if o, ok := h.now[kindOf(none)][name]; ok {
		return o.(T)
	}
	return none
}
