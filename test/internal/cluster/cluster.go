// Package cluster is what tests and the demo do with a Kubernetes cluster:
// install the operator, wait for what they asked for, restart a shard, and tell
// a person how things stand when they did not come about.
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

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
)

// Where config/default installs the operator.
const (
	OperatorNamespace  = "memcached-operator-system"
	OperatorDeployment = "memcached-operator-controller-manager"
	OperatorAccount    = "memcached-operator-controller-manager"
	operatorContainer  = "manager"
)

// owner of the fields that are applied here: kubectl's own, so that "make
// deploy" and "kubectl apply --server-side" go on where this left off.
const owner = client.FieldOwner("kubectl")

// Cluster is a connection to the cluster that KUBECONFIG names.
type Cluster struct {
	// WithWatch is a client of typed objects, without a cache: each read is of now.
	client.WithWatch
	// Set does what the other client does not: logs, evictions, tables.
	Set    kubernetes.Interface
	config *rest.Config
}

// Connect connects to the cluster that KUBECONFIG names.
func Connect() (*Cluster, error) {
	path := os.Getenv("KUBECONFIG")
	if path == "" {
		return nil, errors.New(`KUBECONFIG is not set: run this through make (make test, make test-e2e, make demo), or first eval "$(make -s env)"`)
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return nil, fmt.Errorf("reading KUBECONFIG: %w", err)
	}
	c, err := New(config)
	if err != nil {
		return nil, fmt.Errorf("connecting to the cluster of %s: %w", path, err)
	}
	return c, nil
}

// New returns a connection to the cluster of config.
func New(config *rest.Config) (*Cluster, error) {
	// Waiting here is asking often; the defaults are for programs that run for days.
	config.QPS, config.Burst = 200, 400
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("building the scheme: %w", err)
		}
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

// askEvery is how long a wait rests between two looks.
const askEvery = 100 * time.Millisecond

// Eventually calls check until it returns nil, and returns its last error when
// that takes longer than within.
func Eventually(ctx context.Context, within time.Duration, what string, check func(context.Context) error) error {
	deadline := time.Now().Add(within)
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%s: %w; last: %w", what, ctx.Err(), err)
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s: not within %s: %w", what, within, err)
		}
		time.Sleep(askEvery)
	}
}
