// Docs writes what is generated in docs/: the API reference from the CRDs, on the troubleshooting page what the comments in
// api/v1beta1 say about each reason, and on the page of the metrics the lists of them from the agent's table. The text around
// these is written by hand. It also writes config/monitoring: the rules and dashboards that the operator creates, for a
// Prometheus and a Grafana that read files, and what the plugin for kubectl says to do about a reason.
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
	for name, page := range map[string]func(old string) (string, error){
		"docs/api.md":                                        func(string) (string, error) { return apiReference(root) },
		"docs/troubleshooting.md":                            func(old string) (string, error) { return troubleshootingPage(old, reasons) },
		"docs/monitoring-metrics.md":                         metricsPage,
		"cmd/kubectl-memcached/internal/screen/reasons.json": func(string) (string, error) { return actionsByReason(reasons) },
	} {
		old, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			return fmt.Errorf("reading a page: %w", err)
		}
		if pages[name], err = page(string(old)); err != nil {
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
