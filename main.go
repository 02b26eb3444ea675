// The Memcached operator: flags → manager → controllers.
package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	_ "time/tzdata" // windows and schedules name time zones, and the image has none

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers"
	"github.com/memcached-operator/memcached-operator/controllers/apiserver"
	"github.com/memcached-operator/memcached-operator/controllers/cache"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/controllers/monitoring"
	"github.com/memcached-operator/memcached-operator/internal/clusterdns"
	"github.com/memcached-operator/memcached-operator/internal/ports"
	"github.com/memcached-operator/memcached-operator/internal/serverclock"
)

// defaultImage is for Memcacheds that name neither image nor version.
const defaultImage = "docker.io/library/memcached:1.6.45"

// version is the release, set by the linker: -X main.version=1.0.0.
var version = "dev"

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "memcached-operator:", err)
		os.Exit(1)
	}
}

// agentLogFormat returns the log format of the agents for the operator's flags: that of its own log.
func agentLogFormat(flags *flag.FlagSet) string {
	encoder, development := flags.Lookup("zap-encoder").Value.String(), flags.Lookup("zap-devel").Value.String()
	if encoder == "console" || encoder == "" && development == "true" {
		return "text"
	}
	return "json"
}

func run() error {
	var (
		elect   = flag.Bool("leader-elect", false, "wait for the lease, so that only one of several replicas is active")
		metrics = flag.String("metrics-bind-address", "0", "`address` of the metrics, which are served over TLS to clients that the API server authorizes; 0 disables them")
		probes  = flag.String("health-probe-bind-address", ":8081", "`address` of /healthz and /readyz")
		logging zap.Options
	)
	logging.BindFlags(flag.CommandLine)
	flag.Parse()
	ctrl.SetLogger(zap.New(zap.UseFlagOptions(&logging)))
	ctrl.Log.Info("starting the Memcached operator", "version", version)
	if err := limitMemory(os.Getenv("MEMORY_LIMIT")); err != nil {
		return err
	}

	options, err := readOptions(os.Getenv)
	if err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1beta1.AddToScheme(scheme)); err != nil {
		return fmt.Errorf("building the scheme: %w", err)
	}
	config, err := clusterConfig()
	if err != nil {
		return fmt.Errorf("finding the cluster: %w", err)
	}
	clock := &serverclock.Clock{}
	config.Wrap(clock.Observe)
	options.Clock, options.LogFormat = clock, agentLogFormat(flag.CommandLine)
	created, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:                        scheme,
		Cache:                         cache.Options(options.WatchNamespaces...),
		Metrics:                       metricsserver.Options{BindAddress: "0"}, // ports.Serve serves them, with bounds
		LeaderElection:                *elect,
		LeaderElectionID:              "memcached-operator.cache.memcached-operator.io",
		LeaderElectionNamespace:       options.Namespace,
		LeaderElectionReleaseOnCancel: true,
	})
	if err != nil {
		return fmt.Errorf("creating the manager: %w", err)
	}
	mgr, err := ports.Serve(created, *probes, *metrics, os.Getenv("METRICS_CERT_DIR"))
	if err != nil {
		return err
	}
	if err := controllers.SetupWithManager(mgr, options); err != nil {
		return err
	}
	return mgr.Start(ctrl.SetupSignalHandler())
}

// readOptions returns what the environment of the operator's container says.
func readOptions(getenv func(string) string) (controllers.Options, error) {
	o := controllers.Options{
		Image:        getenv("RELATED_IMAGE_AGENT"),
		DefaultImage: cmp.Or(getenv("RELATED_IMAGE_MEMCACHED"), defaultImage),
		Namespace:    getenv("POD_NAMESPACE"),
		Version:      version,
	}
	if o.Image == "" {
		return o, errors.New("RELATED_IMAGE_AGENT is not set: set it to the operator's image, which Jobs run and which contains the agent")
	}
	var err error
	if o.WatchNamespaces, err = parseNamespaces(getenv("WATCH_NAMESPACE")); err != nil {
		return o, err
	}
	if o.ClusterDomain, err = parseClusterDomain(getenv("CLUSTER_DOMAIN")); err != nil {
		return o, err
	}
	if o.Restrictions, err = resources.ParseRestrictions(getenv); err != nil {
		return o, err
	}
	if o.DefaultImageUpdates, err = parseDefaultImageUpdates(getenv("DEFAULT_IMAGE_UPDATES")); err != nil {
		return o, err
	}
	o.Monitoring, err = monitoring.ParseOptions(getenv, o.Namespace)
	return o, err
}

// parseNamespaces returns the namespaces of a comma-separated list, each once. An empty list is all namespaces.
func parseNamespaces(list string) ([]string, error) {
	var names []string
	for name := range strings.SplitSeq(list, ",") {
		if name = strings.TrimSpace(name); name == "" || slices.Contains(names, name) {
			continue
		}
		if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
			return nil, fmt.Errorf("WATCH_NAMESPACE contains %q, which is not the name of a namespace: write a list such as shop,search, or unset it to watch all namespaces", name)
		}
		names = append(names, name)
	}
	if list != "" && len(names) == 0 {
		return nil, fmt.Errorf("WATCH_NAMESPACE is %q, which names no namespace: write a list such as shop,search, or unset it to watch all namespaces", list)
	}
	return names, nil
}

// parseClusterDomain returns the domain of the cluster; if the setting is empty, that of the operator's own pod.
func parseClusterDomain(setting string) (string, error) {
	if setting == "" {
		return clusterdns.Domain(), nil
	}
	if problems := validation.IsDNS1123Subdomain(setting); len(problems) > 0 || len(setting) > resources.MaxClusterDomain {
		return "", fmt.Errorf("CLUSTER_DOMAIN is %q: set it to the domain of the cluster such as cluster.local, or unset it", setting)
	}
	return setting, nil
}

// parseDefaultImageUpdates returns how many Memcacheds follow another default image at a time:
// one, unless text has another number.
func parseDefaultImageUpdates(text string) (int, error) {
	n, err := strconv.ParseUint(cmp.Or(text, "1"), 10, 16)
	if err != nil {
		return 0, fmt.Errorf("DEFAULT_IMAGE_UPDATES is %q: set it to a number from 0 to 65535, or unset it", text)
	}
	return int(n), nil
}

// clusterConfig returns how to connect to the API server.
func clusterConfig() (*rest.Config, error) {
	config, err := ctrl.GetConfig()
	if err != nil {
		return nil, err
	}
	// Audit logs and metrics of the API server show it.
	config.UserAgent = "memcached-operator/" + version
	// Requests are not limited here: the API server's priority and fairness delay them when
	// necessary. A limit would delay the shards of a thousand Memcacheds while the server is
	// idle.
	config.QPS = -1
	config.Wrap(apiserver.Limit)
	return config, nil
}

// limitMemory limits the memory of the Go runtime to nine tenths of limit, the memory limit of the
// operator's container in bytes. The rest is for the pages of the program and for the kernel. An
// empty limit is none, and GOMEMLIMIT has priority.
func limitMemory(limit string) error {
	if limit == "" || os.Getenv("GOMEMLIMIT") != "" {
		return nil
	}
	bytes, err := strconv.ParseInt(limit, 10, 64)
	if err != nil || bytes <= 0 {
		return fmt.Errorf("MEMORY_LIMIT is %q: set it to a number of bytes, or unset it", limit)
	}
	debug.SetMemoryLimit(bytes - bytes/10)
	return nil
}
