package apiserver

import (
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
)

// The plugin reads from the message of the API server which right is missing.
func TestPluginNamesTheMissingRight(t *testing.T) {
	env := newEnv(t)
	root, err := cluster.Root()
	if err != nil {
		t.Fatal(err)
	}
	plugin, config := filepath.Join(t.TempDir(), "kubectl-memcached"), filepath.Join(t.TempDir(), "config")
	if out, err := exec.Command("go", "-C", filepath.Join(root, "cmd", "kubectl-memcached"), "build", "-o", plugin, ".").CombinedOutput(); err != nil {
		t.Fatalf("building the plugin: %v\n%s", err, out)
	}
	if err := clientcmd.WriteToFile(api.Config{
		Clusters:       map[string]*api.Cluster{"c": {Server: server.Admin.Host, CertificateAuthorityData: server.Admin.CAData}},
		AuthInfos:      map[string]*api.AuthInfo{"admin": {ClientCertificateData: server.Admin.CertData, ClientKeyData: server.Admin.KeyData}},
		Contexts:       map[string]*api.Context{"c": {Cluster: "c", AuthInfo: "admin"}},
		CurrentContext: "c",
	}, config); err != nil {
		t.Fatal(err)
	}
	want := func(code int, says string, args ...string) {
		t.Helper()
		out, err := exec.Command(plugin, append(args, "--kubeconfig", config, "-n", env.Namespace, "--as", "bob", "--request-timeout", "2m")...).CombinedOutput()
		exit, got := (*exec.ExitError)(nil), 0
		if errors.As(err, &exit) {
			got = exit.ExitCode()
		} else if err != nil {
			t.Fatal(err)
		}
		if got != code || !strings.Contains(string(out), says) {
			t.Errorf("%s: got exit code %d and\n%s\nwant %d and %q", args, got, out, code, says)
		}
	}
	of := "memcacheds.cache.memcached-operator.io in "
	want(5, "bob lacks the permission to get "+of+"namespace "+env.Namespace+". ", "status", "cache")
	want(5, "bob lacks the permission to patch "+of+"namespace "+env.Namespace+". ", "pause", "cache")
	want(5, "bob lacks the permission to list "+of+"all namespaces. ", "status", "-A")
}
