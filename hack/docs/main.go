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
	reasons, err := readReasons(filepath.Join(root, "api", "v1beta1"))
	if err != nil {
		return err
	}
	pages := map[string]string{}
	for name, page := range map[string]func() (string, error){
		"docs/api.md":                                        func() (string, error) { return apiReference(root) },
		"docs/troubleshooting.md":                            func() (string, error) { return troubleshootingPage(reasons) },
		"docs/monitoring-metrics.md":                         metricsPage,
		"cmd/kubectl-memcached/internal/screen/reasons.json": func() (string, error) { return actionsByReason(reasons) },
	} {
		if pages[name], err = page(); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
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
