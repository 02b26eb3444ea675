package simtest

import (
	"context"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
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
	client.Client
	Namespace string
	Now       map[Kind]map[string]client.Object
	Past      map[Kind][]Change

	look func(k Kind, name string) (client.Object, error)
}

// Around returns a real API server with the history of a namespace, which must be empty.
func Around(server client.Client, namespace string) *Server {
	s := &Server{Client: server, Namespace: namespace, Now: map[Kind]map[string]client.Object{}, Past: map[Kind][]Change{}}
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

// written notes an object after a write.
func (s *Server) written(o client.Object, err error) error {
	if k, ok := kindIn(o); ok && o.GetNamespace() == s.Namespace {
		s.note(k, o.GetName())
	}
	return err
}

// Create implements client.Writer.
func (s *Server) Create(ctx context.Context, o client.Object, options ...client.CreateOption) error {
	return s.written(o, s.Client.Create(ctx, o, options...))
}

// Update implements client.Writer.
func (s *Server) Update(ctx context.Context, o client.Object, options ...client.UpdateOption) error {
	return s.written(o, s.Client.Update(ctx, o, options...))
}

// Patch implements client.Writer.
func (s *Server) Patch(ctx context.Context, o client.Object, patch client.Patch, options ...client.PatchOption) error {
	return s.written(o, s.Client.Patch(ctx, o, patch, options...))
}

// Delete implements client.Writer.
func (s *Server) Delete(ctx context.Context, o client.Object, options ...client.DeleteOption) error {
	return s.written(o, s.Client.Delete(ctx, o, options...))
}

// Apply implements client.Writer.
func (s *Server) Apply(ctx context.Context, o runtime.ApplyConfiguration, options ...client.ApplyOption) error {
	err := s.Client.Apply(ctx, o, options...)
	if k, name := Applied(o); goTypes[k] != nil {
		s.note(k, name)
	}
	return err
}

// Applied returns the kind and the name of what is applied, or nothing of what has no name.
func Applied(o runtime.ApplyConfiguration) (k Kind, name string) {
	named, ok := o.(interface {
		GetKind() *string
		GetName() *string
	})
	if !ok {
		return "", ""
	}
	return Kind(*named.GetKind()), *named.GetName()
}

// DeleteAllOf implements client.Writer.
func (s *Server) DeleteAllOf(ctx context.Context, o client.Object, options ...client.DeleteAllOfOption) error {
	return fmt.Errorf("no test deletes all objects of type %T", o)
}

// Status implements client.StatusClient.
func (s *Server) Status() client.SubResourceWriter { return s.SubResource("status") }

// SubResource implements client.SubResourceClientConstructor.
func (s *Server) SubResource(name string) client.SubResourceClient {
	return subResource{s.Client.SubResource(name), s}
}

type subResource struct {
	client.SubResourceClient
	server *Server
}

func (r subResource) Create(ctx context.Context, o, sub client.Object, options ...client.SubResourceCreateOption) error {
	return r.server.written(o, r.SubResourceClient.Create(ctx, o, sub, options...))
}

func (r subResource) Update(ctx context.Context, o client.Object, options ...client.SubResourceUpdateOption) error {
	return r.server.written(o, r.SubResourceClient.Update(ctx, o, options...))
}

func (r subResource) Patch(ctx context.Context, o client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
	return r.server.written(o, r.SubResourceClient.Patch(ctx, o, patch, options...))
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
