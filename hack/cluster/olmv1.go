package main

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/memcached-operator/memcached-operator/hack/cluster/image"
)

const (
	olmv1Name      = "olmv1" // of its process 1, its folders and its logs
	olmv1Module    = "github.com/operator-framework/operator-controller"
	olmv1Namespace = "olmv1-system"

	// olmv1InitCommand starts OLM v1's process 1. It is internal.
	olmv1InitCommand = "olmv1-init"
)

// Ports of OLM v1's programs on node1.
const (
	catalogsPort         = "8443"
	catalogsWebhookPort  = "9443"
	catalogsHealthPort   = "8081"
	extensionsHealthPort = "8082"
)

// olmv1 is a build of catalogd, which serves catalogs, and operator-controller, which installs from them.
type olmv1 struct {
	version string
	dir     string // with bin, its programs, and config, as it is in its module
}

func (d dirs) olmv1() (olmv1, error) {
	dir, version, err := pinned("olmv1", olmv1Module)
	if err != nil {
		return olmv1{}, err
	}
	flags := append(leanFlags, "-tags="+openPGPTag, "-ldflags=-s -w -X "+olmv1Module+"/internal/shared/version.version="+version)
	what := fmt.Sprintf("building OLM v1, %s (once, about 2 minutes on two cores)", version)
	built, err := d.buildTools("olmv1", dir, what, flags, func(to string) error {
		return copyFromModule(dir, olmv1Module, "config/base", filepath.Join(to, "config"))
	})
	return olmv1{version: version, dir: built}, err
}

// olmv1Up runs OLM v1 beside the running cluster. It can be repeated.
func (d dirs) olmv1Up() error {
	first, ok := d.running(firstNode)
	if !ok {
		return errNotRunning
	}
	o, err := d.olmv1()
	if err != nil {
		return err
	}
	ca, err := loadAuthority(d.pki())
	if err != nil {
		return err
	}
	do, state := step, "runs"
	if d.runsOLMv1(o) {
		do, state = quietly, "runs already"
	}
	if err := do("installing OLM v1, "+o.version, func() error { return d.installOLMv1(o, ca) }); err != nil {
		return err
	}
	if err := do("starting OLM v1", func() error { return d.startOLMv1(o, ca, first) }); err != nil {
		return fmt.Errorf("%w\nlogs are in %s", err, filepath.Join(d.logs, olmv1Name))
	}
	_, err = fmt.Fprintf(os.Stderr, "OLM v1, %s, %s\n", o.version, state)
	return err
}

// olmv1Down stops the processes of OLM v1. What it installed and its own objects stay.
func (d dirs) olmv1Down() error {
	if err := d.end(olmv1Name); err != nil {
		return err
	}
	return os.RemoveAll(d.processFile(olmv1Name))
}

