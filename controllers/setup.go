// Package controllers sets up the operator's controllers: the indexes of their cache, and what
// they know of the cluster. They don't know each other.
package controllers

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	crcache "sigs.k8s.io/controller-runtime/pkg/cache"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/backup"
	"github.com/memcached-operator/memcached-operator/controllers/drain"
	"github.com/memcached-operator/memcached-operator/controllers/memcached"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/controllers/metrics"
	"github.com/memcached-operator/memcached-operator/controllers/monitoring"
	"github.com/memcached-operator/memcached-operator/controllers/restore"
	"github.com/memcached-operator/memcached-operator/controllers/schedule"
	"github.com/memcached-operator/memcached-operator/controllers/transfer"
	"github.com/memcached-operator/memcached-operator/controllers/upgradeable"
	agentclient "github.com/memcached-operator/memcached-operator/internal/agent/client"
	"github.com/memcached-operator/memcached-operator/internal/index"
	"github.com/memcached-operator/memcached-operator/internal/podhttp"
)

// Options are the settings that the operator was started with.
type Options struct {
	// Image is the operator's own: pods take the agent from it, and Jobs run it.
	Image string
	// DefaultImage of memcached with its tag, the default version.
	DefaultImage string
	// DefaultImageUpdates is how many Memcacheds follow another DefaultImage at a time; 0 is
	// none.
	DefaultImageUpdates int
	// Namespace of the operator; empty when it runs outside the cluster.
	Namespace string
	// ClusterDomain ends the names of all Services.
	ClusterDomain string
	// Version is the operator's release.
	Version string
	// LogFormat of the agents: json or text.
	LogFormat string
	// Restrictions of what the specs of Memcacheds may contain.
	Restrictions resources.Restrictions
	// Monitoring are the settings of the objects for Prometheus and Grafana.
	Monitoring monitoring.Options
	// WatchNamespaces are the namespaces to work in; none is all.
	WatchNamespaces []string
	// Clock of all controllers.
	Clock clock.PassiveClock
}

// SetupWithManager adds all controllers to the manager, which is ready when its cache has been filled.
func SetupWithManager(mgr ctrl.Manager, o Options) error {
	filled := make(filledCache)
	if err := errors.Join(mgr.Add(filled), mgr.AddReadyzCheck("cache", filled.check)); err != nil {
		return err
	}
	openShift, err := isOpenShift(mgr.GetRESTMapper())
	if err != nil {
		return err
	}
	if err := index.Setup(context.Background(), mgr.GetFieldIndexer()); err != nil {
		return err
	}
	recorder := boundedRecorder{mgr.GetEventRecorder("memcached-operator")}
	proxy, removed := transfer.ProxyEnvironment()
	if removed {
		mgr.GetLogger().Info("Jobs get the operator's proxy without its user and password, which everybody who may read their pods would see. " +
			"If the proxy requires them, add the key HTTPS_PROXY to the Secrets of the stores.")
	}
	engine := transfer.Engine{
		Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Progress: transfer.HTTPProgress{}, Recorder: recorder, Clock: o.Clock,
		Options: transfer.Options{Image: o.Image, OmitRunAsUser: openShift, Proxy: proxy, OperatorNamespace: o.Namespace, Restrictions: o.Restrictions},
	}
	err = errors.Join(
		(&memcached.Reconciler{
			Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), AgentClient: agentclient.HTTP{}, AgentWait: podhttp.ReconcileWait, Recorder: recorder, Clock: o.Clock,
			Options: resources.Options{AgentImage: o.Image, DefaultImage: o.DefaultImage, LogFormat: o.LogFormat, OperatorNamespace: o.Namespace, OmitRunAsUser: openShift, ClusterDomain: o.ClusterDomain,
				MonitoringNamespaces: o.Monitoring.Namespaces, Restrictions: o.Restrictions, SomeNamespaces: len(o.WatchNamespaces) > 0},
			DefaultImageUpdates: o.DefaultImageUpdates,
		}).SetupWithManager(mgr),
		(&backup.Reconciler{Engine: engine}).SetupWithManager(mgr),
		(&restore.Reconciler{Engine: engine}).SetupWithManager(mgr),
		(&schedule.Reconciler{Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Recorder: recorder, Clock: o.Clock}).SetupWithManager(mgr),
		upgradeable.SetupWithManager(mgr, o.Clock),
		setupDrain(mgr, o, recorder),
		monitoring.SetupWithManager(mgr, o.Monitoring, o.WatchNamespaces),
	)
	if err != nil {
		return fmt.Errorf("setting up the controllers: %w", err)
	}
	if err := registerMetrics(mgr, o); err != nil {
		return fmt.Errorf("registering the metrics: %w", err)
	}
	return nil
}

// filledCache is closed when the manager has filled its cache. It never does without the rights in each of its namespaces.
type filledCache chan struct{}

// Start implements manager.Runnable. The manager calls it after it has filled its cache.
func (f filledCache) Start(context.Context) error {
	close(f)
	return nil
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (filledCache) NeedLeaderElection() bool { return false }

// check waits, since each probe that fails is an event of the operator's pod.
func (f filledCache) check(probe *http.Request) error {
	select {
	case <-f:
		return nil
	case <-probe.Context().Done():
		return errors.New("the cache has not been filled: the log says if the operator lacks a right, for example because a namespace in WATCH_NAMESPACE was deleted")
	}
}

// setupDrain adds the controller of nodes, which an operator for some namespaces may have no right to read.
func setupDrain(mgr ctrl.Manager, o Options, recorder events.EventRecorder) error {
	if len(o.WatchNamespaces) > 0 {
		return nil
	}
	return (&drain.Reconciler{Client: mgr.GetClient(), Recorder: recorder}).SetupWithManager(mgr)
}

// registerMetrics adds what the operator exports about its objects.
func registerMetrics(mgr ctrl.Manager, o Options) error {
	memcacheds, err := mgr.GetCache().GetInformer(context.Background(), &v1beta1.Memcached{}, crcache.BlockUntilSynced(false))
	if err != nil {
		return err
	}
	changes := metrics.NewChanges(o.Clock, mgr.Elected())
	if _, err := memcacheds.AddEventHandler(changes); err != nil {
		return err
	}
	source := metrics.Source{Cache: mgr.GetClient(), Elected: mgr.Elected()}
	for _, collector := range append(metrics.Operator(o.Version, mgr.Elected()),
		changes,
		&metrics.Memcacheds{Source: source, Changes: changes},
		&metrics.Schedules{Source: source},
		&metrics.Agents{Source: source, Version: o.Version},
		&backup.Collector{Source: source},
	) {
		if err := ctrlmetrics.Registry.Register(collector); err != nil {
			return err
		}
	}
	return nil
}

// isOpenShift reports whether the cluster assigns the user of each pod, so that a pod
// must not set one.
func isOpenShift(mapper meta.RESTMapper) (bool, error) {
	_, err := mapper.RESTMapping(schema.GroupKind{Group: "security.openshift.io", Kind: "SecurityContextConstraints"})
	if err != nil && !meta.IsNoMatchError(err) {
		return false, fmt.Errorf("detecting OpenShift: %w", err)
	}
	return err == nil, nil
}
