package main

import (
	"flag"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
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

func TestNamespacesAreAListOfNames(t *testing.T) {
	for list, want := range map[string][]string{"": nil, "a": {"a"}, "a, b,": {"a", "b"}, ",b,,a,b": {"b", "a"}} {
		if got, err := parseNamespaces(list); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q gives %v, %v, want %v", list, got, err, want)
		}
	}
	for _, list := range []string{" ", ",", "a b", "a,B", "a;b", "*", strings.Repeat("a", 64)} { // the first two must not be all namespaces
		if got, err := parseNamespaces(list); err == nil || got != nil || !strings.Contains(err.Error(), "write a list such as") {
			t.Errorf("%q gives %v, %v", list, got, err)
		}
	}
}

func TestNumberOfMemcachedsThatFollowTheDefaultImage(t *testing.T) {
	for text, want := range map[string]int{"": 1, "0": 0, "5": 5} {
		if got, err := parseDefaultImageUpdates(text); err != nil || got != want {
			t.Errorf("%q gives %d, %v", text, got, err)
		}
	}
	for _, text := range []string{"-1", "two", "65536"} {
		if _, err := parseDefaultImageUpdates(text); err == nil || !strings.Contains(err.Error(), "set it to a number from 0 to 65535") {
			t.Errorf("%q gives %v", text, err)
		}
	}
}

// Outside of a pod there is no domain to find.
func TestNamesHaveTheDomainOfTheCluster(t *testing.T) {
	for setting, want := range map[string]string{
		"": "cluster.local", "k8s.example.com": "k8s.example.com",
		"cluster.local.": "", "svc.Example": "", "a b": "", "-": "", strings.Repeat("a.", 60) + "com": "",
	} {
		o, err := readOptions(func(name string) string {
			return map[string]string{"RELATED_IMAGE_AGENT": "operator", "CLUSTER_DOMAIN": setting}[name]
		})
		if (err != nil) != (want == "") || err == nil && o.ClusterDomain != want || err != nil && !strings.Contains(err.Error(), "CLUSTER_DOMAIN") {
			t.Errorf("with %q the domain is %q, %v; want %q", setting, o.ClusterDomain, err, want)
		}
	}
}
