package olm

import (
	"bytes"
	_ "embed"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"text/template"

	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/builds"
	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/cache"
	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/cluster"
	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/host"
	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/network"
	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/pki"
	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/process"
)

const olmv1Namespace = "olmv1-system"

// Ports of OLM v1's programs on node1 that this program connects to.
const (
	catalogsWebhookPort  = "9443"
	catalogsHealthPort   = "8081"
	extensionsHealthPort = "8082"
)

//go:embed v1.sh
var v1Script string

// V1Up starts OLM v1 beside the running cluster, again if it runs.
func V1Up(d cache.Dirs) error {
	first, err := cluster.Running(d)
	if err != nil {
		return err
	}
	o, err := builds.NewOLMv1(d)
	if err != nil {
		return err
	}
	if err := host.Step("installing OLM v1, "+o.Version, func() error { return installV1(d, o) }); err != nil {
		return err
	}
	err = host.Step("starting OLM v1", func() error { return startV1(d, o, first) })
	if err != nil {
		err = fmt.Errorf("%w\nlogs are in %s", err, filepath.Join(d.Logs, process.OLMv1))
	}
	return err
}

// installV1 installs the objects that OLM v1 needs. Its programs are administrators of the cluster and install
// with the ServiceAccounts that extensions name.
func installV1(d cache.Dirs, o builds.OLMv1) error {
	for program, kind := range map[string]string{"catalogd": "clustercatalogs", "operator-controller": "clusterextensions"} {
		if err := cluster.Apply(d, filepath.Join(o.Config, program, "crd", "standard", "olm.operatorframework.io_"+kind+".yaml"), ""); err != nil {
			return err
		}
	}
	if _, err := cluster.Kubectl(d, "", "wait", "--for=condition=Established", "crd", "--all", "--timeout=30s"); err != nil {
		return err
	}
	webhook, err := os.ReadFile(filepath.Join(o.Config, "catalogd", "webhook", "standard", "manifests.yaml"))
	if err != nil {
		return err
	}
	ca, err := os.ReadFile(filepath.Join(d.PKI(), "ca.crt"))
	if err != nil {
		return err
	}
	// The API server calls catalogd's address, as there is no pod for a Service.
	address := "url: https://" + onFirstNode(catalogsWebhookPort) + "$1\n    caBundle: " + base64.StdEncoding.EncodeToString(ca)
	return cluster.Apply(d, "-", "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: "+olmv1Namespace+"\n"+webhookService.ReplaceAllString(string(webhook), address))
}

// webhookService is where a webhook's configuration names a Service.
var webhookService = regexp.MustCompile(`service:\n +name: .*\n +namespace: .*\n +path: (\S+)`)

func onFirstNode(port string) string { return net.JoinHostPort(network.First.Addr, port) }

// startV1 starts OLM v1 in the network of node1, and waits until it is ready.
func startV1(d cache.Dirs, o builds.OLMv1, first int) error {
	if err := process.Stop(d, process.OLMv1); err != nil {
		return err
	}
	if err := pki.Issue(d.PKI(), pki.Identity{File: "catalogd", User: "catalogd", Names: "IP:" + network.First.Addr}); err != nil {
		return err
	}
	var script bytes.Buffer
	err := template.Must(template.New("").Parse(v1Script)).Execute(&script, map[string]string{
		"Root": filepath.Join(d.State, process.OLMv1), "Programs": o.Programs, "PKI": d.PKI(), "Kubeconfig": d.Kubeconfig(),
		"Namespace": olmv1Namespace, "Addr": network.First.Addr, "Registry": network.RegistryAddress(),
		"WebhookPort": catalogsWebhookPort, "CatalogsHealthPort": catalogsHealthPort, "ExtensionsHealthPort": extensionsHealthPort,
	})
	if err != nil {
		return err
	}
	file := filepath.Join(d.Etc, "olmv1.sh")
	if err := os.WriteFile(file, script.Bytes(), 0o644); err != nil {
		return err
	}
	if err := process.StartBeside(d, first, process.OLMv1, file); err != nil {
		return err
	}
	return host.WaitFor(func() error {
		if err := process.CheckAlive(d, process.OLMv1); err != nil {
			return err
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
