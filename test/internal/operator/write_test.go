package operator

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestWriteHasTheSameNameInEachRun(t *testing.T) {
	const v1, group = "/api/v1/namespaces/e2e-x7k2p/", "/apis/cache.memcached-operator.io/v1alpha1/namespaces/e2e-x7k2p/"
	for _, c := range []struct{ method, path, body, want string }{
		{http.MethodGet, v1 + "pods/cache-0-x7k2p", "", ""},
		{http.MethodPost, "/apis/events.k8s.io/v1/namespaces/e2e-x7k2p/events", `{}`, ""},
		{http.MethodPatch, "/apis/events.k8s.io/v1/namespaces/e2e-x7k2p/events/cache.18a", `{}`, ""},
		{http.MethodPatch, group + "memcacheds/cache/status", `{}`, "PATCH memcacheds cache status"},
		{http.MethodPatch, "/apis/apps/v1/namespaces/e2e-x7k2p/replicasets/cache-0", `{}`, "PATCH replicasets cache-0"},
		{http.MethodPatch, v1 + "pods/cache-preflight-0a1b2c3d4e", `{"kind":"Pod","spec":{"containers":[{"name":"memcached","image":"x"}]}}`, "PATCH pods cache-preflight"},
		{http.MethodDelete, v1 + "pods/cache-preflight-0a1b2c3d4e", "", "DELETE pods cache-preflight"},
		{http.MethodPatch, v1 + "pods/cache-0-x7k2p", `{"metadata":{"uid":"1","annotations":{"cache.memcached-operator.io/stop":"a"}}}`, "PATCH pods cache-0 stop"},
		{http.MethodPatch, v1 + "pods/cache-0-x7k2p", `{"metadata":{"annotations":{"cache.memcached-operator.io/stop":null}}}`, "PATCH pods cache-0 -stop"},
		{http.MethodPatch, v1 + "pods/cache-0-x7k2p", `{"metadata":{"annotations":{"a":"b"}},"spec":{"containers":[{"name":"memcached","image":"x"}]}}`, "PATCH pods cache-0 image"},
		{http.MethodPatch, v1 + "pods/cache-0-x7k2p/resize", `{"spec":{"containers":[{"name":"memcached","resources":{}}]}}`, "PATCH pods cache-0 resize resources"},
	} {
		request := httptest.NewRequest(c.method, c.path, strings.NewReader(c.body))
		got, err := whatOf(request)
		if err != nil || got != c.want {
			t.Errorf("%s %s: name %q, %v; want %q", c.method, c.path, got, err, c.want)
		}
		if body, err := io.ReadAll(request.Body); err != nil || string(body) != c.body {
			t.Errorf("%s %s is sent as %q, %v", c.method, c.path, body, err)
		}
	}
}
