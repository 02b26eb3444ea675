package simtest

import (
	"context"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Change is one version of an object after another; nil is none.
type Change struct {
	Name    string
	Was, Is client.Object
}

// Server is an API server with all that was written through it to one namespace, in order. Objects in it are never
// changed.
type Server struct {
	Client
	Namespace string
	Now       map[Kind]map[string]client.Object
	Past      map[Kind][]Change
	// Mutates is a policy of a Server in memory: it changes an object that is created (was is nil) or updated.
	Mutates func(was, is client.Object)

	look func(k Kind, name string) (client.Object, error)
}

// Around returns a real API server with the history of a namespace, which must be empty.
func Around(server client.Client, namespace string) *Server {
	s := &Server{Namespace: namespace, Now: map[Kind]map[string]client.Object{}, Past: map[Kind][]Change{}}
	s.Client = Client{server, func(_ string, k Kind, key client.ObjectKey, do func() error) error {
		err := do()
		if goTypes[k] != nil && key.Namespace == namespace {
			s.note(k, key.Name)
		}
		return err
	}}
	s.look = func(k Kind, name string) (client.Object, error) {
		o := NewObject(k)
		return o, server.Get(context.Background(), client.ObjectKey{Namespace: namespace, Name: name}, o)
	}
	for _, k := range Kinds {
		s.Now[k] = map[string]client.Object{}
	}
	return s
}

// note reads an object, and keeps how it changed.
func (s *Server) note(k Kind, name string) {
	o, err := s.look(k, name)
	was := s.Now[k][name]
	switch {
	case apierrors.IsNotFound(err):
		if was == nil {
			return
		}
		delete(s.Now[k], name)
		s.Past[k] = append(s.Past[k], Change{name, was, nil})
		return
	case err != nil:
		panic(fmt.Sprintf("looking at %s %s: %v", k, name, err))
	}
	switch {
	case was != nil && was.GetResourceVersion() == o.GetResourceVersion():
		return
	case was != nil && was.GetUID() != o.GetUID(): // the deletion of the one was not noted
		s.Past[k] = append(s.Past[k], Change{name, was, nil})
		was = nil
	}
	s.Now[k][name] = o
	s.Past[k] = append(s.Past[k], Change{name, was, o})
}

// DeleteAllOf implements client.Writer. It deletes objects in the order of their names.
func (s *Server) DeleteAllOf(ctx context.Context, o client.Object, options ...client.DeleteAllOfOption) error {
	var all client.DeleteAllOfOptions
	all.ApplyOptions(options)
	k := KindOf(o)
	for _, name := range s.Names(k) {
		if err := s.Delete(ctx, s.Now[k][name].DeepCopyObject().(client.Object), &all.DeleteOptions); err != nil {
			return err
		}
	}
	return nil
}

// Names of the objects of a kind that there are, in order.
func (s *Server) Names(k Kind) []string { return slices.Sorted(maps.Keys(s.Now[k])) }

// All returns the objects of a kind that there are, in the order of their names. Who
// changes one takes a copy.
func All[T client.Object](s *Server) []T {
	var blank T
	k := KindOf(blank)
	objects := make([]T, 0, len(s.Now[k]))
	for _, name := range s.Names(k) {
		objects = append(objects, s.Now[k][name].(T))
	}
	return objects
}

// Get returns an object, nil where there is none of that name.
func Get[T client.Object](s *Server, name string) T {
	var none T
	if o, ok := s.Now[KindOf(none)][name]; ok {
		return o.(T)
	}
	return none
}
