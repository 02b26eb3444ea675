package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/test/benchscale/usage"
	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
	"github.com/memcached-operator/memcached-operator/test/internal/report"
)

// scene is a fresh API server with everything that a run takes beside it.
type scene struct {
	*plane
	cluster  *cluster.Cluster
	client   client.Client
	operator *operatorProcess
	meter    *meter
	say      func(format string, args ...any)
}

// withScene makes a scene for so many Memcacheds in a folder of its own, has it used,
// and takes all of it away again.
func (b *bench) withScene(ctx context.Context, size int, use func(context.Context, *scene) error) (err error) {
	dir, err := os.MkdirTemp(b.dir, "run-")
	if err != nil {
		return err
	}
	p, err := startPlane(ctx, dir)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	s := &scene{plane: p, say: b.say}
	defer func() {
		cancel()
		if s.operator != nil {
			err = errors.Join(err, s.operator.stop())
		}
		err = errors.Join(err, p.stop(), os.RemoveAll(dir))
	}()
	if s.cluster, err = cluster.New(rest.CopyConfig(p.admin)); err != nil {
		return err
	}
	if s.client, err = client.New(p.admin, client.Options{Scheme: s.cluster.Scheme()}); err != nil {
		return err
	}
	if s.operator, err = installOperator(ctx, s.cluster, p.admin, dir, b.program, size); err != nil {
		return err
	}
	s.meter = startMeter(ctx, p)
	if err := s.settle(ctx); err != nil {
		return err
	}
	if err := use(ctx, s); err != nil {
		return fmt.Errorf("%w\nthe operator's last lines:\n%s", err, lastOf(filepath.Join(dir, filepath.Base(b.program)+".log")))
	}
	return nil
}

// settleWithin bounds how long an API server is waited for that has other work.
const settleWithin = time.Minute

// settle waits until the API server has nothing to do any more: it takes some seconds
// to make itself at home, and more once there are new kinds.
func (s *scene) settle(ctx context.Context) error {
	for deadline := time.Now().Add(settleWithin); time.Now().Before(deadline); {
		before := s.meter.read()
		if err := sleep(ctx, 2*time.Second); err != nil {
			return err
		}
		if after := s.meter.read(); after.Server-before.Server < after.at.Sub(before.at)/5 {
			return nil
		}
	}
	return nil
}

func (s *scene) startOperator(ctx context.Context) error {
	if err := s.operator.start(); err != nil {
		return err
	}
	s.meter.follow(s.operator.process.process.Pid)
	return s.operator.isReady(ctx)
}

func (s *scene) stopOperator() error {
	s.meter.follow(0)
	return s.operator.stop()
}

// run is what was measured with so many Memcacheds.
type run struct {
	Size int
	// Limit of the operator's memory, in bytes.
	Limit int64
	// Workers is how many Memcacheds it reconciles at once.
	Workers int
	Phases  []phase
	// Memory of the operator at the end, after its restart.
	Memory usage.Memory
	// Throttled are the lines of its log that tell of requests which its own client
	// held back.
	Throttled []string
	// Told is how it was started.
	Told string
}

// phase returns the phase of that name, which was measured.
func (r run) phase(name string) phase {
	for _, p := range r.Phases {
		if p.Name == name {
			return p
		}
	}
	return phase{}
}

// The phases of a run, in order.
const (
	phaseCreate  = "create"
	phaseSteady  = "steady"
	phaseResync  = "resync"
	phaseRestart = "restart"
	phaseUpdate  = "update"
)

// measure does a run.
func (b *bench) measure(ctx context.Context, size int) (r run, err error) {
	b.say("\n%s Memcacheds of %d shards:", report.Number(size), shards)
	err = b.withScene(ctx, size, func(ctx context.Context, s *scene) error {
		r, err = b.phases(ctx, s, size)
		return err
	})
	return r, err
}

func (b *bench) phases(ctx context.Context, s *scene, size int) (run, error) {
	namespaces := (size + b.options.together - 1) / b.options.together
	fleet, err := newFleet(ctx, s.client, s.admin, size, namespaces)
	if err != nil {
		return run{}, err
	}
	if _, err := startKubelet(ctx, s.admin, size*shards); err != nil {
		return run{}, err
	}
	if err := s.startOperator(ctx); err != nil {
		return run{}, err
	}
	g, err := s.operator.metrics.read(ctx)
	if err != nil {
		return run{}, err
	}
	r := run{Size: size, Limit: s.operator.limit, Workers: g.Workers, Told: s.operator.told()}
	o := &observer{scene: s, fleet: fleet, workers: g.Workers}
	for _, step := range []struct {
		name string
		do   func(context.Context) error
	}{
		{phaseCreate, func(ctx context.Context) error {
			return o.all(ctx, "Available", isAvailable, func(ctx context.Context) error { return fleet.create(ctx, b.options.from) })
		}},
		{phaseSteady, func(ctx context.Context) error { return sleep(ctx, b.options.window) }},
		{phaseResync, func(ctx context.Context) error {
			return o.goneThrough(ctx, func(ctx context.Context) error {
				return fleet.patch(ctx, `{"metadata":{"annotations":{"bench":"touched"}}}`)
			})
		}},
		{phaseRestart, func(ctx context.Context) error {
			return o.goneThrough(ctx, s.startOperator)
		}},
		{phaseUpdate, func(ctx context.Context) error {
			return o.all(ctx, "settled", isSettled(b.options.to), func(ctx context.Context) error {
				return fleet.patch(ctx, fmt.Sprintf(`{"spec":{"version":%q}}`, b.options.to))
			})
		}},
	} {
		if step.name == phaseRestart {
			if err := s.stopOperator(); err != nil {
				return r, err
			}
		}
		p, err := o.observe(ctx, step.name, step.do)
		if err != nil {
			return r, fmt.Errorf("%s: %w", step.name, err)
		}
		r.Phases = append(r.Phases, p)
		s.say("  %s", p.told(size))
		if b.options.requests {
			s.say("%s", p.list(size))
		}
	}
	r.Memory, err = usage.MemoryOf(s.operator.process.process.Pid)
	r.Throttled = throttled(s.operator.log())
	return r, err
}

// lastOf returns the last lines of a log.
func lastOf(path string) string { return (&child{log: path}).lastLines(20) }
