package monitoring

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
)

// Names of the objects.
const (
	// shardsName is that of the PodMonitor and the PrometheusRule in the namespace of a Memcached.
	shardsName = "memcached-shards"
	// operatorName is that of the ServiceMonitor and the PrometheusRule in the operator's namespace.
	operatorName = "memcached-operator"
	// metricsService is the Service of the operator's metrics.
	metricsService = "memcached-operator-controller-manager-metrics-service"
	// dashboardPrefix begins the names of the ConfigMaps with dashboards.
	dashboardPrefix = "memcached-operator-dashboard-"
	// dashboardLabel is the label by which Grafana's sidecar finds dashboards.
	dashboardLabel = "grafana_dashboard"
)

// prometheusGroup is the API of prometheus-operator.
var prometheusGroup = schema.GroupVersion{Group: "monitoring.coreos.com", Version: "v1"}

// kind is a kind of object that the controller applies.
type kind struct {
	name     string
	resource schema.GroupVersionResource
}

var (
	podMonitor     = kind{"PodMonitor", prometheusGroup.WithResource("podmonitors")}
	prometheusRule = kind{"PrometheusRule", prometheusGroup.WithResource("prometheusrules")}
	serviceMonitor = kind{"ServiceMonitor", prometheusGroup.WithResource("servicemonitors")}
	configMap      = kind{"ConfigMap", schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}}
)

// shardKinds are those of the objects in the namespace of a Memcached.
var shardKinds = []kind{podMonitor, prometheusRule}

// Options are the settings of the operator's administrator.
type Options struct {
	// Disabled is whether the operator creates none of the objects, and deletes its own.
	Disabled bool
	// Labels are added to the objects, so that a Prometheus selects them.
	Labels map[string]string
	// Interval between two scrapes, such as 30s; empty is Prometheus' own.
	Interval string
	// Namespaces are those of Prometheus, which can connect to the port of the shards' metrics by default.
	Namespaces []string
	// OperatorNamespace is where the operator runs; empty outside of the cluster, where it creates
	// no objects for itself.
	OperatorNamespace string
	// DashboardNamespace is where the ConfigMaps of the dashboards are.
	DashboardNamespace string
	// TokenSecret in the operator's namespace has a token that may read the operator's metrics. If it is empty, Prometheus
	// presents its own.
	TokenSecret string
	// CASecret in the operator's namespace has the CA of the certificate in METRICS_CERT_DIR. If it is empty, Prometheus
	// verifies no certificate, as the operator's own is self-signed.
	CASecret string
}

// maxInterval is how far two scrapes can be apart, as a rate over 5 minutes needs two of them.
const maxInterval = 2 * time.Minute

var (
	durationPattern = regexp.MustCompile(`^([1-9][0-9]*)(ms|s|m|h)$`)
	labelPattern    = regexp.MustCompile(`^([a-z0-9.-]+/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?=([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$`)
)

// ParseOptions reads the settings from the environment.
func ParseOptions(getenv func(string) string, operatorNamespace string) (Options, error) {
	o := Options{OperatorNamespace: operatorNamespace, DashboardNamespace: getenv("MONITORING_DASHBOARD_NAMESPACE"), Interval: getenv("MONITORING_INTERVAL")}
	switch mode := getenv("MONITORING"); mode {
	case "", "auto":
	case "off", "false": // YAML, as in the values of the chart, reads off as false
		o.Disabled = true
	default:
		return o, fmt.Errorf("MONITORING is %q: set it to auto or off, or unset it", mode)
	}
	if interval, err := time.ParseDuration(o.Interval); o.Interval != "" && !o.Disabled && (!durationPattern.MatchString(o.Interval) || err != nil || interval > maxInterval) {
		return o, fmt.Errorf("MONITORING_INTERVAL is %q: set it to a duration of at most 2m, such as 30s, or unset it", o.Interval)
	}
	for label := range strings.SplitSeq(getenv("MONITORING_LABELS"), ",") {
		if label = strings.TrimSpace(label); label == "" {
			continue
		}
		if !labelPattern.MatchString(label) {
			return o, fmt.Errorf("MONITORING_LABELS contains %q: set it to labels such as release=prometheus,team=cache, or unset it", label)
		}
		name, value, _ := strings.Cut(label, "=")
		if o.Labels == nil {
			o.Labels = map[string]string{}
		}
		o.Labels[name] = value
	}
	for namespace := range strings.SplitSeq(getenv("MONITORING_NAMESPACES"), ",") {
		if namespace = strings.TrimSpace(namespace); namespace == "" {
			continue
		}
		if len(validation.IsDNS1123Label(namespace)) > 0 {
			return o, fmt.Errorf("MONITORING_NAMESPACES contains %q: set it to namespaces such as monitoring,prometheus, or unset it", namespace)
		}
		o.Namespaces = append(o.Namespaces, namespace)
	}
	for setting, name := range map[string]*string{"MONITORING_TOKEN_SECRET": &o.TokenSecret, "MONITORING_CA_SECRET": &o.CASecret} {
		if *name = getenv(setting); *name != "" && len(validation.IsDNS1123Subdomain(*name)) > 0 {
			return o, fmt.Errorf("%s is %q: set it to the name of a Secret in the operator's namespace, or unset it", setting, *name)
		}
	}
	if o.DashboardNamespace == "" {
		o.DashboardNamespace = operatorNamespace
	}
	return o, nil
}

