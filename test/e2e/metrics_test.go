package e2e

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/memcached-operator/memcached-operator/test/internal/suite"
)

func TestMetricsRequireAuthorization(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.Apply("cache", suite.Small(1)) // something to count
	s.Available("cache")
	if code, _ := s.Scrape(""); code != http.StatusUnauthorized {
		t.Errorf("without a token the answer is %d", code)
	}
	if code, _ := s.Scrape("not-a-token"); code != http.StatusUnauthorized {
		t.Errorf("with a wrong token the answer is %d", code)
	}
	if code, _ := s.Scrape(s.Token("stranger")); code != http.StatusForbidden {
		t.Errorf("with the token of an account without the role the answer is %d", code)
	}
	metrics := slices.Collect(maps.Keys(s.Metrics()))
	for _, name := range []string{"controller_runtime_reconcile_total", "workqueue_depth", "rest_client_requests_total"} {
		if !slices.ContainsFunc(metrics, func(series string) bool { return strings.HasPrefix(series, name) }) {
			t.Errorf("there is no metric %s", name)
		}
	}
}
