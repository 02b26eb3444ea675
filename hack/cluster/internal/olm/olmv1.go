package olm

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"

	"go.yaml.in/yaml/v3"

	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/builds"
	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/cache"
	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/cluster"
	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/host"
	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/image"
	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/network"
	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/pki"
	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/process"
)

const (
	olmv1Namespace = "olmv1-system"

	// V1InitCommand starts OLM v1's process 1. It is internal.
	V1InitCommand = "olmv1-init"
)

// Ports of OLM v1's programs on node1.
const (
	catalogsPort         = "8443"
	catalogsWebhookPort  = "9443"
	catalogsHealthPort   = "8081"
	extensionsHealthPort = "8082"
)

// V1Up starts OLM v1 beside the running cluster, again if it runs.
func V1Up(d cache.Dirs) error {
	first, ok := process.Alive(d, network.First.Name)
	if !ok {
		return cluster.ErrNotRunning
	}
	o, err := builds.NewOLMv1(d)
	if err != nil {
		return err
	}
	ca, err := os.ReadFile(filepath.Join(d.PKI(), "ca.crt"))
	if err != nil {
		return err
	}
	if err := host.Step("installing OLM v1, "+o.Version, func() error { return installV1(d, o, ca) }); err != nil {
		return err
	}
	err = host.Step("starting OLM v1", func() error { return startV1(d, o, first) })
	if err != nil {
		err = fmt.Errorf("%w\nlogs are in %s", err, v1Logs(d))
	}
	return err
}

// installV1 installs the objects that OLM v1 needs. Its programs are administrators of the cluster and install
// with the ServiceAccounts that extensions name.
func installV1(d cache.Dirs, o builds.OLMv1, ca []byte) error {
	for _, program := range []string{"catalogd", "operator-controller"} {
		if err := cluster.Apply(d, filepath.Join(o.Dir, "config", program, "crd", "bases"), ""); err != nil {
			return err
		}
	}
	if _, err := cluster.Kubectl(d, "", "wait", "--for=condition=Established", "crd", "--all", "--timeout=30s"); err != nil {
		return err
	}
	webhook, err := catalogsWebhook(filepath.Join(o.Dir, "config"), ca)
	if err != nil {
		return err
	}
	return cluster.Apply(d, "-", "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: "+olmv1Namespace+"\n---\n"+webhook)
}

// catalogsWebhook returns the configuration of the webhook with which catalogd labels a ClusterCatalog with its name.
// The API server calls catalogd's address, as there is no pod for a Service.
func catalogsWebhook(config string, ca []byte) (string, error) {
	file := filepath.Join(config, "catalogd", "manager", "webhook", "manifests.yaml")
	content, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	var c struct {
		Metadata struct{ Name string }
		Webhooks []struct {
			ClientConfig map[string]any `yaml:"clientConfig"`
			Rest         map[string]any `yaml:",inline"`
		}
		Rest map[string]any `yaml:",inline"`
	}
	if err := yaml.Unmarshal(content, &c); err != nil {
		return "", fmt.Errorf("%s: %w", file, err)
	}
	c.Metadata.Name = "catalogd-" + c.Metadata.Name // as OLM's own installation does
	for i, w := range c.Webhooks {
		service, _ := w.ClientConfig["service"].(map[string]any)
		path, ok := service["path"].(string)
		if !ok {
			return "", fmt.Errorf("%s: a webhook has no path", file)
		}
		c.Webhooks[i].ClientConfig = map[string]any{
			"url":      "https://" + onFirstNode(catalogsWebhookPort) + path,
			"caBundle": base64.StdEncoding.EncodeToString(ca),
		}
	}
	text, err := yaml.Marshal(c)
	return string(text), err
}

func onFirstNode(port string) string { return net.JoinHostPort(network.First.Addr, port) }

func v1Root(d cache.Dirs) string { return filepath.Join(d.State, process.OLMv1) }
func v1Logs(d cache.Dirs) string { return filepath.Join(d.Logs, process.OLMv1) }