// object returns an object of this package with its labels.
func (o Options) object(k kind, namespace, name string, content map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(k.resource.GroupVersion().WithKind(k.name))
	u.SetNamespace(namespace)
	u.SetName(name)
	labels := map[string]string{}
	maps.Copy(labels, o.Labels)
	labels[v1beta1.LabelManagedBy] = v1beta1.ManagedByValue
	labels[v1beta1.LabelName] = v1beta1.NameValue
	u.SetLabels(labels)
	return u
}

// target is an object that should exist, or that should not if it is nil.
type target struct {
	kind            kind
	namespace, name string
	object          *unstructured.Unstructured
}

// shardTargets returns the objects of a namespace with these Memcacheds.
func (o Options) shardTargets(namespace string, memcacheds []v1beta1.Memcached) []target {
	targets := []target{{podMonitor, namespace, shardsName, nil}, {prometheusRule, namespace, shardsName, nil}}
	var disabled, slabs []string
	for i := range memcacheds {
		m := &memcacheds[i]
		switch {
		case !m.Spec.Monitoring.IsEnabled():
			disabled = append(disabled, regexp.QuoteMeta(m.Name))
		case slices.Contains(m.Spec.Monitoring.Details, v1beta1.MonitoringSlabs):
			slabs = append(slabs, regexp.QuoteMeta(m.Name))
		}
	}
	if o.Disabled || len(disabled) == len(memcacheds) {
		return targets
	}
	slices.Sort(disabled)
	slices.Sort(slabs)
	targets[0].object = o.object(podMonitor, namespace, shardsName, map[string]any{"spec": o.podMonitorSpec(disabled, slabs)})
	targets[1].object = o.object(prometheusRule, namespace, shardsName, map[string]any{"spec": ShardRules(namespace)})
	return targets
}

// meta labels of a pod in the service discovery of Prometheus.
const (
	instanceMeta = "__meta_kubernetes_pod_label_app_kubernetes_io_instance"
	shardMeta    = "__meta_kubernetes_pod_label_cache_memcached_operator_io_shard"
)

// The limits of a scrape bound what a pod with the labels of a shard costs Prometheus. A shard with the 63 slab classes
// that memcached can have exports about 2,600 samples, with at most a dozen labels.
const (
	sampleLimit = 5000
	labelLimit  = 32
)

