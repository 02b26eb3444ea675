package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

func TestOLMv1RunsWhatTheModuleBuilds(t *testing.T) {
	mod := string(read(t, filepath.Join("olmv1", "go.mod")))
	_, tools, _ := strings.Cut(mod, "tool (\n")
	tools, _, _ = strings.Cut(tools, ")")
	var built, run []string
	for tool := range strings.FieldsSeq(tools) {
		built = append(built, "/bin/"+filepath.Base(tool))
	}
	for _, c := range (olmv1Spec{}).components() {
		run = append(run, c.Path)
	}
	if !slices.Equal(run, built) {
		t.Errorf("%v run, and the module builds %v", run, built)
	}
}

func TestOLMv1ProgramsGetFilesThatExist(t *testing.T) {
	from := t.TempDir()
	for _, file := range []string{"bin/catalogd", "bin/operator-controller", "kubeconfig"} {
		write(t, from, file, file)
	}
	ca, err := newAuthority()
	if err != nil {
		t.Fatal(err)
	}
	s := olmv1Spec{Programs: from, Root: filepath.Join(t.TempDir(), "root")}
	write(t, s.Root, "var/cache/catalogd/unpack/old", "of an earlier run")
	if err := s.makeRoot(filepath.Join(from, "kubeconfig"), ca); err != nil {
		t.Fatal(err)
	}
	for _, c := range s.components() {
		if c.Root != s.Root {
			t.Errorf("%s has the root %s", c.Name, c.Root)
		}
		for _, arg := range append(c.Args, "path="+c.Path) {
			_, path, _ := strings.Cut(arg, "=")
			if !strings.HasPrefix(path, "/") {
				continue
			}
			inside := filepath.Join(s.Root, path)
			if strings.HasPrefix(path, "/var/cache/") { // it makes its own, and wants it empty
				if exists(inside) {
					t.Errorf("%s: %s is there", c.Name, path)
				}
				inside = filepath.Dir(inside)
			}
			if !exists(inside) {
				t.Errorf("%s: %s is not there", c.Name, arg)
			}
		}
	}
	if conf := string(read(t, filepath.Join(s.Root, "etc/containers/registries.conf"))); !strings.Contains(conf, `location = "`+registryAddress()+`"`) {
		t.Errorf("images come from elsewhere:\n%s", conf)
	}
	pair, err := tls.LoadX509KeyPair(filepath.Join(s.Root, "etc/catalogd.crt"), filepath.Join(s.Root, "etc/catalogd.key"))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(read(t, filepath.Join(s.Root, "etc/ca/ca.crt")))
	if _, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: firstNode.Addr}); err != nil {
		t.Error(err)
	}
}

func TestOLMv1WebhookIsCalledAtItsAddress(t *testing.T) {
	config := filepath.Join(t.TempDir(), "config")
	if err := copyFromModule("olmv1", olmv1Module, "config/base", config); err != nil {
		t.Fatal(err)
	}
	text, err := catalogsWebhook(config, []byte("authority"))
	if err != nil {
		t.Fatal(err)
	}
	var c struct {
		Kind     string
		Metadata struct{ Name string }
		Webhooks []struct {
			ClientConfig map[string]string `yaml:"clientConfig"`
			Rules        []struct{ Resources []string }
		}
	}
	if err := yaml.Unmarshal([]byte(text), &c); err != nil {
		t.Fatal(err)
	}
	if c.Kind != "MutatingWebhookConfiguration" || c.Metadata.Name != "catalogd-mutating-webhook-configuration" || len(c.Webhooks) != 1 {
		t.Fatalf("it is\n%s", text)
	}
	w := c.Webhooks[0]
	const path = "/mutate-olm-operatorframework-io-v1-clustercatalog"
	if w.ClientConfig["url"] != "https://"+onFirstNode(catalogsWebhookPort)+path || w.ClientConfig["caBundle"] != base64.StdEncoding.EncodeToString([]byte("authority")) || len(w.ClientConfig) != 2 {
		t.Errorf("the webhook is called at %v", w.ClientConfig)
	}
	if len(w.Rules) != 1 || !slices.Equal(w.Rules[0].Resources, []string{"clustercatalogs"}) {
		t.Errorf("the webhook is called for %v", w.Rules)
	}

	write(t, config, "catalogd/manager/webhook/manifests.yaml", "webhooks: [{clientConfig: {service: {name: s}}}]")
	if text, err := catalogsWebhook(config, nil); err == nil {
		t.Errorf("a webhook without a path gave %s", text)
	}
}

func TestLoadAuthority(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pki")
	if err := makeCertificates(dir); err != nil {
		t.Fatal(err)
	}
	ca, err := loadAuthority(dir)
	if err != nil {
		t.Fatal(err)
	}
	if string(ca.pem) != string(read(t, filepath.Join(dir, "ca.crt"))) || !ca.key.PublicKey.Equal(ca.cert.PublicKey) {
		t.Error("it is another authority")
	}
	if err := os.Remove(filepath.Join(dir, "ca.key")); err != nil {
		t.Fatal(err)
	}
	if _, err := loadAuthority(dir); err == nil {
		t.Error("an authority without a key was read")
	}
}
