// Command monitoring writes the rules and dashboards that the operator creates to config/monitoring, for a Prometheus
// and a Grafana that read files.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/memcached-operator/memcached-operator/controllers/monitoring"
)

const folder = "../config/monitoring"

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "monitoring:", err)
		os.Exit(1)
	}
}

func run() error {
	files, err := monitoring.Files()
	if err != nil {
		return err
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}
