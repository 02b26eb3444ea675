// Package cluster has what tests and the demo do with a Kubernetes cluster: install the operator, wait for a state,
// restart a shard, and describe the cluster after a failure.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
)

// Names of config/default.
const (
	OperatorNamespace  = "memcached-operator-system"
	OperatorDeployment = "memcached-operator-controller-manager"
	OperatorAccount    = "memcached-operator-controller-manager"
	operatorContainer  = "manager"
)

// owner is the field owner of kubectl, so that "make deploy" and "kubectl apply --server-side" can change these fields.
const owner = client.FieldOwner("kubectl")

// Cluster is a connection to the cluster that KUBECONFIG names.
type Cluster struct {
	// WithWatch is a client without a cache.
	client.WithWatch
	// Set has what the other client has not: logs, evictions, tables.
	Set    kubernetes.Interface
	config *rest.Config
}

// Connect connects to the cluster that KUBECONFIG names, or to that in which this program runs in a pod.
func Connect() (*Cluster, error) {
	config, err := Config()
	if err != nil {
		return nil, err
	}
	c, err := New(config)
	if err != nil {
		return nil, fmt.Errorf("connecting to the cluster at %s: %w", config.Host, err)
	}
	return c, nil
}

// Config returns the configuration of Connect.
func Config() (*rest.Config, error) {
	path := os.Getenv("KUBECONFIG")
	if path == "" {
		config, err := rest.InClusterConfig()
		if errors.Is(err, rest.ErrNotInCluster) {
			err = errors.New(`KUBECONFIG is not set: run this through make (make test, make test-e2e, make demo), or first eval "$(make -s env)"`)
		}
		return config, err
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return nil, fmt.Errorf("reading KUBECONFIG: %w", err)
	}
	return config, nil
}

// New returns a client of the cluster in config.
func New(config *rest.Config) (*Cluster, error) {
	// Tests poll. The defaults are for programs that run for days.
	config.QPS, config.Burst = 200, 400
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1beta1.AddToScheme(scheme)); err != nil {
		return nil, fmt.Errorf("building the scheme: %w", err)
	}
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, err
	}
	set, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return &Cluster{WithWatch: c, Set: set, config: config}, nil
}

const pollInterval = 300 * time.Millisecond

// hang bounds each wait. It is far more than any takes on a busy machine, since slowness is no failure; tests that wait for
// less put a deadline into the context.
const hang = 10 * time.Minute

// Eventually calls check until it returns nil. When the context is done, or after 10 minutes, it returns the last error.
func Eventually(ctx context.Context, what string, check func(context.Context) error) error {
	deadline := time.Now().Add(hang)
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s: not within %s: %w", what, hang, err)
		}
		if canceled := Sleep(ctx, pollInterval); canceled != nil {
			return fmt.Errorf("%s: %w; last: %w", what, canceled, err)
		}
	}
}

// Gone waits until a deleted object no longer exists.
func (c *Cluster) Gone(ctx context.Context, o client.Object) error {
	return Eventually(ctx, fmt.Sprintf("deletion of %T %s", o, o.GetName()), func(ctx context.Context) error {
		err := c.Get(ctx, client.ObjectKeyFromObject(o), o.DeepCopyObject().(client.Object))
		if err == nil {
			return errors.New("it still exists")
		}
		return client.IgnoreNotFound(err)
	})
}

// Sleep sleeps until d has elapsed or ctx is done.
func Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
