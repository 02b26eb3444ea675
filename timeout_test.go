package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// roundTripper is an API server.
type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// silent is an API server that accepts requests and sends nothing, or the beginning of an answer.
func silent(begins bool) roundTripper {
	return func(r *http.Request) (*http.Response, error) {
		if !begins {
			<-r.Context().Done()
			return nil, r.Context().Err()
		}
		body, w := io.Pipe()
		context.AfterFunc(r.Context(), func() { _ = w.CloseWithError(r.Context().Err()) })
		return &http.Response{StatusCode: http.StatusOK, Body: body, Header: http.Header{}}, nil
	}
}

// operatorConfig is the operator's configuration of a client of the API server at an address.
func operatorConfig(t *testing.T, address string) *rest.Config {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config")
	content := "{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, context: {cluster: a}}], clusters: [{name: a, cluster: {server: '" + address + "'}}]}"
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", file)
	config, err := clusterConfig()
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// A worker that waits for ever for a silent API server serves no Memcached.
func TestSilentAPIServerHoldsNoWorker(t *testing.T) {
	config := operatorConfig(t, "http://api.example")
	if config.Timeout != 0 {
		t.Error("the timeout ends watches")
	}
	for name, c := range map[string]struct {
		query  string
		begins bool
	}{"a request": {"", false}, "a body": {"", true}, "a watch without an answer": {"?watch=true", false}} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			client := &http.Client{Transport: config.WrapTransport(silent(c.begins))}
			response, err := client.Get("http://api.example/api/v1/pods" + c.query)
			if c.begins && err == nil {
				_, err = io.ReadAll(response.Body)
				_ = response.Body.Close()
			}
			if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "the API server hasn't answered within 1m0s") || time.Since(began) != time.Minute {
				t.Errorf("%s: %v after %s", name, err, time.Since(began))
			}
		})
	}
}

func TestWatchesAndAnswersAreNotLimited(t *testing.T) {
	config := operatorConfig(t, "http://api.example")
	synctest.Test(t, func(t *testing.T) {
		client := &http.Client{Transport: config.WrapTransport(silent(true))}
		ctx, stop := context.WithTimeout(t.Context(), time.Hour)
		defer stop()
		began := time.Now()
		request, _ := http.NewRequestWithContext(ctx, http.MethodGet, "http://api.example/api/v1/pods?watch=true", nil)
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		if _, err := io.ReadAll(response.Body); err == nil || time.Since(began) != time.Hour {
			t.Errorf("the watch has finished after %s: %v", time.Since(began), err)
		}
	})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.Copy(w, bytes.NewReader([]byte(`{"kind": "PodList", "apiVersion": "v1", "items": [{"metadata": {"name": "a"}}]}`)))
	}))
	defer server.Close()
	clients, err := kubernetes.NewForConfig(operatorConfig(t, server.URL))
	if err != nil {
		t.Fatal(err)
	}
	if pods, err := clients.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{}); err != nil || len(pods.Items) != 1 {
		t.Errorf("%v, %v", pods, err)
	}
}
