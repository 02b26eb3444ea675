// Docs writes the generated pages of docs/: the API reference from the CRDs, the
// troubleshooting page from the comments of the reasons in api/v1beta1, and the reference of
// the metrics from the agent's table. It also writes config/monitoring: the rules and dashboards that the operator creates,
// for a Prometheus and a Grafana that read files, and what the plugin for kubectl says to do about a reason.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/memcached-operator/memcached-operator/controllers/monitoring"
)

func main() {
	if err := run(".."); err != nil {
		fmt.Fprintln(os.Stderr, "hack/docs:", err)
		os.Exit(1)
	}
}

// run writes the generated pages of the repository at root, and removes other files of config/monitoring.
func run(root string) error {
	reference, err := apiReference(root)
	if err != nil {
		return err
	}
	reasons, err := readReasons(filepath.Join(root, "api", "v1beta1"))
	if err != nil {
		return err
	}
	troubleshooting, err := troubleshootingPage(reasons)
	if err != nil {
		return err
	}
	actions, err := actionsByReason(reasons)
	if err != nil {
		return err
	}
	ofShards, err := metricsPage()
	if err != nil {
		return err
	}
	pages := map[string]string{"docs/api.md": reference, "docs/troubleshooting.md": troubleshooting, "docs/monitoring-metrics.md": ofShards,
		"cmd/kubectl-memcached/internal/screen/reasons.json": actions}
	files, err := monitoring.Files()
	if err != nil {
		return err
	}
	for name, content := range files {
		pages["config/monitoring/"+name] = string(content)
	}
	folder := filepath.Join(root, "config/monitoring")
	if err := errors.Join(os.RemoveAll(folder), os.Mkdir(folder, 0o755)); err != nil {
		return err
	}
	for name, text := range pages {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
			return fmt.Errorf("writing a page: %w", err)
		}
	}
	return nil
}
