package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
)

// unsupportedVersion of memcached has known remote crashes that will not be fixed.
const unsupportedVersion = "1.5.0"

// conditions tests that the API server or the conditions say what is wrong with a Memcached, and that the Memcached works
// once that is corrected.
func conditions(ctx context.Context, e *environment) error {
	spec := small(1)
	spec.Version = unsupportedVersion
	i, err := e.create(ctx, "scorecard-conditions", spec)
	if err != nil {
		return err
	}
	err = i.await(ctx, "Degraded", func(m *v1beta1.Memcached) error {
		return checkVersionUnsupported(m.Status.Conditions, m.Generation)
	})
	if err != nil {
		return err
	}
	degraded := meta.FindStatusCondition(i.last.Status.Conditions, v1beta1.ConditionDegraded)
	e.logf("the operator rejects version %s: %s", unsupportedVersion, degraded.Message)

	const message = "memory must be at least 64Mi"
	err = i.change(ctx, `{"memory":"32Mi"}`)
	switch {
	case err == nil:
		return errors.New("the API server accepts 32Mi of memory, with which memcached cannot start")
	case !apierrors.IsInvalid(err):
		return err
	case !strings.Contains(err.Error(), message):
		return fmt.Errorf("the API server rejects too little memory, but does not say %q: %w", message, err)
	}
	e.logf("the API server rejects 32Mi of memory: %v", err)

	if err := i.change(ctx, `{"version":null}`); err != nil {
		return err
	}
	return i.available(ctx)
}

// checkVersionUnsupported returns an error unless all conditions are there and of the generation, and Degraded says what
// is wrong with the version and what to do.
func checkVersionUnsupported(conditions []metav1.Condition, generation int64) error {
	for condition, want := range map[string]metav1.ConditionStatus{
		v1beta1.ConditionAvailable:   metav1.ConditionFalse,
		v1beta1.ConditionProgressing: metav1.ConditionFalse,
		v1beta1.ConditionDegraded:    metav1.ConditionTrue,
	} {
		c := meta.FindStatusCondition(conditions, condition)
		if c == nil {
			return fmt.Errorf("it has no condition %s", condition)
		}
		if c.Status != want || c.ObservedGeneration != generation {
			return fmt.Errorf("%s is %s of generation %d, want %s of %d: %s: %s", condition, c.Status, c.ObservedGeneration, want, generation, c.Reason, c.Message)
		}
	}
	c := meta.FindStatusCondition(conditions, v1beta1.ConditionDegraded)
	if c.Reason != v1beta1.ReasonVersionUnsupported || !strings.Contains(c.Message, unsupportedVersion) || !strings.Contains(c.Message, "Use ") {
		return fmt.Errorf("Degraded must have reason %s and name a version to use instead of %s: %s: %s", v1beta1.ReasonVersionUnsupported, unsupportedVersion, c.Reason, c.Message) //nolint:staticcheck // a condition's name
	}
	return nil
}
