package peers

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/memcached-operator/memcached-operator/internal/testcert"
	"github.com/memcached-operator/memcached-operator/test/internal/pods"
)

// The snippets that the tests have the libraries for store an item in one of three servers, and print it.
func TestSnippetsOfTheDocuments(t *testing.T) {
	t.Parallel()
	golang, python := []string{"go", "run", "snippet.go"}, []string{filepath.Join(os.Getenv("MEMCACHED_CLIENTS"), "python3"), "snippet.py"}
	for place, command := range map[string][]string{
		"clients.md Go: gomemcache":     golang,
		"clients.md Python: pymemcache": python,
		"clients.md Python: pylibmc":    python,
		"tls.md Go: gomemcache":         golang,
		"tls.md Python: pymemcache":     python,
		"auth.md Go: gomemcache":        golang,
		"auth.md Python: pymemcache":    python,
	} {
		t.Run(place, func(t *testing.T) {
			t.Parallel()
			name, heading, _ := strings.Cut(place, " ")
			file := filepath.Join(t.TempDir(), command[len(command)-1])
			pods.Must(t, os.WriteFile(file, snippet(t, name, heading, "```"), 0o600))
			var servers, words, environment []string
			switch name {
			case "tls.md":
				words, environment = serveTLS(t)
			case "auth.md":
				words, environment = serveUser(t)
			}
			for range 3 {
				servers = append(servers, pods.StartCache(t, pods.Newest, words...).Address())
			}
			var output []byte
			var err error
			for range 5 { // their timeouts are shorter than some waits on a busy machine
				// In this directory, go finds the library in the module of the tests.
				cmd := exec.Command(command[0], append(command[1:len(command)-1:len(command)-1], file)...)
				cmd.Env = append(append(os.Environ(), environment...), "MEMCACHED_SERVERS="+strings.Join(servers, ","))
				if output, err = cmd.CombinedOutput(); err == nil && string(output) == "hello\n" {
					return
				}
			}
			t.Errorf("it printed %q, %v", output, err)
		})
	}
}

// snippet returns the code below a heading of a document until an expression matches.
func snippet(t *testing.T, document, heading, until string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", document))
	pods.Must(t, err)
	found := regexp.MustCompile("\n### " + heading + "\n\n```[a-z]+\n((?s:.*?))" + until).FindSubmatch(text)
	if found == nil {
		t.Fatalf("docs/%s has no snippet %q", document, heading)
	}
	return found[1]
}

// serveTLS returns the arguments of servers with TLS, and the environment of their clients.
func serveTLS(t *testing.T) (words, environment []string) {
	t.Helper()
	dir := pods.NewTLSFiles(t, testcert.NewCA("shards"), testcert.Options{Names: []string{pods.TLSHost, "127.0.0.1"}}).Dir
	return []string{"-Z", "-o", "ssl_chain_cert=" + dir + "/tls.crt,ssl_key=" + dir + "/tls.key"},
		[]string{"MEMCACHED_CA=" + dir + "/ca.crt", "MEMCACHED_NAME=" + pods.TLSHost}
}

// serveUser returns the arguments of servers that require a login, and the environment of their clients.
func serveUser(t *testing.T) (words, environment []string) {
	t.Helper()
	file := filepath.Join(pods.SharedDir(t), "users")
	pods.Must(t, os.WriteFile(file, []byte("shop:s3cr3t\n"), 0o644))
	return []string{"-Y", file}, []string{"MEMCACHED_USER=shop", "MEMCACHED_PASSWORD=s3cr3t"}
}

// pymemcache asks a server that failed again, and doesn't move its keys to others.
func TestSnippetOfPymemcacheKeepsAFailedServer(t *testing.T) {
	t.Parallel()
	var servers []string
	for range 3 {
		servers = append(servers, pods.StartCache(t, pods.Newest).Address())
	}
	servers[1] = "127.0.0.1:1" // nothing listens there
	cmd := exec.Command(filepath.Join(os.Getenv("MEMCACHED_CLIENTS"), "python3"), "-c", string(snippet(t, "clients.md", "Python: pymemcache", "client\\.set"))+`
import time
def owners():
    return [client._get_client("key%d" % i).server for i in range(100)]
before = owners()
for _ in range(4):
    for i in range(100):
        client.get("key%d" % i)
    time.sleep(0.6)
print(owners() == before and ("127.0.0.1", 1) in before)
`)
	cmd.Env = append(os.Environ(), "MEMCACHED_SERVERS="+strings.Join(servers, ","))
	if output, err := cmd.CombinedOutput(); err != nil || strings.TrimSpace(string(output)) != "True" {
		t.Errorf("it printed %q, %v", output, err)
	}
}
