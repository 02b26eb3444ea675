package podhttp

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

func TestGetRejectsInvalidAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		code int
		body string
		err  string
	}{
		"a status":           {http.StatusOK, `{"phase":"Serving"}`, ""},
		"an error":           {http.StatusServiceUnavailable, `{"phase":"Serving"}`, "503 Service Unavailable"},
		"not JSON":           {http.StatusOK, "ok", "reading /status"},
		"too large a status": {http.StatusOK, `{"podUID":"` + strings.Repeat("x", maxBytes) + `"}`, "unexpected EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // where no time passes while the machine is slow, but for sockets
				untimed(t)
				server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					w.WriteHeader(c.code)
					_, _ = io.WriteString(w, c.body)
				}))
				defer server.Close()
				status, err := Get[struct{ Phase string }](t.Context(), server.Listener.Addr().String(), "/status")
				if c.err == "" && (err != nil || status.Phase != "Serving") {
					t.Errorf("got %+v, %v", status, err)
				}
				if c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
					t.Errorf("error %v, want %q in it", err, c.err)
				}
			})
		})
	}
}

// untimed lets connections take any time: the deadline of a socket isn't in the fake time of a bubble.
func untimed(t *testing.T) {
	dialer.Timeout = 0
	t.Cleanup(func() { dialer.Timeout = connectTimeout })
}

func TestGetStopsWithItsContext(t *testing.T) {
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Get[int](cancelled, "127.0.0.1:1", "/"); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled request: %v", err)
	}
}

// Some networks drop the packets to a Service without pods.
func TestGetWaitsLessForAConnectionThanForAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dialer.ControlContext = func(ctx context.Context, _, _ string, _ syscall.RawConn) error { // before the first packet
			<-ctx.Done()
			return ctx.Err()
		}
		defer func() { dialer.ControlContext = nil }()
		began := time.Now()
		_, err := Get[int](t.Context(), "127.0.0.1:1", "/status")
		if err == nil || !strings.Contains(err.Error(), "dial tcp") || strings.Contains(err.Error(), "Client.Timeout") {
			t.Errorf("error %v, want that of the connection's timeout", err)
		}
		if took := time.Since(began); took != connectTimeout || took >= timeout { //nolint:forbidigo // the fake time of a bubble
			t.Errorf("it took %s", took)
		}
	})
}

// Another program in the pod could have the operator send requests for it.
func TestGetFollowsNoRedirect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		untimed(t)
		var requests atomic.Int64
		target := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requests.Add(1) }))
		defer target.Close()
		for _, code := range []int{http.StatusMovedPermanently, http.StatusFound, http.StatusTemporaryRedirect} {
			pod := httptest.NewServer(http.RedirectHandler(target.URL, code))
			if _, err := Get[int](t.Context(), pod.Listener.Addr().String(), "/status"); err == nil || !strings.Contains(err.Error(), strconv.Itoa(code)) {
				t.Errorf("%d: error %v", code, err)
			}
			pod.Close()
		}
		if n := requests.Load(); n != 0 {
			t.Errorf("the redirect's target received %d requests", n)
		}
	})
}
