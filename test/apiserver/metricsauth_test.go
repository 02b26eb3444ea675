package apiserver

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/memcached-operator/memcached-operator/internal/metricsauth"
)

// The rights are those that the operator and a reader of metrics are installed with.
func TestTheAPIServerDecidesWhoReadsTheMetrics(t *testing.T) {
	t.Parallel()
	tr := newTransfers(t)
	token := func(name string) string {
		t.Helper()
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: tr.Namespace, Name: name}}
		request := &authenticationv1.TokenRequest{}
		tr.Must(errors.Join(admin.Create(t.Context(), account), admin.SubResource("token").Create(t.Context(), account, request)))
		return request.Status.Token
	}
	for file, user := range map[string]string{"metrics_auth_role.yaml": "metrics-operator", "metrics_reader_role.yaml": "system:serviceaccount:" + tr.Namespace + ":reader"} {
		_, err := grant(file, user)
		tr.Must(err)
	}
	reader, stranger := token("reader"), token("stranger")

	asOperator := rest.CopyConfig(server.Admin)
	asOperator.Impersonate.UserName = "metrics-operator"
	httpClient, err := rest.HTTPClientFor(asOperator)
	tr.Must(err)
	handler, err := metricsauth.Protect(asOperator, httpClient, logr.Discard(), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "metrics") }))
	tr.Must(err)
	for name, c := range map[string]struct {
		token, path string
		want        int
	}{
		"a reader reads":                    {reader, "/metrics", http.StatusOK},
		"a reader of metrics reads no more": {reader, "/debug", http.StatusForbidden},
		"a user without permission":         {stranger, "/metrics", http.StatusForbidden},
		"a made-up token":                   {"made-up", "/metrics", http.StatusUnauthorized},
	} {
		r := httptest.NewRequest(http.MethodGet, c.path, nil)
		r.Header.Set("Authorization", "Bearer "+c.token)
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if w.Code != c.want {
			t.Errorf("%s: answer %d, want %d", name, w.Code, c.want)
		}
	}
}
