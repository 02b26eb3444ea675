package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// prometheusSuite is the Debian suite whose Prometheus reads our metrics and checks our rules.
const prometheusSuite = "bookworm"

// prometheusPrograms are those of the package that tests run.
var prometheusPrograms = []string{"prometheus", "promtool"}

const prometheusLayout = "1"

// prometheus returns a folder with Debian's prometheus and promtool.
func (d dirs) prometheus() (string, error) {
	m, ok := machines[runtime.GOARCH]
	if !ok {
		return "", fmt.Errorf("prometheus from Debian for %s: not known here", runtime.GOARCH)
	}
	k := key(prometheusSuite, prometheusLayout, runtime.GOARCH)
	return d.build("prometheus", k, "fetching Prometheus from Debian "+prometheusSuite+" (once)", func(dir, final string) error {
		if err := m.fetchPrometheus(dir, final); err != nil {
			return fmt.Errorf("prometheus of %s: %w", prometheusSuite, err)
		}
		return nil
	})
}

// fetchPrometheus unpacks Prometheus into dir, which is renamed to final.
func (m machine) fetchPrometheus(dir, final string) error {
	work := filepath.Join(dir, ".apt")
	defer os.RemoveAll(work)
	s, err := openSuite(prometheusSuite, work)
	if err != nil {
		return err
	}
	root := filepath.Join(dir, "root")
	if err := s.unpack(root, "prometheus"); err != nil {
		return err
	}
	if err := os.RemoveAll(filepath.Join(root, "usr/share")); err != nil { // its web pages
		return err
	}
	for _, program := range prometheusPrograms {
		if _, err := output(m.command(root, filepath.Join(root, "usr/bin", program), "--version")); err != nil {
			return err
		}
		script := strings.ReplaceAll(wrapper(m.command(root, filepath.Join(root, "usr/bin", program)).Args), dir, final)
		if err := os.WriteFile(filepath.Join(dir, program), []byte(script), 0o755); err != nil {
			return err
		}
	}
	return nil
}

// prometheusOperatorModule has the CRDs of prometheus-operator.
const prometheusOperatorModule = "github.com/prometheus-operator/prometheus-operator"

// prometheusCRDs returns the folder with the CRDs of prometheus-operator.
func prometheusCRDs(source string) (string, error) {
	module, err := moduleDir(filepath.Join(source, "prometheusoperator"), prometheusOperatorModule)
	return filepath.Join(module, "example", "prometheus-operator-crd"), err
}
