package transfer

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	snapshotwire "github.com/memcached-operator/memcached-operator/internal/snapshot/wire"
)

const (
	tlsVolumeName   = "tls"
	usersVolumeName = "users"
	// readableByAll lets the Job's user read the files, which root owns.
	readableByAll = 0o444
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
func tlsVolume(m *v1beta1.Memcached) corev1.Volume {
	keys := []string{corev1.ServiceAccountRootCAKey}
	if presentsCertificate(m.Spec.TLS) {
		keys = append(keys, corev1.TLSCertKey, corev1.TLSPrivateKeyKey)
	}
	volume := corev1.SecretProjection{LocalObjectReference: corev1.LocalObjectReference{Name: v1beta1.TLSSecretName(m.Name, m.Spec.TLS)}}
	for _, key := range keys {
		volume.Items = append(volume.Items, corev1.KeyToPath{Key: key, Path: key})
	}
	return secretVolume(tlsVolumeName, volume)
}

// usersVolume returns the volume with the users, as one of which the Job logs in.
func usersVolume(m *v1beta1.Memcached) corev1.Volume {
	return secretVolume(usersVolumeName,
		corev1.SecretProjection{LocalObjectReference: corev1.LocalObjectReference{Name: v1beta1.AuthSecretName(m.Name, m.Spec.Auth)}},
		corev1.SecretProjection{LocalObjectReference: corev1.LocalObjectReference{Name: v1beta1.BindingSecretName(m.Name)},
			Items: []corev1.KeyToPath{{Key: v1beta1.BindingPasswordKey, Path: v1beta1.BindingUser}}})
}

func secretVolume(name string, secrets ...corev1.SecretProjection) corev1.Volume {
	projected := &corev1.ProjectedVolumeSource{DefaultMode: ptr.To[int32](readableByAll)}
	for _, secret := range secrets {
		secret.Optional = new(true)
		projected.Sources = append(projected.Sources, corev1.VolumeProjection{Secret: &secret})
	}
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Projected: projected}}
}
