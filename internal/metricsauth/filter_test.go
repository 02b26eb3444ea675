package metricsauth

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/memcached-operator/memcached-operator/internal/apiservertest"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// role reads a ClusterRole of config/rbac.
func role(t *testing.T, file string) *rbacv1.ClusterRole {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("..", "..", "config", "rbac", file))
	must(t, err)
	var r rbacv1.ClusterRole
	must(t, yaml.UnmarshalStrict(raw, &r))
	return &r
}

// TestTheAPIServerDecidesWhoReadsTheMetrics asks a real API server, with the
// rights that the operator and a reader of metrics are installed with.
func TestTheAPIServerDecidesWhoReadsTheMetrics(t *testing.T) {
	config := apiservertest.StartForTest(t).Admin
	admin, err := client.New(config, client.Options{})
	must(t, err)
	ctx := context.Background()

	grant := func(r *rbacv1.ClusterRole, user string) {
		t.Helper()
		must(t, client.IgnoreAlreadyExists(admin.Create(ctx, r))) // the server has the operator's
		must(t, admin.Create(ctx, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: r.Name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: r.Name},
			Subjects:   []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: user}},
		}))
	}
	token := func(name string) string {
		t.Helper()
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
		must(t, admin.Create(ctx, account))
		request := &authenticationv1.TokenRequest{}
		must(t, admin.SubResource("token").Create(ctx, account, request))
		return request.Status.Token
	}
	grant(role(t, "metrics_auth_role.yaml"), "operator")
	grant(role(t, "metrics_reader_role.yaml"), "system:serviceaccount:default:reader")
	reader, stranger := token("reader"), token("stranger")

	asOperator := rest.CopyConfig(config)
	asOperator.Impersonate.UserName = "operator"
	httpClient, err := rest.HTTPClientFor(asOperator)
	must(t, err)
	filter, err := FilterProvider(asOperator, httpClient)
	must(t, err)
	handler, err := filter(logr.Discard(), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "metrics") }))
	must(t, err)

	for name, c := range map[string]struct {
		authorization, path string
		want                int
	}{
		"a reader reads":                    {"Bearer " + reader, "/metrics", http.StatusOK},
		"the scheme's case does not matter": {"bearer " + reader, "/metrics", http.StatusOK},
		"a reader of metrics reads no more": {"Bearer " + reader, "/debug", http.StatusForbidden},
		"a user without permission":         {"Bearer " + stranger, "/metrics", http.StatusForbidden},
		"no token":                          {"", "/metrics", http.StatusUnauthorized},
		"a made-up token":                   {"Bearer made-up", "/metrics", http.StatusUnauthorized},
		"a token with a letter changed":     {"Bearer " + reader[:len(reader)-2] + "xx", "/metrics", http.StatusUnauthorized},
		"a password is no token":            {"Basic " + reader, "/metrics", http.StatusUnauthorized},
		"an empty token":                    {"Bearer ", "/metrics", http.StatusUnauthorized},
		"a token without a scheme":          {reader, "/metrics", http.StatusUnauthorized},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodGet, c.path, nil)
			r.Header.Set("Authorization", c.authorization)
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, r)
			if w.Code != c.want {
				t.Errorf("answer %d, want %d", w.Code, c.want)
			}
			if passed := w.Body.String() == "metrics"; passed != (c.want == http.StatusOK) {
				t.Errorf("body %q with answer %d", w.Body.String(), w.Code)
			}
		})
	}

	t.Run("too many requests are rejected", func(t *testing.T) {
		g := handler.(*guard)
		for range maxInFlight {
			g.slots <- struct{}{}
		}
		r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
		r.Header.Set("Authorization", "Bearer "+reader)
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if w.Code != http.StatusTooManyRequests {
			t.Errorf("answer %d, want %d", w.Code, http.StatusTooManyRequests)
		}
	})
}
