package metricsauth

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	testclock "k8s.io/utils/clock/testing"
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

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

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
	var sent atomic.Int64
	asOperator.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			sent.Add(1)
			return next.RoundTrip(r)
		})
	})
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
		"a token with a letter changed":     {"Bearer " + withOtherSignature(reader), "/metrics", http.StatusUnauthorized},
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

	g := handler.(*guard)
	fakeClock := testclock.NewFakePassiveClock(time.Now())
	g.passed.clock = fakeClock
	get := func(token string) (status int, requests int64) {
		before := sent.Load()
		r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
		r.Header.Set("Authorization", "Bearer "+token)
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		return w.Code, sent.Load() - before
	}
	t.Run("a permission is reviewed once a minute", func(t *testing.T) {
		g.passed.at = nil
		for _, c := range []struct {
			after time.Duration
			sends int64
		}{{0, 2}, {59 * time.Second, 0}, {time.Second, 2}, {time.Second, 0}} {
			fakeClock.SetTime(fakeClock.Now().Add(c.after))
			if status, requests := get(reader); status != http.StatusOK || requests != c.sends {
				t.Errorf("after %s: answer %d and %d requests, want %d", c.after, status, requests, c.sends)
			}
		}
	})
	t.Run("a rejection is not remembered", func(t *testing.T) {
		for range 2 {
			if status, requests := get(stranger); status != http.StatusForbidden || requests != 2 {
				t.Errorf("answer %d and %d requests", status, requests)
			}
		}
	})
	t.Run("unknown tokens leave a place for known ones", func(t *testing.T) {
		for range maxInFlight {
			g.unknown <- struct{}{}
		}
		if status, _ := get(stranger); status != http.StatusTooManyRequests {
			t.Errorf("an unknown token: answer %d", status)
		}
		fakeClock.SetTime(fakeClock.Now().Add(30 * time.Minute))
		if status, requests := get(reader); status != http.StatusOK || requests != 2 {
			t.Errorf("a known token: answer %d and %d requests", status, requests)
		}
		fakeClock.SetTime(fakeClock.Now().Add(knownFor))
		if status, _ := get(reader); status != http.StatusTooManyRequests {
			t.Errorf("a token that hasn't been used for an hour: answer %d", status)
		}
		for range maxInFlight {
			<-g.unknown
		}
	})
	t.Run("a revoked permission has an effect after a minute", func(t *testing.T) {
		if status, _ := get(reader); status != http.StatusOK {
			t.Fatalf("answer %d before", status)
		}
		must(t, admin.Delete(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: role(t, "metrics_reader_role.yaml").Name}}))
		// The API server's own cache of bindings follows within milliseconds.
		if err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
			fakeClock.SetTime(fakeClock.Now().Add(passesFor))
			status, _ := get(reader)
			return status == http.StatusForbidden, nil
		}); err != nil {
			t.Error("the reader still passes")
		}
		if len(g.passed.at) != 0 {
			t.Errorf("%d readers are remembered", len(g.passed.at))
		}
	})
}

func TestRememberedReadersAreBounded(t *testing.T) {
	fakeClock := testclock.NewFakePassiveClock(time.Now())
	p := passed{clock: fakeClock}
	for i := range maxPassed + 3 {
		p.add(reader{byte(i)})
		fakeClock.SetTime(fakeClock.Now().Add(time.Second))
	}
	if len(p.at) != maxPassed {
		t.Errorf("%d readers are remembered, want %d", len(p.at), maxPassed)
	}
	for i, want := range map[int]bool{2: false, 3: true, maxPassed + 2: true} {
		if isKnown, _ := p.has(reader{byte(i)}); isKnown != want {
			t.Errorf("reader %d is known: %t", i, isKnown)
		}
	}
}

// withOtherSignature changes the signature's first letter: the last one holds bits that no decoder reads, and
// fixed letters can be those that the signature has.
func withOtherSignature(token string) string {
	first := strings.LastIndexByte(token, '.') + 1
	letter := "A"
	if token[first] == letter[0] {
		letter = "B"
	}
	return token[:first] + letter + token[first+1:]
}
