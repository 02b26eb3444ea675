package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
	"github.com/memcached-operator/memcached-operator/test/internal/report"
)

// scene is a new API server with everything else that a run requires.
type scene struct {
	*plane
	cluster  *cluster.Cluster
	client   client.Client
	operator *operatorProcess
	meter    *meter
	say      func(format string, args ...any)
}

// withScene calls use with a scene for so many Memcacheds and then removes the scene.
func (b *bench) withScene(ctx context.Context, size int, use func(context.Context, *scene) error) (err error) {
	dir, err := os.MkdirTemp(b.dir, "run-")
	if err != nil {
		return err
	}
	p, err := startPlane(dir, !b.withoutControllers)
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
	if err := s.awaitIdle(ctx); err != nil {
		return err
	}
	if err := use(ctx, s); err != nil {
		return fmt.Errorf("%w\nthe operator's last lines:\n%s", err, (&child{log: s.operator.logFile()}).lastLines(20))
	}
	return nil
}

// idleTimeout bounds the wait for an API server that does other work.
const idleTimeout = time.Minute

// awaitIdle waits until the API server is idle: it initializes for some seconds, and longer with new CRDs.
func (s *scene) awaitIdle(ctx context.Context) error {
	for deadline := time.Now().Add(idleTimeout); time.Now().Before(deadline); {
		before := s.meter.read()
		if err := cluster.Sleep(ctx, 2*time.Second); err != nil {
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

// run is what the bench measured with Size Memcacheds.
type run struct {
	Size int
	// Limit of the operator's memory in bytes.
	Limit int64
	// Workers is how many Memcacheds the operator reconciles in parallel.
	Workers int
	Phases  []phase
	// CommandLine is how the operator was started.
	CommandLine string
}

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

func (b *bench) measure(ctx context.Context, size int) (r run, err error) {
	b.say("\n%s Memcacheds of %d shards:", report.Number(size), shards)
	err = b.withScene(ctx, size, func(ctx context.Context, s *scene) error {
		r, err = b.phases(ctx, s, size)
		return err
	})
	return r, err
}

func (b *bench) phases(ctx context.Context, s *scene, size int) (run, error) {
	namespaces := (size + b.options.perNamespace - 1) / b.options.perNamespace
	fleet, err := newFleet(ctx, s.client, s.admin, size, namespaces)
	if err != nil {
		return run{}, err
	}
	if err := startKubelet(ctx, s.admin, size*shards); err != nil {
		return run{}, err
	}
	if err := s.startOperator(ctx); err != nil {
		return run{}, err
	}
	r := run{Size: size, Limit: s.operator.limit, CommandLine: s.operator.commandLine()}
	o := &observer{scene: s, fleet: fleet}
	for _, step := range []struct {
		name string
		do   func(context.Context) error
	}{
		{phaseCreate, func(ctx context.Context) error {
			return o.all(ctx, "Available", isAvailable, func(ctx context.Context) error { return fleet.create(ctx, b.options.from) })
		}},
		{phaseSteady, func(ctx context.Context) error { return cluster.Sleep(ctx, b.options.window) }},
		{phaseResync, func(ctx context.Context) error {
			return o.reconciled(ctx, func(ctx context.Context) error {
				return fleet.patch(ctx, `{"metadata":{"annotations":{"bench":"resync"}}}`)
			})
		}},
		{phaseRestart, func(ctx context.Context) error {
			return o.reconciled(ctx, s.startOperator)
		}},
		{phaseUpdate, func(ctx context.Context) error {
			return o.all(ctx, "up to date", isUpToDate(b.options.to), func(ctx context.Context) error {
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
		r.Phases, r.Workers = append(r.Phases, p), p.workers
		s.say("  %s", p.summary(size))
		if b.options.requests {
			s.say("%s", p.list(size))
		}
	}
	return r, nil
}
