// Package apiserver has what all controllers share in reading from the API server and writing to it: reads with a
// fallback, writes with preconditions, and what an error means.
package apiserver

import (
	"errors"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
)

// ErrStale says that an object has changed since it was read, so that nothing that was decided about it was written.
var ErrStale = errors.New("the object has changed since it was read")

const (
	// StaleRequeue is when to reconcile again after ErrStale: the cache has caught up by then.
	StaleRequeue = 100 * time.Millisecond
	// RejectionRecheck is when to retry what the API server rejected, as only you can change that.
	RejectionRecheck = 30 * time.Second
)

// IsRejected reports whether the API server rejected a write for what it contains, or because a policy or a quota forbids
// it, or the webhook of one doesn't answer: you have to change something. For a list with two entries of one key, such as two topologySpreadConstraints, the API
// server says so in the message only.
func IsRejected(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) ||
		err != nil && (strings.Contains(err.Error(), "failed to create typed patch object") || strings.Contains(err.Error(), "failed calling webhook"))
}

// IsTerminating reports whether the API server rejected a write because the namespace is being deleted.
func IsTerminating(err error) bool {
	return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

// Result returns the result of a reconcile. That an object has changed is not an error.
func Result(requeueAfter time.Duration, err error) (ctrl.Result, error) {
	switch {
	case errors.Is(err, ErrStale):
		return ctrl.Result{RequeueAfter: StaleRequeue}, nil
	case err != nil:
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: requeueAfter}, nil
}
