package apiserver

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func TestRejectedIsWhatYouHaveToChange(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"no error":                         {nil, false},
		"a quota":                          {apierrors.NewForbidden(pods, "p", errors.New("exceeded quota")), true},
		"an invalid field":                 {apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "p", nil), true},
		"a webhook that doesn't answer":    {apierrors.NewInternalError(errors.New(`failed calling webhook "policy.example.com": no endpoints`)), true},
		"the API server has its own fault": {apierrors.NewInternalError(errors.New("etcd has no leader")), false},
		"a conflict":                       {apierrors.NewConflict(pods, "p", errors.New("changed")), false},
	} {
		if got := IsRejected(c.err); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// By default, what was rejected for a few minutes would wait as long again.
func TestFailedReconcileIsRepeatedWithinHalfAMinute(t *testing.T) {
	limiter := ControllerOptions(1).RateLimiter
	request := reconcile.Request{}
	for range 100 {
		if after := limiter.When(request); after > RejectionRecheck {
			t.Fatalf("after %s", after)
		}
	}
	if after := limiter.When(request); after != RejectionRecheck {
		t.Errorf("an object that always fails is repeated after %s", after)
	}
}
