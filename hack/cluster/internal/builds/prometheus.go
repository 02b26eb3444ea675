package builds

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/cache"
	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/debian"
	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/host"
)

// prometheusSuite is the Debian suite whose Prometheus reads our metrics and checks our rules.
const prometheusSuite = "bookworm"

// prometheusPrograms are those of the package that tests run.
var prometheusPrograms = []string{"prometheus", "promtool"}

const prometheusLayout = "1"

// Prometheus returns a folder with Debian's prometheus and promtool.
func Prometheus(d cache.Dirs) (string, error) {
	m, ok := debian.Machines[runtime.GOARCH]
	if !ok {
		return "", fmt.Errorf("prometheus from Debian for %s: not known here", runtime.GOARCH)
	}
	k := cache.Key(prometheusSuite, prometheusLayout, runtime.GOARCH)
	return d.Build("prometheus", k, "fetching Prometheus from Debian "+prometheusSuite+" (once)", func(dir, final string) error {
		if err := fetchPrometheus(m, dir, final); err != nil {
			return fmt.Errorf("prometheus of %s: %w", prometheusSuite, err)
		}
		return nil
	})
}

// fetchPrometheus unpacks Prometheus into dir, which is renamed to final.
func fetchPrometheus(m debian.Machine, dir, final string) error {
	work := filepath.Join(dir, ".apt")
	defer os.RemoveAll(work)
	s, err := debian.Open(prometheusSuite, work)
	if err != nil {
		return err
	}
	root := filepath.Join(dir, "root")
	if err := s.Unpack(root, "prometheus"); err != nil {
		return err
	}
	if err := os.RemoveAll(filepath.Join(root, "usr/share")); err != nil { // its web pages
		return err
	}
	for _, program := range prometheusPrograms {
		if _, err := host.Output(m.Command(root, filepath.Join(root, "usr/bin", program), "--version")); err != nil {
			return err
		}
		script := strings.ReplaceAll(debian.Wrapper(m.Command(root, filepath.Join(root, "usr/bin", program)).Args), dir, final)
		if err := os.WriteFile(filepath.Join(dir, program), []byte(script), 0o755); err != nil {
			return err
		}
	}
	return nil
}

// prometheusOperatorModule has the CRDs of prometheus-operator.
const prometheusOperatorModule = "github.com/prometheus-operator/prometheus-operator"

// PrometheusCRDs returns the folder with the CRDs of prometheus-operator.
func PrometheusCRDs(source string) (string, error) {
	module, err := moduleDir(filepath.Join(source, "prometheusoperator"), prometheusOperatorModule)
	return filepath.Join(module, "example", "prometheus-operator-crd"), err
}
