package memcached

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
)

func TestResizingFollowsTheVersionOfKubernetes(t *testing.T) {
	for version, c := range map[string]struct {
		resource string
		want     resources.Resizing
	}{
		"v1.32.13":            {"pods/log", resources.ResizeNothing},
		"v1.33.5-gke.1030000": {"pods/resize", resources.ResizeExceptLessMemory},
		"v1.34.0":             {"pods/resize", resources.ResizeAll},
		"v1.37.1":             {"pods/resize", resources.ResizeAll},
		"of a fork":           {"pods/resize", resources.ResizeAll},
	} {
		mux := http.NewServeMux()
		mux.HandleFunc("/version", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintf(w, `{"gitVersion":%q}`, version) })
		mux.HandleFunc("/api/v1", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":%q}]}`, c.resource)
		})
		server := httptest.NewServer(mux)
		api := discovery.NewDiscoveryClientForConfigOrDie(&rest.Config{Host: server.URL})
		if got, err := Resizing(api); err != nil || got != c.want {
			t.Errorf("Kubernetes %s: %d, %v; want %d", version, got, err, c.want)
		}
		server.Close()
	}
}
