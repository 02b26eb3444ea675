package scale

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/memcached-operator/memcached-operator/test/internal/audit"
	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
)

// plane is an API server with its etcd, on this machine and for one run.
type plane struct {
	dir     string
	servers *envtest.Environment
	// Controllers are Kubernetes' own; nil without them.
	Controllers *Process
	// Admin has all permissions.
	Admin *rest.Config
	Log   *AuditLog
}

// auditPolicy logs the operator's requests, and the changes of Memcacheds and the deletions that cause them.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
omitManagedFields: true
rules:
- level: Metadata
  users: [` + OperatorUser + `]
- level: Metadata
  verbs: [create, patch]
  resources: [{group: cache.memcached-operator.io, resources: [memcacheds]}]
- level: Metadata
  users: [` + AdminUser + `]
  verbs: [delete]
  resources: [{group: apps, resources: [replicasets]}]
- level: None
`

const (
	// OperatorUser is the user of the operator's ServiceAccount.
	OperatorUser = "system:serviceaccount:" + cluster.OperatorNamespace + ":" + cluster.OperatorAccount
	// AdminUser is that of the test.
	AdminUser = "admin"
	// controllersUser starts Kubernetes' controllers, each of which then uses a ServiceAccount of its own.
	controllersUser = "system:kube-controller-manager"
	// startTimeout is for a busy machine.
	startTimeout = 2 * time.Minute
)

// startPlane starts the servers, and Kubernetes' controllers if the run uses them.
func startPlane(dir string, controllers bool) (*plane, error) {
	p := &plane{dir: dir, servers: &envtest.Environment{ControlPlaneStartTimeout: startTimeout, ControlPlaneStopTimeout: exitTimeout}}
	if err := p.start(controllers); err != nil {
		return nil, errors.Join(err, p.stop())
	}
	return p, nil
}

func (p *plane) start(controllers bool) error {
	for name, content := range map[string]string{"audit.yaml": auditPolicy, "audit.log": ""} {
		if err := os.WriteFile(p.path(name), []byte(content), 0o600); err != nil {
			return err
		}
	}
	var err error
	if p.Log, err = openAuditLog(p.path("audit.log")); err != nil {
		return err
	}
	p.servers.ControlPlane.Etcd = &envtest.Etcd{}
	p.servers.ControlPlane.Etcd.Configure().Set("quota-backend-bytes", "8589934592")
	p.servers.ControlPlane.GetAPIServer().Configure().
		Set("service-cluster-ip-range", "10.96.0.0/12"). // each shard has a Service
		Set("audit-policy-file", p.path("audit.yaml")).
		Set("audit-log-path", p.path("audit.log")).
		Set("audit-log-maxsize", "1000000") // in MB, so that it is not rotated
	config, err := p.servers.Start()
	if err != nil {
		return err
	}
	p.Admin = rest.CopyConfig(config)
	p.Admin.QPS = -1 // the API server limits the requests, not this client
	if !controllers {
		return nil
	}
	return p.startControllers()
}

func (p *plane) path(name string) string { return filepath.Join(p.dir, name) }

// startControllers starts those of Kubernetes' controllers that act on the operator's objects, except for those of
// endpoints, as no client here uses a Service.
func (p *plane) startControllers() error {
	user, err := p.servers.AddUser(envtest.User{Name: controllersUser}, nil)
	if err != nil {
		return err
	}
	config, err := user.KubeConfig()
	if err != nil {
		return err
	}
	if err := os.WriteFile(p.path("controllers.conf"), config, 0o600); err != nil {
		return err
	}
	p.Controllers, err = start(p.dir, nil, filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "kube-controller-manager"),
		"--kubeconfig="+p.path("controllers.conf"), "--leader-elect=false", "--secure-port=0", "--use-service-account-credentials=true",
		"--controllers=replicaset-controller,disruption-controller,garbage-collector-controller",
		// the API server limits the requests, not these clients
		"--concurrent-replicaset-syncs=20", "--kube-api-qps=10000", "--kube-api-burst=10000", "--profiling=false")
	return err
}

// Requests returns the operator's requests between two moments, and the admin's. The API server logs a request a moment after
// it answers it.
func (p *plane) Requests(ctx context.Context, from, until time.Time) (requests, changes []audit.Request, err error) {
	if err := cluster.Sleep(ctx, time.Until(until.Add(time.Second))); err != nil {
		return nil, nil, err
	}
	all, err := p.Log.Requests()
	if err != nil {
		return nil, nil, err
	}
	return RequestsOf(all, OperatorUser, from, until), RequestsOf(all, AdminUser, from, until), nil
}

// stop terminates its programs, those that depend on others first.
func (p *plane) stop() error {
	p.Controllers.stop()
	err := p.servers.Stop()
	if p.Log != nil {
		err = errors.Join(err, p.Log.Close())
	}
	return err
}
