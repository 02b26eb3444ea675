package pods

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	snapshotwire "github.com/memcached-operator/memcached-operator/internal/snapshot/wire"
	"github.com/memcached-operator/memcached-operator/internal/testcert"
)

// TLSFiles are the Secret's files in the volume of a Job.
type TLSFiles struct {
	Dir string
	ca  *testcert.CA
}

// NewTLSFiles writes a certificate of a CA, and its key, into files.
func NewTLSFiles(t testing.TB, ca *testcert.CA, o testcert.Options) TLSFiles {
	t.Helper()
	f := TLSFiles{SharedDir(t), ca}
	crt, key := ca.Issue(o)
	for name, content := range map[string][]byte{"tls.crt": crt, "tls.key": key, "ca.crt": ca.PEM()} {
		Must(t, os.WriteFile(filepath.Join(f.Dir, name), content, 0o644))
	}
	return f
}

// StartTLSCache starts a memcached that serves clients with certificates at the second address, and the test at its own.
func StartTLSCache(t testing.TB, version string, f TLSFiles, args ...string) (c *Cache, address string) {
	t.Helper()
	address = net.JoinHostPort("127.0.0.1", strconv.Itoa(FreePort(t)))
	file := func(name string) string { return filepath.Join(f.Dir, name) }
	options := "ssl_chain_cert=" + file("tls.crt") + ",ssl_key=" + file("tls.key") + ",ssl_ca_cert=" + file("ca.crt") + ",ssl_verify_mode=2,ssl_session_cache"
	c = StartCache(t, version, append([]string{"-Z", "-l", "notls:127.0.0.1", "-l", address, "-o", options}, args...)...)
	return c, address
}

// WithTLS lets a task connect to these addresses with TLS.
func WithTLS(task snapshotwire.Task, addresses ...string) snapshotwire.Task {
	task.Servers, task.TLS = addresses, &snapshotwire.TLS{ClientCertificate: true}
	for range addresses {
		task.TLS.ServerNames = append(task.TLS.ServerNames, TLSHost)
	}
	return task
}
