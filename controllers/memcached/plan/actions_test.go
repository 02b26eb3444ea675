package plan_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/memcached-operator/memcached-operator/controllers/memcached/plan/plantest"
)

func TestSteadyStateNeedsNoAction(t *testing.T) {
	obs := plantest.Running(t, 3)
	if diff := cmp.Diff([]string(nil), plantest.Describe(plantest.Plan(obs).Actions)); diff != "" {
		t.Error(diff)
	}
}
