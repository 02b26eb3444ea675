package prometheus

import (
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Scrape is how Prometheus scrapes the targets of a PodMonitor or a ServiceMonitor.
type Scrape map[string]any

// renamed returns a structure with the names of Prometheus, which rejects those that it doesn't know.
func renamed(from any) map[string]any {
	to := map[string]any{}
	fields, _ := from.(map[string]any)
	for name, value := range fields {
		to[strings.ToLower(capital.ReplaceAllString(name, "_$0"))] = value
	}
	return to
}

var capital = regexp.MustCompile("[A-Z]")

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
	for _, relabeling := range own {
		relabelings = append(relabelings, renamed(relabeling))
	}
	scrape := renamed(endpoint)
	scrape["metrics_path"], scrape["tls_config"] = scrape["path"], renamed(endpoint["tlsConfig"])
	_, authorized := scrape["bearer_token_file"]
	for _, name := range []string{"port", "path", "relabelings", "bearer_token_file"} {
		delete(scrape, name)
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
