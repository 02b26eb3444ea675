// Package controllers puts the operator's controllers together: what their cache
// holds, and what each of them is made of. They do not know of each other.
package controllers

import (
	"context"
	"errors"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/memcached-operator/memcached-operator/controllers/backup"
	"github.com/memcached-operator/memcached-operator/controllers/memcached"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/manifests"
	"github.com/memcached-operator/memcached-operator/controllers/restore"
	"github.com/memcached-operator/memcached-operator/controllers/schedule"
	"github.com/memcached-operator/memcached-operator/controllers/upgradeable"
	"github.com/memcached-operator/memcached-operator/internal/index"
	"github.com/memcached-operator/memcached-operator/internal/platform"
	"github.com/memcached-operator/memcached-operator/internal/snapshotjob"
)

// Options are what the operator was started with.
type Options struct {
	// Image is the operator's own: pods take the agent from it, and Jobs run it.
	Image string
	// DefaultImage of memcached with its tag, the default version.
	DefaultImage string
	// Namespace of the operator; empty when it runs outside the cluster.
	Namespace string
}

// CacheOptions returns what the manager's cache holds: of the kinds that the
// operator makes only what it made, and of that only what it reads, in the
// namespaces of a comma-separated list; an empty one is all.
func CacheOptions(namespaces string) cache.Options {
	options := memcached.CacheOptions(namespaces)
	options.ByObject[&batchv1.Job{}] = memcached.OnlyOurs(snapshotjob.Trim)
	return options
}

// SetupWithManager has the manager run all controllers.
func SetupWithManager(mgr ctrl.Manager, o Options) error {
	anyUser, err := platform.IsOpenShift(mgr.GetRESTMapper())
	if err != nil {
		return err
	}
	if err := index.Setup(context.Background(), mgr.GetFieldIndexer()); err != nil {
		return err
	}
	cached := index.Client(mgr.GetClient())
	jobs := snapshotjob.Options{Image: o.Image, AnyUser: anyUser}
	recorder := mgr.GetEventRecorder("memcached-operator")
	err = errors.Join(
		(&memcached.Reconciler{
			Client: cached, Live: mgr.GetAPIReader(), Agents: memcached.NewHTTPAgents(), Recorder: recorder, Clock: clock.RealClock{},
			Options: manifests.Options{AgentImage: o.Image, DefaultImage: o.DefaultImage, OperatorNamespace: o.Namespace},
		}).SetupWithManager(mgr),
		(&backup.Reconciler{
			Client: cached, Live: mgr.GetAPIReader(), Progress: snapshotjob.NewHTTP(), Recorder: recorder, Clock: clock.RealClock{}, Options: jobs,
		}).SetupWithManager(mgr),
		(&restore.Reconciler{
			Client: cached, Live: mgr.GetAPIReader(), Progress: snapshotjob.NewHTTP(), Recorder: recorder, Clock: clock.RealClock{}, Options: jobs,
		}).SetupWithManager(mgr),
		(&schedule.Reconciler{Client: cached, Live: mgr.GetAPIReader(), Recorder: recorder, Clock: clock.RealClock{}}).SetupWithManager(mgr),
		upgradeable.SetupWithManager(mgr),
	)
	if err != nil {
		return fmt.Errorf("setting up the controllers: %w", err)
	}
	if err := metrics.Registry.Register(&backup.Collector{Cache: mgr.GetClient(), Acts: mgr.Elected()}); err != nil {
		return fmt.Errorf("registering the metrics of backups: %w", err)
	}
	return nil
}
