// Package olm runs the Operator Lifecycle Manager on the cluster: v0 in pods, v1 as processes beside it.
package olm

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/builds"
	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/cache"
	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/cluster"
	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/host"
	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/network"
	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/process"
	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/registry"
)

const olmNamespace = "olm"

// Up installs OLM in the running cluster. It can be repeated.
func Up(d cache.Dirs) error {
	if _, ok := process.Alive(d, network.First.Name); !ok {
		return cluster.ErrNotRunning
	}
	o, err := builds.NewOLM(d)
	if err != nil {
		return err
	}
	image, err := o.Image()
	if err != nil {
		return err
	}
	do, state := host.Step, "runs"
	const images = "-o=jsonpath={.items[*].spec.template.spec.containers[*].image}"
	if running, err := cluster.Kubectl(d, "", "--namespace="+olmNamespace, "get", "deployments", images); err == nil && running == image+" "+image {
		do, state = host.Quietly, "runs already"
	}
	if err := do("installing OLM "+o.Version, func() error { return apply(d, o, image) }); err != nil {
		return err
	}
	if err := do("waiting for OLM to be available", func() error { return wait(d) }); err != nil {
		return fmt.Errorf("%w\nsee kubectl -n %s describe pods", err, olmNamespace)
	}
	_, err = fmt.Fprintf(os.Stderr, "OLM %s %s, in namespace %s\n", o.Version, state, olmNamespace)
	return err
}

func apply(d cache.Dirs, o builds.OLM, image string) error {
	if err := registry.PushLayout(o.Layout); err != nil {
		return err
	}
	objects, err := renderOLM(o.Chart, image)
	if err != nil {
		return err
	}
	if err := cluster.Apply(d, filepath.Join(o.Chart, "crds"), ""); err != nil {
		return err
	}
	return cluster.Apply(d, "-", objects)
}

func wait(d cache.Dirs) error {
	_, err := cluster.Kubectl(d, "", "--namespace="+olmNamespace, "rollout", "status", "deployment/olm-operator", "deployment/catalog-operator", "--timeout=2m")
	return err
}
