package e2e

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	memcachedac "github.com/memcached-operator/memcached-operator/api/v1alpha1/applyconfiguration/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/internal/testcert"
	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
	"github.com/memcached-operator/memcached-operator/test/internal/suite"
)

// putCertificate creates or replaces the Secret with a certificate of a CA, and returns a client's configuration.
func (s *space) putCertificate(ca *testcert.CA, name string, o testcert.Options) *tls.Config {
	s.Helper()
	o.Names = []string{"*." + s.Namespace + ".svc"}
	crt, key := ca.Issue(o)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: name}, Type: corev1.SecretTypeTLS,
		Data: map[string][]byte{"tls.crt": crt, "tls.key": key, "ca.crt": ca.PEM()}}
	if err := k.Update(s.Ctx, secret); err != nil {
		s.Must(k.Create(s.Ctx, secret))
	}
	pair, err := tls.X509KeyPair(ca.Issue(testcert.Options{Names: []string{"client"}, ClientOnly: true}))
	s.Must(err)
	config := &tls.Config{RootCAs: x509.NewCertPool(), ServerName: cluster.ShardName("cache", 0) + "." + s.Namespace + ".svc",
		Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	config.RootCAs.AppendCertsFromPEM(ca.PEM())
	return config
}

func TestTLSIsRolledOutRotatedAndRemovedOnAWarmCache(t *testing.T) {
	t.Parallel()
	const shards, perShard = 2, 50_000
	s := newSpace(t)
	store := s.claim("backups")
	s.Apply("cache", suite.Small(shards))
	s.Available("cache")
	sets := s.fill("cache", shards, perShard)
	lives := s.Lives("cache")
	check := func(what string, config *tls.Config) {
		t.Helper()
		for _, set := range sets {
			set.UseTLS(config)
			if n, err := set.Count(); err != nil || n != perShard {
				t.Fatalf("%s: %d of %d items, %v", what, n, perShard, err)
			}
		}
	}
	apply := func(c *memcachedac.TLSApplyConfiguration) {
		t.Helper()
		s.Apply("cache", suite.Small(shards).WithTLS(c))
	}

	apply(memcachedac.TLS().WithMode(v1alpha1.TLSPermissive))
	s.Degraded("cache", v1alpha1.ReasonCertificateInvalid)
	check("without a Secret", nil)
	s.Untouched("cache", lives)

	ca := testcert.NewCA("shards")
	config := s.putCertificate(ca, "cache-tls", testcert.Options{})
	m := s.Available("cache")
	check("plain in mode Permissive", nil)
	check("TLS in mode Permissive", config)
	if c := m.Status.TLS; c == nil || c.NotAfter == nil || c.Fingerprint == "" || c.PlainConnections == nil {
		t.Errorf("the status is %+v", c)
	}

	apply(memcachedac.TLS().WithClientCertificates(v1alpha1.ClientCertificatesRequired))
	first := s.Available("cache").Status.TLS.Fingerprint
	check("TLS", config)
	s.Untouched("cache", lives)
	sets[0].UseTLS(nil)
	if n, err := sets[0].Count(); err == nil {
		t.Errorf("%d items were read without TLS", n)
	}

	if b := s.backedUp("secured", "cache", store); b.Status.Snapshot.Items != shards*perShard {
		t.Errorf("the snapshot has %d items", b.Status.Snapshot.Items)
	}
	if r := s.restored("secured", "cache", "secured"); r.Status.Kept != shards*perShard {
		t.Errorf("the restore's status is %+v", r.Status)
	}

	config = s.putCertificate(ca, "cache-tls", testcert.Options{})
	s.Await("cache", "the new certificate", func(m *v1alpha1.Memcached) error {
		if m.Status.TLS == nil || m.Status.TLS.Fingerprint == first {
			return fmt.Errorf("the status is %+v", m.Status.TLS)
		}
		return nil
	})
	check("after a rotation", config)
	s.putCertificate(ca, "cache-tls", testcert.Options{RSA: true})
	s.Await("cache", "a restart for a key of another type", func(m *v1alpha1.Memcached) error {
		for _, shard := range m.Status.Shards {
			if shard.Restart == "" {
				return fmt.Errorf("shard %s didn't restart: %+v", shard.Name, m.Status.TLS)
			}
		}
		return cluster.Available(m)
	})
	check("after a key of another type", config)
	s.Untouched("cache", lives)

	pod := s.Pods("cache")[cluster.ShardName("cache", 1)]
	s.Must(k.Delete(s.Ctx, &pod))
	if shard := s.Shard(s.replaced("cache", 1, pod), 1); shard.Start != v1alpha1.StartHandedOver || shard.Items != perShard {
		t.Errorf("the status of the shard is %+v", shard)
	}
	check("after a handover", config)

	s.Apply("cache", suite.Small(shards))
	if m := s.Available("cache"); m.Status.TLS != nil {
		t.Errorf("the status is %+v", m.Status.TLS)
	}
	check("plain again", nil)
}
