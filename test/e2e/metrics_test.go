package e2e

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
)

func TestMetricsRequireAuthorization(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.apply("cache", small(1)) // something to count
	s.available("cache")
	if code, _ := s.scrape(""); code != http.StatusUnauthorized {
		t.Errorf("without a token the answer is %d", code)
	}
	if code, _ := s.scrape("not-a-token"); code != http.StatusUnauthorized {
		t.Errorf("with a wrong token the answer is %d", code)
	}
	if code, _ := s.scrape(s.token("stranger")); code != http.StatusForbidden {
		t.Errorf("with the token of an account without the role the answer is %d", code)
	}
	metrics := slices.Collect(maps.Keys(s.metrics()))
	for _, name := range []string{"controller_runtime_reconcile_total", "workqueue_depth", "rest_client_requests_total"} {
		if !slices.ContainsFunc(metrics, func(series string) bool { return strings.HasPrefix(series, name) }) {
			t.Errorf("there is no metric %s", name)
		}
	}
}

// metrics returns the operator's metrics, by series, with the role
// a metrics reader sees them.
func (s *space) metrics() map[string]float64 {
	s.Helper()
	const reader = "metrics-reader"
	token := s.token(reader)
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "memcached-operator-metrics-reader"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: s.namespace, Name: reader}},
	}
	s.must(k.Create(s.ctx, binding))
	s.Cleanup(func() { _ = k.Delete(context.Background(), binding) })

	var text string
	s.eventually("metrics", func(context.Context) error { // the role takes effect a moment later
		var code int
		if code, text = s.scrape(token); code != http.StatusOK {
			return fmt.Errorf("the answer is %d: %.200s", code, text)
		}
		return nil
	})
	metrics := map[string]float64{}
	for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); {
		line := lines.Text()
		space := strings.LastIndex(line, " ")
		if strings.HasPrefix(line, "#") || space < 0 {
			continue
		}
		if value, err := strconv.ParseFloat(line[space+1:], 64); err == nil {
			metrics[line[:space]] = value
		}
	}
	return metrics
}

// token returns a token of a ServiceAccount that it creates.
func (s *space) token(account string) string {
	s.Helper()
	err := k.Create(s.ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: account}})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		s.Fatal(err)
	}
	request, err := k.Set.CoreV1().ServiceAccounts(s.namespace).CreateToken(s.ctx, account, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	s.must(err)
	return request.Status.Token
}

// scrape reads the operator's metrics endpoint, through its Service.
func (s *space) scrape(token string) (code int, text string) {
	s.Helper()
	service, err := k.Set.CoreV1().Services(cluster.OperatorNamespace).Get(s.ctx, "memcached-operator-controller-manager-metrics-service", metav1.GetOptions{})
	s.must(err)
	request, err := http.NewRequestWithContext(s.ctx, http.MethodGet, "https://"+service.Spec.ClusterIP+":8443/metrics", nil)
	s.must(err)
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	// The endpoint's certificate is one that the operator made for itself.
	client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true,
	}}
	response, err := client.Do(request)
	s.must(err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	s.must(err)
	return response.StatusCode, string(body)
}
