package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
)

// refusedVersion of memcached has known remote crashes, and will have them.
const refusedVersion = "1.5.0"

// conditions tests that a person is told what is wrong with a Memcached, by the API
// server or by its conditions, and that a mended one works.
func conditions(ctx context.Context, t *trial) error {
	spec := small(1)
	spec.Version = refusedVersion
	s, err := t.create(ctx, "scorecard-conditions", spec)
	if err != nil {
		return err
	}
	err = s.await(ctx, patience, "Degraded", func(m *v1alpha1.Memcached) error {
		return saysVersionUnsupported(m.Status.Conditions, m.Generation)
	})
	if err != nil {
		return err
	}
	s.tell("version %s is refused: %s", refusedVersion, meta.FindStatusCondition(s.last.Status.Conditions, v1alpha1.ConditionDegraded).Message)

	const sentence = "memory must be at least 64Mi"
	err = s.change(ctx, `{"memory":"32Mi"}`)
	switch {
	case err == nil:
		return errors.New("the API server takes 32Mi of memory, which is too little for memcached to start with")
	case !apierrors.IsInvalid(err):
		return err
	case !strings.Contains(err.Error(), sentence):
		return fmt.Errorf("the API server refuses too little memory, but does not say %q: %w", sentence, err)
	}
	s.tell("32Mi of memory are refused: %v", err)

	if err := s.change(ctx, `{"version":null}`); err != nil {
		return err
	}
	return s.available(ctx)
}

// saysVersionUnsupported is an error unless the conditions are all there, answer
// the generation, and say what is wrong with the version and what to do.
func saysVersionUnsupported(conditions []metav1.Condition, generation int64) error {
	for _, want := range []struct {
		condition string
		status    metav1.ConditionStatus
	}{
		{v1alpha1.ConditionAvailable, metav1.ConditionFalse},
		{v1alpha1.ConditionProgressing, metav1.ConditionFalse},
		{v1alpha1.ConditionDegraded, metav1.ConditionTrue},
	} {
		c := meta.FindStatusCondition(conditions, want.condition)
		if c == nil {
			return fmt.Errorf("it has no condition %s", want.condition)
		}
		if c.Status != want.status || c.ObservedGeneration != generation {
			return fmt.Errorf("%s is %s of generation %d, want %s of %d: %s: %s", c.Type, c.Status, c.ObservedGeneration, want.status, generation, c.Reason, c.Message)
		}
	}
	c := meta.FindStatusCondition(conditions, v1alpha1.ConditionDegraded)
	if c.Reason != v1alpha1.ReasonVersionUnsupported || !strings.Contains(c.Message, refusedVersion) || !strings.Contains(c.Message, "use ") {
		return fmt.Errorf("it is Degraded, but does not say %s and which version to use in place of %s: %s: %s", v1alpha1.ReasonVersionUnsupported, refusedVersion, c.Reason, c.Message)
	}
	return nil
}
