package e2e

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/internal/clusterdns"
	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
	"github.com/memcached-operator/memcached-operator/internal/testcert"
	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
	"github.com/memcached-operator/memcached-operator/test/internal/items"
)

// secureClient connects with TLS and logs in; nil and empty ones do neither.
type secureClient struct {
	config         *tls.Config
	user, password string
}

func (c secureClient) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	if c.config != nil {
		conn = tls.Client(conn, c.config)
	}
	if c.user != "" {
		if err := protocol.Login(conn, c.user, c.password); err != nil {
			return nil, errors.Join(err, conn.Close())
		}
	}
	return conn, nil
}

// putSecret creates or replaces a Secret.
func (s *space) putSecret(name string, data map[string][]byte) {
	s.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: name}, Data: data}
	if err := k.Update(s.Ctx, secret); err != nil {
		s.Must(k.Create(s.Ctx, secret))
	}
}

// putCertificate creates or replaces the Secret with a certificate of a CA, and returns a client's configuration and the fingerprint.
func (s *space) putCertificate(ca *testcert.CA, name string) (config *tls.Config, fingerprint string) {
	s.Helper()
	names := "*." + s.Namespace + ".svc." + clusterdns.Domain()
	crt, key := ca.Issue(testcert.Options{Names: []string{names}})
	s.putSecret(name, map[string][]byte{"tls.crt": crt, "tls.key": key, "ca.crt": ca.PEM()})
	pair, err := tls.X509KeyPair(ca.Issue(testcert.Options{Names: []string{"client"}, ClientOnly: true}))
	s.Must(err)
	config = &tls.Config{RootCAs: x509.NewCertPool(), ServerName: cluster.ShardName("cache", 0) + strings.TrimPrefix(names, "*"),
		Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	config.RootCAs.AppendCertsFromPEM(ca.PEM())
	return config, testcert.Fingerprint(crt)
}

func TestTLSAndLoginAreRolledOutRotatedAndRemovedOnAWarmCache(t *testing.T) {
	const shards, perShard = 2, 50_000
	s := newSpace(t)
	store := s.Claim()
	s.Serve("cache", s.small(shards))
	sets := s.fill("cache", shards, perShard)
	lives := s.Lives("cache")
	var user, password string
	check := func(what string, config *tls.Config) {
		t.Helper()
		for _, set := range sets {
			set.DialWith(secureClient{config, user, password}.dial)
			s.serves(what, set, perShard)
		}
	}
	permissive := s.small(shards)
	permissive.TLS = v1beta1.TLSSpec{Mode: v1beta1.TLSPermissive}
	s.Apply("cache", permissive)
	s.Degraded("cache", v1beta1.ReasonSecretInvalid)
	check("without a Secret", nil)
	s.Untouched("cache", lives)

	ca := testcert.NewCA("shards")
	s.putSecret("cache-auth", map[string][]byte{"shop": []byte("one"), "report": []byte("other")})
	config, _ := s.putCertificate(ca, "cache-tls")
	s.refresh("cache")
	m := s.Available("cache")
	check("plain in mode Permissive", nil)
	check("TLS in mode Permissive", config)
	if c := m.Status.TLS; c == nil || c.NotAfter == nil || c.Fingerprint == "" || c.PlainConnections == nil || c.LastPlainConnectionTime == nil {
		t.Errorf("the status is %+v", c)
	}

	user, password = "shop", "one"
	check("a login that isn't required", config)
	secured := s.small(shards)
	secured.TLS, secured.Auth = v1beta1.TLSSpec{Mode: v1beta1.TLSRequired, ClientCertificates: v1beta1.ClientCertificatesRequired}, v1beta1.AuthSpec{Mode: v1beta1.AuthRequired}
	s.Serve("cache", secured)
	check("TLS and a login", config)
	s.Untouched("cache", lives)
	for what, c := range map[string]secureClient{"without TLS": {nil, user, password}, "without a login": {config: config}, "with a wrong password": {config, user, "wrong"}} {
		sets[0].DialWith(c.dial)
		if n, err := sets[0].Count(); err == nil {
			t.Errorf("%d items were read %s", n, what)
		}
	}

	if b := s.backedUp("secured", "cache", store); b.Status.Snapshot.Items != shards*perShard {
		t.Errorf("the snapshot has %d items", b.Status.Snapshot.Items)
	}
	if r := s.restored("secured", "cache", "secured"); r.Status.Kept != shards*perShard {
		t.Errorf("the restore's status is %+v", r.Status)
	}

	// The container is created again, after a preflight check of the image.
	secured.Pod.Image = "memcached:" + defaultVersion
	s.Apply("cache", secured)
	if m := s.Available("cache"); s.Shard(m, 0).StartResult != v1beta1.StartWarm || s.Shard(m, 0).Items < perShard {
		t.Errorf("the status of the shard is %+v", s.Shard(m, 0))
	}
	check("after another image", config)
	pod := s.Pods("cache")[cluster.ShardName("cache", 1)]
	s.Must(k.Delete(s.Ctx, &pod))
	if shard := s.Shard(s.Replaced("cache", 1, pod), 1); shard.StartResult != v1beta1.StartHandedOver || shard.Items != perShard {
		t.Errorf("the status of the shard is %+v", shard)
	}
	check("after a handover", config)
	lives = s.Lives("cache")

	s.putSecret("cache-auth", map[string][]byte{"shop": []byte("two")})
	config, fingerprint := s.putCertificate(ca, "cache-tls")
	s.refresh("cache")
	user, password = "shop", "two"
	s.Eventually("the new password", func(ctx context.Context) error {
		for _, set := range sets {
			set.DialWith(secureClient{config, user, password}.dial)
			if _, err := set.Sample(perShard); err != nil {
				return err
			}
		}
		return nil
	})
	s.Await("cache", "the new certificate", func(m *v1beta1.Memcached) error {
		if m.Status.TLS == nil || m.Status.TLS.Fingerprint != fingerprint {
			return fmt.Errorf("the status is %+v", m.Status.TLS)
		}
		return nil
	})
	check("after a rotation", config)
	s.Untouched("cache", lives)

	secured.TLS, secured.Auth = v1beta1.TLSSpec{Mode: v1beta1.TLSDisabled}, v1beta1.AuthSpec{Mode: v1beta1.AuthDisabled}
	s.Apply("cache", secured)
	user = ""
	if m := s.Available("cache"); m.Status.TLS != nil {
		t.Errorf("the status is %+v", m.Status.TLS)
	}
	check("plain again", nil)
	s.Untouched("cache", lives)
}

// serves waits until a shard answers, for the node's proxy learns of a pod a moment after it is ready, and ends the test
// unless the whole set is there.
func (s *space) serves(what string, set *items.Set, size int) {
	s.Helper()
	var count int
	s.Eventually(what, func(context.Context) (err error) {
		count, err = set.Count()
		return err
	})
	if count != size {
		s.Fatalf("%s: %d of %d items", what, count, size)
	}
}

// refresh changes the pods, at which the kubelet updates their Secrets, too. Otherwise it does so within 90 seconds.
func (s *space) refresh(name string) {
	s.Helper()
	for _, pod := range s.Pods(name) {
		s.Must(k.Annotate(s.Ctx, &pod, "memcached-operator.io/test", pod.ResourceVersion))
	}
}
