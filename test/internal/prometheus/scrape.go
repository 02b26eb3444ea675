package prometheus

import (
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Scrape is how Prometheus scrapes the targets of a PodMonitor or a ServiceMonitor.
type Scrape map[string]any

// field is a field of the monitors as the configuration of Prometheus names it.
var fields = map[string]string{
	"sourceLabels": "source_labels", "targetLabel": "target_label", "regex": "regex", "replacement": "replacement", "action": "action",
	"path": "metrics_path", "scheme": "scheme", "honorLabels": "honor_labels", "insecureSkipVerify": "insecure_skip_verify",
	"followRedirects": "follow_redirects",
}

// renamed returns a structure with the names of Prometheus. A field that is unknown here is an error.
func renamed(from map[string]any) (map[string]any, error) {
	to := map[string]any{}
	for name, value := range from {
		if fields[name] == "" {
			return nil, fmt.Errorf("no field of the configuration is known for %s", name)
		}
		to[fields[name]] = value
	}
	return to, nil
}

// ScrapeOf returns the configuration that prometheus-operator makes of a PodMonitor or ServiceMonitor with one endpoint.
// Prometheus of Debian has no service discovery for Kubernetes: file contains what that would find. The token is
// that of the ServiceAccount of Prometheus.
func ScrapeOf(monitor *unstructured.Unstructured, file, token string) (Scrape, error) {
	endpoints, port, labels := "podMetricsEndpoints", "__meta_kubernetes_pod_container_port_name", "__meta_kubernetes_pod_label_"
	if monitor.GetKind() == "ServiceMonitor" {
		endpoints, port, labels = "endpoints", "__meta_kubernetes_endpoint_port_name", "__meta_kubernetes_service_label_"
	}
	all, _, err := unstructured.NestedSlice(monitor.Object, "spec", endpoints)
	if err != nil || len(all) != 1 {
		return nil, fmt.Errorf("%s has %d endpoints, not one: %w", monitor.GetName(), len(all), err)
	}
	endpoint := all[0].(map[string]any)
	selected, _, err := unstructured.NestedStringMap(monitor.Object, "spec", "selector", "matchLabels")
	if err != nil || len(selected) == 0 {
		return nil, fmt.Errorf("%s selects no labels: %w", monitor.GetName(), err)
	}
	relabelings := []any{
		map[string]any{"source_labels": []any{port}, "regex": endpoint["port"], "action": "keep"},
		map[string]any{"source_labels": []any{"__meta_kubernetes_namespace"}, "target_label": "namespace"},
		map[string]any{"source_labels": []any{"__meta_kubernetes_pod_name"}, "target_label": "pod"},
	}
	for name, value := range selected {
		relabelings = append(relabelings, map[string]any{"source_labels": []any{labels + sanitized(name)}, "regex": regexp.QuoteMeta(value), "action": "keep"})
	}
	own, _ := endpoint["relabelings"].([]any)
	for _, r := range own {
		relabeling, err := renamed(r.(map[string]any))
		if err != nil {
			return nil, err
		}
		relabelings = append(relabelings, relabeling)
	}
	tls, _ := endpoint["tlsConfig"].(map[string]any)
	_, authorized := endpoint["bearerTokenFile"]
	for _, name := range []string{"port", "relabelings", "tlsConfig", "bearerTokenFile"} {
		delete(endpoint, name)
	}
	scrape, err := renamed(endpoint)
	if err != nil {
		return nil, err
	}
	if tls != nil {
		if scrape["tls_config"], err = renamed(tls); err != nil {
			return nil, err
		}
	}
	if authorized {
		scrape["authorization"] = map[string]any{"credentials": token}
	}
	for name, limit := range map[string]string{"sampleLimit": "sample_limit", "labelLimit": "label_limit"} {
		if value, found, err := unstructured.NestedInt64(monitor.Object, "spec", name); err != nil {
			return nil, err
		} else if found {
			scrape[limit] = value
		}
	}
	scrape["job_name"] = monitor.GetNamespace() + "/" + monitor.GetName()
	scrape["relabel_configs"] = relabelings
	scrape["file_sd_configs"] = []any{map[string]any{"files": []any{file}, "refresh_interval": "1s"}}
	return scrape, nil
}

var notInLabels = regexp.MustCompile(`[^a-zA-Z0-9_]`)

func sanitized(label string) string { return notInLabels.ReplaceAllString(label, "_") }

// Target is an address with what the service discovery knows of it.
type Target struct {
	Targets []string          `json:"targets"`
	Labels  map[string]string `json:"labels"`
}

// NewTarget returns a target. The labels are those of the object, whose kind is pod or service.
func NewTarget(address, namespace, pod, kind string, labels map[string]string, meta map[string]string) Target {
	t := Target{Targets: []string{address}, Labels: map[string]string{"__meta_kubernetes_namespace": namespace, "__meta_kubernetes_pod_name": pod}}
	for name, value := range labels {
		t.Labels["__meta_kubernetes_"+kind+"_label_"+sanitized(name)] = value
	}
	for name, value := range meta {
		t.Labels["__meta_kubernetes_"+name] = value
	}
	return t
}

// Shorten divides the windows of an expression and the seconds of an hour.
func Shorten(expr string, by float64) string {
	expr = windows.ReplaceAllStringFunc(expr, func(window string) string {
		parts := windows.FindStringSubmatch(window)
		return parts[1] + ShortenDuration(parts[2], by) + parts[3]
	})
	return strings.ReplaceAll(expr, "3600", fmt.Sprintf("%g", 3600/by))
}

var windows = regexp.MustCompile(`(\[|offset )([0-9]+[smhd])(\]?)`)
