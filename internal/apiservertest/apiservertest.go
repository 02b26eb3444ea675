// Package apiservertest runs an API server with the operator's CRDs for tests.
package apiservertest

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"
)

// OperatorUser is the user of the operator's ServiceAccount.
const OperatorUser = "system:serviceaccount:memcached-operator-system:memcached-operator-controller-manager"

// Server is an API server that runs until Stop.
type Server struct {
	// Admin has all permissions, Operator those with which the operator is installed. Neither limits its requests.
	Admin, Operator *rest.Config

	environment *envtest.Environment
}

// Start starts an API server from KUBEBUILDER_ASSETS. The caller stops it.
func Start(ctx context.Context) (*Server, error) {
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		return nil, errors.New("KUBEBUILDER_ASSETS is not set, so there is no API server: run make test, or eval \"$(make -s env)\" first")
	}
	root, err := findRoot()
	if err != nil {
		return nil, err
	}
	s := &Server{environment: &envtest.Environment{
		CRDDirectoryPaths:        []string{filepath.Join(root, "config", "crd", "bases")},
		ErrorIfCRDPathMissing:    true,
		ControlPlaneStartTimeout: 2 * time.Minute, // the machine may be busy with other tests
	}}
	// The default range has 256 addresses, fewer than the Services of some tests.
	s.environment.ControlPlane.GetAPIServer().Configure().Set("service-cluster-ip-range", "10.96.0.0/16")
	if s.Admin, err = s.environment.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("starting the API server: %w", err), s.Stop())
	}
	s.Admin.QPS = -1
	if err := s.grantOperator(ctx, root); err != nil {
		return nil, errors.Join(fmt.Errorf("granting the operator its permissions: %w", err), s.Stop())
	}
	s.Operator = rest.CopyConfig(s.Admin)
	s.Operator.Impersonate = rest.ImpersonationConfig{UserName: OperatorUser, Groups: []string{"system:serviceaccounts", "system:authenticated"}}
	return s, nil
}

// parallel is how many tests run at a time, since they mostly wait for the server. On two cores, those of
// controllers/memcached take 187 s so, and 288 s two at a time.
const parallel = "16"

// Main is the TestMain of a package whose tests share a server. It does not return.
func Main(m *testing.M, setUp func(*Server) error) {
	s, err := Start(context.Background())
	code := 1
	if err == nil {
		if err = setUp(s); err == nil {
			err = flag.Set("test.parallel", parallel) // a -parallel of the command line is parsed later
		}
		if err == nil {
			code = m.Run()
		}
		err = errors.Join(err, s.Stop())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// Stop stops the API server.
func (s *Server) Stop() error { return s.environment.Stop() }

func (s *Server) grantOperator(ctx context.Context, root string) error {
	raw, err := os.ReadFile(filepath.Join(root, "config", "rbac", "role.yaml"))
	if err != nil {
		return err
	}
	var role rbacv1.ClusterRole
	if err := yaml.UnmarshalStrict(raw, &role); err != nil {
		return err
	}
	admin, err := client.New(s.Admin, client.Options{Scheme: clientgoscheme.Scheme})
	if err != nil {
		return err
	}
	return errors.Join(admin.Create(ctx, &role), admin.Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "operator"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: OperatorUser}},
	}))
}

func findRoot() (string, error) {
	folder, err := os.Getwd()
	for err == nil {
		if _, missing := os.Stat(filepath.Join(folder, "PROJECT")); missing == nil {
			return folder, nil
		}
		if filepath.Dir(folder) == folder {
			err = errors.New("no folder above the working directory has a file PROJECT")
		}
		folder = filepath.Dir(folder)
	}
	return "", err
}
