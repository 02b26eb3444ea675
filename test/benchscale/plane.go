package main

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/memcached-operator/memcached-operator/test/internal/audit"
	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
)

// plane is an API server with its etcd and controllers, on this machine and for one run.
type plane struct {
	dir                          string
	etcd, apiServer, controllers *child
	// admin has all permissions.
	admin *rest.Config
	log   *audit.Log
}

// auditPolicy logs the operator's requests, and the changes of Memcacheds that cause them.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
omitManagedFields: true
rules:
- level: Metadata
  users: [` + operatorUser + `]
- level: Metadata
  verbs: [create, patch]
  resources: [{group: cache.memcached-operator.io, resources: [memcacheds]}]
- level: None
`

const (
	adminUser = "bench"
	// controllersUser starts Kubernetes' controllers, each of which then uses a ServiceAccount of its own.
	controllersUser = "system:kube-controller-manager"
	// startTimeout is for a busy machine.
	startTimeout = 2 * time.Minute
)

func startPlane(ctx context.Context, dir string) (p *plane, err error) {
	p = &plane{dir: dir}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.stop())
		}
	}()
	addresses, err := freeAddresses(3)
	if err != nil {
		return nil, err
	}
	if err := p.startEtcd(ctx, addresses[0], addresses[1]); err != nil {
		return nil, err
	}
	tokens, err := p.writeFiles()
	if err != nil {
		return nil, err
	}
	if err := p.startAPIServer(ctx, addresses[0], addresses[2], tokens[adminUser]); err != nil {
		return nil, err
	}
	return p, p.startControllers(tokens[controllersUser])
}

func (p *plane) path(name string) string { return filepath.Join(p.dir, name) }

// program returns the command of a test tool.
func program(name string, args ...string) *exec.Cmd {
	return exec.Command(filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), name), args...) //nolint:gosec // one of the test tools
}

func (p *plane) startEtcd(ctx context.Context, client, peer string) error {
	var err error
	p.etcd, err = startChild(p.dir, program("etcd", "--data-dir="+p.path("etcd"), "--log-level=warn",
		"--listen-client-urls=http://"+client, "--advertise-client-urls=http://"+client, "--listen-peer-urls=http://"+peer,
		"--initial-advertise-peer-urls=http://"+peer, "--initial-cluster=default=http://"+peer,
		// the bench does not measure this machine's disk
		"--unsafe-no-fsync", "--quota-backend-bytes=8589934592"))
	if err != nil {
		return err
	}
	return cluster.Eventually(ctx, startTimeout, "the start of etcd", func(ctx context.Context) error {
		if err := p.etcd.runs(); err != nil {
			return err
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+client+"/health", nil)
		if err != nil {
			return err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return errors.New(response.Status)
		}
		return nil
	})
}

// writeFiles writes the configuration of the API server and returns the users' tokens.
func (p *plane) writeFiles() (tokens map[string]string, err error) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	tokens = map[string]string{}
	var users strings.Builder
	for user, group := range map[string]string{adminUser: "system:masters", controllersUser: "system:authenticated"} {
		token := make([]byte, 16)
		_, _ = rand.Read(token) // it never fails
		tokens[user] = hex.EncodeToString(token)
		fmt.Fprintf(&users, "%s,%s,%s,%s\n", tokens[user], user, user, group)
	}
	for name, content := range map[string]string{
		"users.csv": users.String(), "audit.yaml": auditPolicy, "audit.log": "",
		"accounts.key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})),
	} {
		if err := os.WriteFile(p.path(name), []byte(content), 0o600); err != nil {
			return nil, err
		}
	}
	p.log, err = audit.Open(p.path("audit.log"))
	return tokens, err
}

func (p *plane) startAPIServer(ctx context.Context, etcd, address, token string) error {
	host, port, _ := strings.Cut(address, ":")
	var err error
	p.apiServer, err = startChild(p.dir, program("kube-apiserver", "--etcd-servers=http://"+etcd,
		"--bind-address="+host, "--secure-port="+port, "--endpoint-reconciler-type=none", "--cert-dir="+p.path("certs"),
		"--authorization-mode=RBAC", "--token-auth-file="+p.path("users.csv"),
		"--service-account-issuer=https://"+address, "--service-account-key-file="+p.path("accounts.key"), "--service-account-signing-key-file="+p.path("accounts.key"),
		// pods name no ServiceAccount, and the controller that creates the default one does not run
		"--disable-admission-plugins=ServiceAccount",
		// each shard has a Service
		"--service-cluster-ip-range=10.96.0.0/12",
		// in MB, so that it is not rotated
		"--audit-policy-file="+p.path("audit.yaml"), "--audit-log-path="+p.path("audit.log"), "--audit-log-maxsize=1000000",
		"--profiling=false"))
	if err != nil {
		return err
	}
	return cluster.Eventually(ctx, startTimeout, "the start of the API server", func(ctx context.Context) error {
		if err := p.apiServer.runs(); err != nil {
			return err
		}
		certificate, err := os.ReadFile(p.path("certs/apiserver.crt")) // which it signs itself
		if err != nil {
			return err
		}
		// The API server limits the requests, not this client.
		p.admin = &rest.Config{Host: "https://" + address, BearerToken: token, TLSClientConfig: rest.TLSClientConfig{CAData: certificate}, QPS: -1}
		set, err := kubernetes.NewForConfig(p.admin)
		if err != nil {
			return err
		}
		return set.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
	})
}

// startControllers starts those of Kubernetes' controllers that act on the operator's objects, except for those of
// endpoints, as no client here uses a Service.
func (p *plane) startControllers(token string) error {
	if err := writeKubeconfig(p.path("controllers.conf"), p.admin, token); err != nil {
		return err
	}
	var err error
	p.controllers, err = startChild(p.dir, program("kube-controller-manager",
		"--kubeconfig="+p.path("controllers.conf"), "--leader-elect=false", "--secure-port=0", "--use-service-account-credentials=true",
		"--controllers=replicaset-controller,disruption-controller,garbage-collector-controller",
		// the API server limits the requests, not these clients
		"--concurrent-replicaset-syncs=20", "--kube-api-qps=10000", "--kube-api-burst=10000", "--profiling=false"))
	return err
}

// requests returns the operator's requests between two moments, and this bench's changes of Memcacheds. The API server
// logs a request a moment after it answers it.
func (p *plane) requests(ctx context.Context, from, until time.Time) (requests, changes []audit.Request, err error) {
	if err := cluster.Sleep(ctx, time.Until(until.Add(time.Second))); err != nil {
		return nil, nil, err
	}
	all, err := p.log.Requests()
	if err != nil {
		return nil, nil, err
	}
	return audit.Of(all, operatorUser, from, until), audit.Of(all, adminUser, from, until), nil
}

// runs returns an error if one of its programs has exited.
func (p *plane) runs() error {
	return errors.Join(p.etcd.runs(), p.apiServer.runs(), p.controllers.runs())
}

// stop terminates its programs, those that depend on others first.
func (p *plane) stop() error {
	var errs []error
	for _, c := range []*child{p.controllers, p.apiServer, p.etcd} {
		if c != nil {
			errs = append(errs, c.stop())
		}
	}
	if p.log != nil {
		errs = append(errs, p.log.Close())
	}
	return errors.Join(errs...)
}
