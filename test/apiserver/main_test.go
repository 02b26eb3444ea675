// Package apiserver has the tests that need a real API server, which all of them share. What only decides by objects is
// tested in the main module, in memory (internal/simtest).
package apiserver

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"github.com/memcached-operator/memcached-operator/internal/simtest"
	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
)

// operatorUser is the user of the operator's ServiceAccount.
const operatorUser = "system:serviceaccount:" + cluster.OperatorNamespace + ":" + cluster.OperatorAccount

var (
	// server has the operator's CRDs. Its Admin has all permissions, Operator those with which the operator is installed.
	// Neither limits its requests.
	server struct{ Admin, Operator *rest.Config }
	admin  client.Client
	// ofOperator is the role that the operator has in the namespaces that it watches.
	ofOperator rbacv1.RoleRef
)

// parallelTests is how many tests run at a time, since they mostly wait for the server.
const parallelTests = "16"

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// run runs the tests with an API server from KUBEBUILDER_ASSETS.
func run(m *testing.M) (code int, err error) {
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		return 1, errors.New("KUBEBUILDER_ASSETS is not set, so there is no API server: run make test, or eval \"$(make -s env)\" first")
	}
	environment := &envtest.Environment{
		CRDDirectoryPaths:        []string{"../../config/crd/bases"},
		ErrorIfCRDPathMissing:    true,
		ControlPlaneStartTimeout: 2 * time.Minute, // the machine may be busy with other tests
	}
	defer func() { err = errors.Join(err, environment.Stop()) }()
	// The default range has 256 addresses, fewer than the Services of some tests.
	environment.ControlPlane.GetAPIServer().Configure().Set("service-cluster-ip-range", "10.96.0.0/16,fd00:96::/112")
	if server.Admin, err = environment.Start(); err != nil {
		return 1, fmt.Errorf("starting the API server: %w", err)
	}
	server.Admin.QPS = -1
	server.Operator = rest.CopyConfig(server.Admin)
	server.Operator.Impersonate = rest.ImpersonationConfig{UserName: operatorUser, Groups: []string{"system:serviceaccounts", "system:authenticated"}}
	if admin, err = client.New(server.Admin, client.Options{Scheme: simtest.Scheme()}); err != nil {
		return 1, err
	}
	if ofOperator, err = grant("role.yaml", operatorUser); err != nil {
		return 1, fmt.Errorf("granting the operator its permissions: %w", err)
	}
	if err := flag.Set("test.parallel", parallelTests); err != nil { // a -parallel of the command line is parsed later
		return 1, err
	}
	return m.Run(), nil
}

// start runs a manager until the test ends.
func start(t testing.TB, mgr ctrl.Manager) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-stopped; err != nil {
			t.Error(err)
		}
	})
}

// grant creates the role of a file of config/rbac, binds it to a user, and waits until it has effect.
func grant(file, user string) (of rbacv1.RoleRef, err error) {
	raw, err := os.ReadFile(filepath.Join("../../config/rbac", file))
	if err != nil {
		return of, err
	}
	var role rbacv1.ClusterRole
	if err := yaml.UnmarshalStrict(raw, &role); err != nil {
		return of, err
	}
	of = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name}
	ctx := context.Background()
	if err := errors.Join(admin.Create(ctx, &role), admin.Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name}, RoleRef: of, Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}},
	})); err != nil {
		return of, err
	}
	rule, review := role.Rules[0], &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: user}}
	if len(rule.NonResourceURLs) > 0 {
		review.Spec.NonResourceAttributes = &authorizationv1.NonResourceAttributes{Path: rule.NonResourceURLs[0], Verb: rule.Verbs[0]}
	} else {
		review.Spec.ResourceAttributes = &authorizationv1.ResourceAttributes{Group: rule.APIGroups[0], Resource: rule.Resources[0], Verb: rule.Verbs[0]}
	}
	return of, cluster.Eventually(ctx, "the rights of "+user, func(ctx context.Context) error { // the API server's own cache is late
		if err := admin.Create(ctx, review); err != nil || review.Status.Allowed {
			return err
		}
		return errors.New(review.Status.Reason)
	})
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