// startV1 starts OLM v1 in the network of node1, and waits until it is ready.
func startV1(d cache.Dirs, o builds.OLMv1, first process.ID) error {
	if err := process.Stop(d, process.OLMv1); err != nil {
		return err
	}
	if err := makeV1Root(d, o); err != nil {
		return err
	}
	if err := os.RemoveAll(v1Logs(d)); err != nil {
		return err
	}
	pid, err := process.SpawnBeside(first.PID, filepath.Join(v1Logs(d), "init.log"), V1InitCommand, d.Cache)
	if err != nil {
		return err
	}
	if err := process.Remember(d, process.OLMv1, pid); err != nil {
		return err
	}
	return host.WaitFor(func() error {
		if _, ok := process.Alive(d, process.OLMv1); !ok {
			return host.Permanent{Err: errors.New("its process 1 exited")}
		}
		for _, port := range []string{catalogsHealthPort, extensionsHealthPort} {
			answer, err := http.Get("http://" + onFirstNode(port) + "/readyz")
			if err != nil {
				return err
			}
			_ = answer.Body.Close()
			if answer.StatusCode != http.StatusOK {
				return fmt.Errorf("%s is not ready: %s", onFirstNode(port), answer.Status)
			}
		}
		webhook, err := net.Dial("tcp", onFirstNode(catalogsWebhookPort))
		if err != nil {
			return err
		}
		return webhook.Close()
	})
}

// makeV1Root creates the root folder of the programs, so that this machine's registries.conf and credentials don't
// apply, and what they write stays in it.
func makeV1Root(d cache.Dirs, o builds.OLMv1) error {
	root := v1Root(d)
	if err := os.RemoveAll(root); err != nil {
		return err
	}
	for _, dir := range []string{"bin", "etc/containers", "etc/ca", "tmp", "var/cache"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			return err
		}
	}
	for to, from := range map[string]string{
		"bin/catalogd":            filepath.Join(o.Dir, "bin", "catalogd"),
		"bin/operator-controller": filepath.Join(o.Dir, "bin", "operator-controller"),
		"etc/kubeconfig":          d.Kubeconfig(),
		"etc/ca/ca.crt":           filepath.Join(d.PKI(), "ca.crt"),
	} {
		if err := image.CopyFile(from, filepath.Join(root, to)); err != nil {
			return err
		}
	}
	if err := pki.Issue(d.PKI(), filepath.Join(root, "etc"), pki.Identity{File: "catalogd", User: "catalogd", Server: []string{network.First.Addr}}); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(root, "etc/containers/registries.conf"), fmt.Appendf(nil, registriesConf, network.RegistryAddress()), 0o644)
}

// registriesConf maps each registry whose name ends in .io to the cluster's registry. There is no pattern for all
// names.
const registriesConf = `[[registry]]
prefix = "*.io"
location = "%s"
insecure = true
`

// V1Init is process 1 of OLM v1, of the cluster below a cache folder.
func V1Init(folder string) error {
	d := cache.Under(folder)
	os.Clearenv() // what it says is of another /
	process.Supervise(v1Logs(d), []process.Component{
		{Name: "catalogd", Path: "/bin/catalogd", Root: v1Root(d), Args: []string{
			"--kubeconfig=/etc/kubeconfig", "--system-namespace=" + olmv1Namespace, "--cache-dir=/var/cache/catalogd",
			"--tls-cert=/etc/catalogd.crt", "--tls-key=/etc/catalogd.key",
			"--catalogs-server-addr=" + onFirstNode(catalogsPort), "--external-address=" + onFirstNode(catalogsPort),
			"--webhook-server-port=" + catalogsWebhookPort, "--health-probe-bind-address=" + onFirstNode(catalogsHealthPort), "--metrics-bind-address=0",
		}},
		{Name: "operator-controller", Path: "/bin/operator-controller", Root: v1Root(d), Args: []string{
			"--kubeconfig=/etc/kubeconfig", "--system-namespace=" + olmv1Namespace, "--cache-path=/var/cache/operator-controller",
			"--catalogd-cas-dir=/etc/ca", "--health-probe-bind-address=" + onFirstNode(extensionsHealthPort),
		}},
	})
	return nil
}
