package suite

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
)

// Metrics returns the operator's metrics, by series, with the role
// a metrics reader sees them.
func (s *Space) Metrics() map[string]float64 {
	s.Helper()
	const reader = "metrics-reader"
	token := s.Token(reader)
	s.MayReadMetrics(reader)
	var text string
	s.Eventually("metrics", func(context.Context) error { // the role takes effect a moment later
		var code int
		if code, text = s.Scrape(token); code != http.StatusOK {
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

// MayReadMetrics gives a ServiceAccount the role of a metrics reader until the test ends.
func (s *Space) MayReadMetrics(account string) {
	s.Helper()
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "memcached-operator-metrics-reader"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: s.Namespace, Name: account}},
	}
	s.Must(K.Create(s.Ctx, binding))
	s.Cleanup(func() { _ = K.Delete(context.Background(), binding) })
}

// Token returns a token of a ServiceAccount that it creates.
func (s *Space) Token(account string) string {
	s.Helper()
	err := K.Create(s.Ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: account}})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		s.Fatal(err)
	}
	request, err := K.Set.CoreV1().ServiceAccounts(s.Namespace).CreateToken(s.Ctx, account, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	s.Must(err)
	return request.Status.Token
}

// Scrape reads the operator's metrics endpoint, through its Service.
func (s *Space) Scrape(token string) (code int, text string) {
	s.Helper()
	service, err := K.Set.CoreV1().Services(cluster.OperatorNamespace).Get(s.Ctx, "memcached-operator-controller-manager-metrics-service", metav1.GetOptions{})
	s.Must(err)
	request, err := http.NewRequestWithContext(s.Ctx, http.MethodGet, "https://"+service.Spec.ClusterIP+":8443/metrics", nil)
	s.Must(err)
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	// The endpoint's certificate is one that the operator made for itself.
	client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true,
	}}
	response, err := client.Do(request)
	s.Must(err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	s.Must(err)
	return response.StatusCode, string(body)
}
