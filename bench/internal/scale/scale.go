// Package scale runs the operator's program as its Deployment does, with a real API server and etcd, and pods in which nothing
// runs. Tests and benchmarks with thousands of shards use it: a scheduler, kubelets and agents are replaced by [StartKubelet].
package scale

import (
	"context"
	"errors"
	"fmt"
	"os"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
)

// Options of a scene.
type Options struct {
	// Dir is an existing folder for temporary files, and Program the path of the operator's program.
	Dir, Program string
	// Size is for how many Memcacheds the operator's memory limit is.
	Size int
	// Controllers starts Kubernetes' own controllers, whose program KUBEBUILDER_ASSETS must have. Without them, use [StartReplicaSets].
	Controllers bool
}

// Scene is a new API server for which the operator is installed and not started.
type Scene struct {
	*plane
	Client   client.Client
	Operator *Operator
}

// With calls use with a scene and then removes the scene. An error contains the operator's last lines.
func With(ctx context.Context, o Options, use func(context.Context, *Scene) error) (err error) {
	dir, err := os.MkdirTemp(o.Dir, "run-")
	if err != nil {
		return err
	}
	p, err := startPlane(dir, o.Controllers)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	s := &Scene{plane: p}
	defer func() {
		cancel()
		if s.Operator != nil {
			s.Operator.Stop()
		}
		err = errors.Join(err, p.stop(), os.RemoveAll(dir))
	}()
	c, err := cluster.New(rest.CopyConfig(p.Admin))
	if err != nil {
		return err
	}
	if s.Client, err = client.New(p.Admin, client.Options{Scheme: c.Scheme()}); err != nil {
		return err
	}
	if s.Operator, err = install(ctx, c, p.Admin, dir, o.Program, o.Size); err != nil {
		return err
	}
	if err := use(ctx, s); err != nil {
		return fmt.Errorf("%w\nthe operator's last lines:\n%s", err, lastLines(s.Operator.logFile()))
	}
	return nil
}
