package metricsauth

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// reviewer is an API server that knows two tokens, reader's and stranger's, and lets one user read the metrics.
type reviewer struct {
	client.Client
	allows string
	fails  error
	sent   int
}

func (r *reviewer) Create(_ context.Context, o client.Object, _ ...client.CreateOption) error {
	r.sent++
	if r.fails != nil {
		return r.fails
	}
	switch o := o.(type) {
	case *authenticationv1.TokenReview:
		o.Status.Authenticated = o.Spec.Token == "reader" || o.Spec.Token == "stranger"
		o.Status.User = authenticationv1.UserInfo{Username: o.Spec.Token, Extra: map[string]authenticationv1.ExtraValue{"scopes": {"metrics"}}}
	case *authorizationv1.SubjectAccessReview:
		a := o.Spec.NonResourceAttributes
		o.Status.Allowed = o.Spec.User == r.allows && a.Path == "/metrics" && a.Verb == "get" && o.Spec.Extra["scopes"][0] == "metrics"
	}
	return nil
}

// protected returns the filter in front of metrics, its API server and its clock.
func protected() (*guard, *reviewer, *testclock.FakePassiveClock) {
	api, clock := &reviewer{allows: "reader"}, testclock.NewFakePassiveClock(time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC))
	next := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "metrics") })
	return &guard{api: api, log: logr.Discard(), next: next, clock: clock, passed: cache.NewLRUExpireCacheWithClock(maxPassed, clock), known: make(chan struct{}, maxInFlight), unknown: make(chan struct{}, maxInFlight)}, api, clock
}

func get(h http.Handler, authorization, path string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	r.Header.Set("Authorization", authorization)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestMetricsNeedATokenWithPermission(t *testing.T) {
	g, api, _ := protected()
	for name, c := range map[string]struct {
		authorization, path string
		want                int
	}{
		"a reader":                          {"Bearer reader", "/metrics", http.StatusOK},
		"the scheme's case does not matter": {"bearer reader", "/metrics", http.StatusOK},
		"a reader of metrics reads no more": {"Bearer reader", "/debug", http.StatusForbidden},
		"a user without permission":         {"Bearer stranger", "/metrics", http.StatusForbidden},
		"an unknown token":                  {"Bearer made-up", "/metrics", http.StatusUnauthorized},
		"no token":                          {"", "/metrics", http.StatusUnauthorized},
		"a password is no token":            {"Basic reader", "/metrics", http.StatusUnauthorized},
		"an empty token":                    {"Bearer ", "/metrics", http.StatusUnauthorized},
		"a token without a scheme":          {"reader", "/metrics", http.StatusUnauthorized},
	} {
		w := get(g, c.authorization, c.path)
		if passed := w.Body.String() == "metrics"; w.Code != c.want || passed != (c.want == http.StatusOK) {
			t.Errorf("%s: answer %d, want %d, with the body %q", name, w.Code, c.want, w.Body)
		}
	}
	api.fails = errors.New("the server is busy")
	if w := get(g, "Bearer another", "/metrics"); w.Code != http.StatusInternalServerError {
		t.Errorf("without a review: answer %d", w.Code)
	}
}

func TestPermissionIsReviewedOnceAMinute(t *testing.T) {
	g, api, clock := protected()
	for _, c := range []struct {
		after  time.Duration
		token  string
		status int
		sends  int
	}{
		{0, "reader", http.StatusOK, 2}, {59 * time.Second, "reader", http.StatusOK, 0}, {time.Second, "reader", http.StatusOK, 2}, {time.Second, "reader", http.StatusOK, 0},
		{0, "stranger", http.StatusForbidden, 2}, {0, "stranger", http.StatusForbidden, 2}, // a rejection is not remembered
	} {
		clock.SetTime(clock.Now().Add(c.after))
		api.sent = 0
		if w := get(g, "Bearer "+c.token, "/metrics"); w.Code != c.status || api.sent != c.sends {
			t.Errorf("%s, after %s: answer %d and %d requests, want %d", c.token, c.after, w.Code, api.sent, c.sends)
		}
	}
	api.allows = ""
	clock.SetTime(clock.Now().Add(passesFor))
	if w := get(g, "Bearer reader", "/metrics"); w.Code != http.StatusForbidden || len(g.passed.Keys()) != 0 {
		t.Errorf("after its permission was revoked: answer %d, %d readers are remembered", w.Code, len(g.passed.Keys()))
	}
}

func TestUnknownTokensLeaveAPlaceForKnownOnes(t *testing.T) {
	g, _, clock := protected()
	get(g, "Bearer reader", "/metrics")
	for range maxInFlight {
		g.unknown <- struct{}{}
	}
	for _, c := range []struct {
		after  time.Duration
		token  string
		status int
	}{{0, "stranger", http.StatusTooManyRequests}, {knownFor - time.Second, "reader", http.StatusOK}, {knownFor + time.Second, "reader", http.StatusTooManyRequests}} {
		clock.SetTime(clock.Now().Add(c.after))
		if w := get(g, "Bearer "+c.token, "/metrics"); w.Code != c.status {
			t.Errorf("%s, after %s: answer %d", c.token, c.after, w.Code)
		}
	}
}