// installOLMv1 installs the objects that OLM v1 needs. Its programs are administrators of the cluster and install
// with the ServiceAccounts that extensions name.
func (d dirs) installOLMv1(o olmv1, ca authority) error {
	for _, program := range []string{"catalogd", "operator-controller"} {
		if err := d.apply(filepath.Join(o.dir, "config", program, "crd", "bases"), ""); err != nil {
			return err
		}
	}
	if _, err := d.kubectl("", "wait", "--for=condition=Established", "crd", "--all", "--timeout=30s"); err != nil {
		return err
	}
	webhook, err := catalogsWebhook(filepath.Join(o.dir, "config"), ca.pem)
	if err != nil {
		return err
	}
	return d.apply("-", "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: "+olmv1Namespace+"\n---\n"+webhook)
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

func onFirstNode(port string) string { return net.JoinHostPort(firstNode.Addr, port) }

// olmv1Spec is the input of process 1 of OLM v1.
type olmv1Spec struct {
	Programs string // where they were built
	Root     string // the folder that is / for them
	Logs     string
}

func (d dirs) olmv1SpecFile() string { return filepath.Join(d.etc, olmv1Name+".json") }

// runsOLMv1 reports whether that build of OLM v1 runs.
func (d dirs) runsOLMv1(o olmv1) bool {
	var s olmv1Spec
	content, err := os.ReadFile(d.olmv1SpecFile())
	if err != nil || json.Unmarshal(content, &s) != nil {
		return false
	}
	_, ok := d.alive(olmv1Name)
	return ok && s.Programs == o.dir
}

// startOLMv1 starts that build of OLM v1 in the network of node1, if it does not run, and waits until it is ready.
func (d dirs) startOLMv1(o olmv1, ca authority, first process) error {
	if !d.runsOLMv1(o) {
		if err := d.olmv1Down(); err != nil {
			return err
		}
		s := olmv1Spec{Programs: o.dir, Root: filepath.Join(d.state, olmv1Name), Logs: filepath.Join(d.logs, olmv1Name)}
		if err := s.makeRoot(d.kubeconfig(), ca); err != nil {
			return err
		}
		content, err := json.MarshalIndent(s, "", "  ")
		if err != nil {
			return err
		}
		if err := os.WriteFile(d.olmv1SpecFile(), content, 0o644); err != nil {
			return err
		}
		if err := os.RemoveAll(s.Logs); err != nil {
			return err
		}
		pid, err := spawnBeside(first.PID, filepath.Join(s.Logs, "init.log"), olmv1InitCommand, d.olmv1SpecFile())
		if err != nil {
			return err
		}
		if err := d.remember(olmv1Name, pid); err != nil {
			return err
		}
	}
	return waitFor(time.Minute, func() error {
		if _, ok := d.alive(olmv1Name); !ok {
			return permanent{errors.New("its process 1 exited")}
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

// makeRoot creates the root folder of the programs, so that this machine's registries.conf and credentials don't
// apply, and what they write stays in it.
func (s olmv1Spec) makeRoot(kubeconfig string, ca authority) error {
	if err := os.RemoveAll(s.Root); err != nil {
		return err
	}
	for _, dir := range []string{"bin", "etc/containers", "etc/ca", "tmp", "var/cache"} {
		if err := os.MkdirAll(filepath.Join(s.Root, dir), 0o755); err != nil {
			return err
		}
	}
	for to, from := range map[string]string{
		"bin/catalogd":            filepath.Join(s.Programs, "bin", "catalogd"),
		"bin/operator-controller": filepath.Join(s.Programs, "bin", "operator-controller"),
		"etc/kubeconfig":          kubeconfig,
	} {
		if err := image.CopyFile(from, filepath.Join(s.Root, to)); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(s.Root, "etc/ca/ca.crt"), ca.pem, 0o644); err != nil {
		return err
	}
	if err := ca.write(filepath.Join(s.Root, "etc"), identity{file: "catalogd", user: "catalogd", server: []string{firstNode.Addr}}); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(s.Root, "etc/containers/registries.conf"), fmt.Appendf(nil, registriesConf, registryAddress()), 0o644)
}

// registriesConf maps each registry whose name ends in .io to the cluster's registry. There is no pattern for all
// names.
const registriesConf = `[[registry]]
prefix = "*.io"
location = "%s"
insecure = true
`

func (s olmv1Spec) components() []component {
	return []component{
		{Name: "catalogd", Path: "/bin/catalogd", Root: s.Root, Args: []string{
			"--kubeconfig=/etc/kubeconfig", "--system-namespace=" + olmv1Namespace, "--cache-dir=/var/cache/catalogd",
			"--tls-cert=/etc/catalogd.crt", "--tls-key=/etc/catalogd.key",
			"--catalogs-server-addr=" + onFirstNode(catalogsPort), "--external-address=" + onFirstNode(catalogsPort),
			"--webhook-server-port=" + catalogsWebhookPort, "--health-probe-bind-address=" + onFirstNode(catalogsHealthPort), "--metrics-bind-address=0",
		}},
		{Name: "operator-controller", Path: "/bin/operator-controller", Root: s.Root, Args: []string{
			"--kubeconfig=/etc/kubeconfig", "--system-namespace=" + olmv1Namespace, "--cache-path=/var/cache/operator-controller",
			"--catalogd-cas-dir=/etc/ca", "--health-probe-bind-address=" + onFirstNode(extensionsHealthPort),
		}},
	}
}

func olmv1Init(args []string) error {
	if len(args) != 1 || os.Getpid() != 1 {
		return fmt.Errorf("%s is started by olmv1 up: %w", olmv1InitCommand, errUsage)
	}
	content, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	var s olmv1Spec
	if err := json.Unmarshal(content, &s); err != nil {
		return err
	}
	os.Clearenv() // what it says is of another /
	supervise(s.Logs, s.components())
	return nil
}
