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

// plane is an API server with its etcd and the controllers that it takes, on this
// machine and for one run.
type plane struct {
	dir                          string
	etcd, apiServer, controllers *child
	// admin may do everything.
	admin *rest.Config
	log   *audit.Log
}

// auditPolicy notes what the operator asks, and the changes of Memcacheds that it is
// to act on.
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
	// adminUser is who this bench is to the API server.
	adminUser = "bench"
	// controllersUser is who Kubernetes' controllers are. Each of them asks for a
	// ServiceAccount's token of its own then.
	controllersUser = "system:kube-controller-manager"
	// startsWithin bounds the start of a program on a machine that is busy.
	startsWithin = 2 * time.Minute
)

// startPlane starts one in an empty folder.
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

// program is one of the test tools.
func program(name string, args ...string) *exec.Cmd {
	return exec.Command(filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), name), args...) //nolint:gosec // one of the test tools
}

func (p *plane) startEtcd(ctx context.Context, client, peer string) error {
	var err error
	p.etcd, err = startChild(p.dir, program("etcd", "--data-dir="+p.path("etcd"), "--log-level=warn",
		"--listen-client-urls=http://"+client, "--advertise-client-urls=http://"+client, "--listen-peer-urls=http://"+peer,
		"--initial-advertise-peer-urls=http://"+peer, "--initial-cluster=default=http://"+peer,
		// it is not to measure this machine's disk
		"--unsafe-no-fsync", "--quota-backend-bytes=8589934592"))
	if err != nil {
		return err
	}
	return cluster.Eventually(ctx, startsWithin, "the start of etcd", func(ctx context.Context) error {
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

// writeFiles writes what the API server reads, and returns the users' tokens.
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
		// pods name no ServiceAccount, and the controller that makes the default one does not run
		"--disable-admission-plugins=ServiceAccount",
		// each shard has a Service
		"--service-cluster-ip-range=10.96.0.0/12",
		// in MB: it is not to be rotated
		"--audit-policy-file="+p.path("audit.yaml"), "--audit-log-path="+p.path("audit.log"), "--audit-log-maxsize=1000000",
		"--profiling=false"))
	if err != nil {
		return err
	}
	return cluster.Eventually(ctx, startsWithin, "the start of the API server", func(ctx context.Context) error {
		if err := p.apiServer.runs(); err != nil {
			return err
		}
		certificate, err := os.ReadFile(p.path("certs/apiserver.crt")) // it makes one of its own
		if err != nil {
			return err
		}
		// No limit of this bench's own: the API server's counts.
		p.admin = &rest.Config{Host: "https://" + address, BearerToken: token, TLSClientConfig: rest.TLSClientConfig{CAData: certificate}, QPS: -1}
		set, err := kubernetes.NewForConfig(p.admin)
		if err != nil {
			return err
		}
		return set.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
	})
}

// startControllers starts those of Kubernetes' controllers that do something about
// what the operator makes, but for those of addresses: nobody here asks for the
// address of a pod by its Service.
func (p *plane) startControllers(token string) error {
	if err := writeKubeconfig(p.path("controllers.conf"), p.admin, token); err != nil {
		return err
	}
	var err error
	p.controllers, err = startChild(p.dir, program("kube-controller-manager",
		"--kubeconfig="+p.path("controllers.conf"), "--leader-elect=false", "--secure-port=0", "--use-service-account-credentials=true",
		"--controllers=replicaset-controller,disruption-controller,garbage-collector-controller",
		// no limit of their own: the API server's counts
		"--concurrent-replicaset-syncs=20", "--kube-api-qps=10000", "--kube-api-burst=10000", "--profiling=false"))
	return err
}

// requests returns what the operator asked from one moment to another, and the
// changes of Memcacheds by this bench. The API server notes a request a moment after
// it answers it.
func (p *plane) requests(ctx context.Context, from, until time.Time) (asked, changes []audit.Request, err error) {
	if err := sleep(ctx, time.Until(until.Add(time.Second))); err != nil {
		return nil, nil, err
	}
	all, err := p.log.Requests()
	if err != nil {
		return nil, nil, err
	}
	return audit.Of(all, operatorUser, from, until), audit.Of(all, adminUser, from, until), nil
}

// runs returns an error if one of its programs has ended.
func (p *plane) runs() error {
	return errors.Join(p.etcd.runs(), p.apiServer.runs(), p.controllers.runs())
}

// stop ends its programs, who needs others first.
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

// sleep waits, at most until ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