// podMonitorSpec selects the pods of all shards. The relabelings are those of all pods of the
// namespace: which Memcacheds are excluded changes no pod.
func (o Options) podMonitorSpec(disabled, slabs []string) map[string]any {
	var relabelings []any
	if len(disabled) > 0 {
		relabelings = append(relabelings, map[string]any{"sourceLabels": []any{instanceMeta}, "regex": strings.Join(disabled, "|"), "action": "drop"})
	}
	relabelings = append(relabelings,
		map[string]any{"sourceLabels": []any{instanceMeta}, "targetLabel": "memcached", "action": "replace"},
		map[string]any{"sourceLabels": []any{shardMeta}, "targetLabel": "shard", "action": "replace"},
	)
	if len(slabs) > 0 {
		relabelings = append(relabelings, map[string]any{"sourceLabels": []any{instanceMeta}, "regex": strings.Join(slabs, "|"),
			"targetLabel": "__param_slabs", "replacement": "true", "action": "replace"})
	}
	// Any pod can have the labels of a shard, and answer with a redirect to an address that only Prometheus reaches.
	endpoint := map[string]any{"port": "metrics", "path": "/metrics", "scheme": "http", "followRedirects": false, "relabelings": relabelings}
	if o.Interval != "" {
		endpoint["interval"] = o.Interval
	}
	return map[string]any{
		"selector":            map[string]any{"matchLabels": map[string]any{v1beta1.LabelName: v1beta1.NameValue, v1beta1.LabelManagedBy: v1beta1.ManagedByValue}},
		"podMetricsEndpoints": []any{endpoint},
		"sampleLimit":         int64(sampleLimit),
		"labelLimit":          int64(labelLimit),
	}
}

// operatorTargets returns the objects for the operator itself, and the dashboards.
func (o Options) operatorTargets() []target {
	if o.OperatorNamespace == "" {
		return nil
	}
	targets := []target{{serviceMonitor, o.OperatorNamespace, operatorName, nil}, {prometheusRule, o.OperatorNamespace, operatorName, nil}}
	if !o.Disabled {
		endpoint := map[string]any{
			"port": "https", "path": "/metrics", "scheme": "https", "honorLabels": true,
			"tlsConfig":   map[string]any{"insecureSkipVerify": true},
			"relabelings": []any{map[string]any{"targetLabel": "job", "replacement": operatorJob, "action": "replace"}},
		}
		if o.Interval != "" {
			endpoint["interval"] = o.Interval
		}
		if o.TokenSecret != "" {
			endpoint["authorization"] = map[string]any{"type": "Bearer", "credentials": map[string]any{"name": o.TokenSecret, "key": "token"}}
		} else {
			endpoint["bearerTokenFile"] = "/var/run/secrets/kubernetes.io/serviceaccount/token"
		}
		if o.CASecret != "" {
			endpoint["tlsConfig"] = map[string]any{"serverName": metricsService + "." + o.OperatorNamespace + ".svc",
				"ca": map[string]any{"secret": map[string]any{"name": o.CASecret, "key": "ca.crt"}}}
		}
		targets[0].object = o.object(serviceMonitor, o.OperatorNamespace, operatorName, map[string]any{"spec": map[string]any{
			"selector":  map[string]any{"matchLabels": labelsToAny(annotations.OperatorPodLabels())},
			"endpoints": []any{endpoint},
		}})
		targets[1].object = o.object(prometheusRule, o.OperatorNamespace, operatorName, map[string]any{"spec": OperatorRules(o.OperatorNamespace)})
	}
	for name, content := range Dashboards() {
		t := target{configMap, o.DashboardNamespace, dashboardPrefix + name, nil}
		if !o.Disabled {
			t.object = o.object(configMap, t.namespace, t.name, map[string]any{"data": map[string]any{"memcached-" + name + ".json": string(content)}})
			labels := t.object.GetLabels()
			labels[dashboardLabel] = "1"
			t.object.SetLabels(labels)
		}
		targets = append(targets, t)
	}
	return targets
}

func labelsToAny(labels map[string]string) map[string]any {
	all := map[string]any{}
	for name, value := range labels {
		all[name] = value
	}
	return all
}

// contains reports whether an object has all that would be applied. Fields that others or the API
// server set don't count.
func contains(live, desired any) bool {
	switch desired := desired.(type) {
	case map[string]any:
		of, ok := live.(map[string]any)
		if !ok {
			return false
		}
		for name, value := range desired {
			if !contains(of[name], value) {
				return false
			}
		}
		return true
	case []any:
		of, ok := live.([]any)
		if !ok || len(of) != len(desired) {
			return false
		}
		for i := range desired {
			if !contains(of[i], desired[i]) {
				return false
			}
		}
		return true
	default:
		return live == desired
	}
}
