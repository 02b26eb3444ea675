package transfer

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	snapshotwire "github.com/memcached-operator/memcached-operator/internal/snapshot/wire"
)

const (
	tlsVolumeName   = "tls"
	usersVolumeName = "users"
)

// taskTLS returns how a Job connects to the shards of a Memcached with TLS.
func taskTLS(m *v1beta1.Memcached, servers []string) *snapshotwire.TLS {
	t := &snapshotwire.TLS{ClientCertificate: presentsCertificate(m.Spec.TLS), AllowPlain: m.Spec.TLS.Mode == v1beta1.TLSPermissive}
	for _, server := range servers {
		host, _, _ := strings.Cut(server, ":")
		t.ServerNames = append(t.ServerNames, host)
	}
	return t
}

func presentsCertificate(tls v1beta1.TLSSpec) bool {
	return tls.ClientCertificates == v1beta1.ClientCertificatesOptional || tls.ClientCertificates == v1beta1.ClientCertificatesRequired
}

// tlsVolume returns the volume with the files that the Job needs: the key only for a client certificate.
func (o Options) tlsVolume(m *v1beta1.Memcached) corev1.Volume {
	keys := []string{corev1.ServiceAccountRootCAKey}
	if presentsCertificate(m.Spec.TLS) {
		keys = append(keys, corev1.TLSCertKey, corev1.TLSPrivateKeyKey)
	}
	return o.Restrictions.SecretVolume(tlsVolumeName, resources.CertificateSecret(m.Name, m.Spec.TLS, keys...))
}

// usersVolume returns the volume with the users, as one of which the Job logs in.
func (o Options) usersVolume(m *v1beta1.Memcached) corev1.Volume {
	return o.Restrictions.SecretVolume(usersVolumeName, resources.UserSecrets(m.Name, m.Spec.Auth)...)
}
