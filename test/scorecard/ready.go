package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
)

// examplesAnnotation of a ClusterServiceVersion holds the examples that consoles
// show.
const examplesAnnotation = "alm-examples"

// crReady tests that the bundle's example gets available and that clients can use
// the servers that its status names.
func crReady(ctx context.Context, t *trial) error {
	example, err := exampleOf(t.bundle.CSV.Annotations[examplesAnnotation])
	if err != nil {
		return err
	}
	s, err := t.create(ctx, example.Name, example.Spec)
	if err != nil {
		return err
	}
	if err := s.available(ctx); err != nil {
		return err
	}
	_, err = s.write(ctx, "cr-ready", s.last.Status.Servers...)
	return err
}

// exampleOf returns the first Memcached of the bundle's examples.
func exampleOf(annotation string) (*v1alpha1.Memcached, error) {
	var examples []v1alpha1.Memcached
	if err := json.Unmarshal([]byte(annotation), &examples); err != nil {
		return nil, fmt.Errorf("reading the bundle's %s: %w", examplesAnnotation, err)
	}
	for _, e := range examples {
		if e.Kind == "Memcached" {
			return &e, nil
		}
	}
	return nil, errors.New("the bundle has no example of a Memcached")
}
