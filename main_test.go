package main

import (
	"flag"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
)

func TestRequestsNameTheOperatorAndItsVersion(t *testing.T) {
	var agent string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { agent = r.UserAgent() }))
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "kubeconfig")
	content := "{clusters: [{name: a, cluster: {server: '" + server.URL + "'}}], contexts: [{name: a, context: {cluster: a}}], current-context: a}"
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", file)
	config, err := clusterConfig()
	if err != nil {
		t.Fatal(err)
	}
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = client.ServerVersion() // the server has none
	if want := "memcached-operator/" + version; agent != want {
		t.Errorf("the API server sees the user agent %q, want %q", agent, want)
	}
}

func TestAgentsLogInTheFormatOfTheOperator(t *testing.T) {
	for arguments, want := range map[string]string{"": "json", "-zap-encoder=json": "json", "-zap-encoder=console": "text", "-zap-devel": "text", "-zap-devel -zap-encoder=json": "json"} {
		flags := flag.NewFlagSet("operator", flag.ContinueOnError)
		var logging zap.Options
		logging.BindFlags(flags)
		if err := flags.Parse(strings.Fields(arguments)); err != nil {
			t.Fatal(err)
		}
		if got := agentLogFormat(flags); got != want {
			t.Errorf("with %q: %s, want %s", arguments, got, want)
		}
	}
}

func TestGarbageIsCollectedBelowTheLimitOfTheContainer(t *testing.T) {
	t.Setenv("GOMEMLIMIT", "")
	before := debug.SetMemoryLimit(-1)
	t.Cleanup(func() { debug.SetMemoryLimit(before) })
	for limit, want := range map[string]int64{"": before, "268435456": 241591911} {
		debug.SetMemoryLimit(before)
		if err := limitMemory(limit); err != nil {
			t.Error(err)
		}
		if got := debug.SetMemoryLimit(-1); got != want {
			t.Errorf("of a container with %q bytes Go may have %d, not %d", limit, got, want)
		}
	}
}

func TestALimitOfMemoryThatIsNoNumberSaysWhatToDo(t *testing.T) {
	t.Setenv("GOMEMLIMIT", "")
	for _, limit := range []string{"256Mi", "0", "-1"} {
		if err := limitMemory(limit); err == nil || !strings.Contains(err.Error(), "set it to a number of bytes") {
			t.Errorf("%q gives %v", limit, err)
		}
	}
}
