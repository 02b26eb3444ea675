package resources

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
)

const (
	tlsVolume   = "tls"
	tlsPath     = "/etc/tls"
	usersVolume = "users"
	usersPath   = "/etc/users"
)

// tlsArguments returns memcached's arguments for TLS. The agent adds the files, and the addresses that the
// modes require: memcached itself can't listen at one port with and without TLS.
func tlsArguments(tls v1beta1.TLSSpec) []string {
	if !tls.IsEnabled() {
		return nil
	}
	words := []string{"-Z"}
	if tls.Mode == v1beta1.TLSPermissive {
		words = append(words, "-l", fmt.Sprintf("*:%d", agentwire.MemcachedPort), "-l", fmt.Sprintf("notls:*:%d", agentwire.MemcachedPort))
	}
	var options []string
	if tls.MinTLSVersion == v1beta1.TLS13 {
		options = append(options, "ssl_min_version=3")
	}
	// Without the cache, a client that resumes sessions fails.
	switch tls.ClientCertificates {
	case v1beta1.ClientCertificatesOptional:
		options = append(options, "ssl_verify_mode=1", "ssl_session_cache")
	case v1beta1.ClientCertificatesRequired:
		options = append(options, "ssl_verify_mode=2", "ssl_session_cache")
	}
	if len(options) > 0 {
		words = append(words, "-o", strings.Join(options, ","))
	}
	return words
}

// authArguments returns memcached's arguments for authentication. The agent writes the file.
func authArguments(auth v1beta1.AuthSpec) []string {
	if !auth.IsRequired() {
		return nil
	}
	return []string{"-Y", "users"}
}

// Protections returns the protections that a spec states, with their modes.
func Protections(spec *v1beta1.MemcachedSpec) agentwire.Protections {
	stated := agentwire.Protections{}
	if mode := spec.Auth.Mode; mode != "" {
		stated[agentwire.ProtectionAuth] = string(mode)
	}
	if mode := spec.TLS.Mode; mode != "" {
		stated[agentwire.ProtectionTLS] = string(mode)
	}
	return stated
}

// tlsConnection returns how much more memory a connection costs with TLS, in bytes. In mode Permissive,
// the agent forwards it.
func tlsConnection(tls v1beta1.TLSSpec) int64 {
	switch {
	case !tls.IsEnabled():
		return 0
	case tls.Mode == v1beta1.TLSPermissive:
		return 48 << 10
	default:
		return 24 << 10
	}
}

// MountsTLS reports whether a pod mounts a Secret for TLS.
func MountsTLS(pod *corev1.Pod, secret string) bool { return mounts(pod, tlsVolume, secret) }

// MountsUsers reports whether a pod mounts a Secret with users.
func MountsUsers(pod *corev1.Pod, secret string) bool { return mounts(pod, usersVolume, secret) }

func mounts(pod *corev1.Pod, volume, secret string) bool {
	return slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
		return v.Name == volume && IsSecretVolume(v) && v.Projected.Sources[0].Secret.Name == secret
	})
}

// MountsSecrets reports whether a pod mounts the user's Secrets.
func MountsSecrets(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.Volumes, IsSecretVolume)
}

// IsSecretVolume reports whether a pod's volume is that of a Secret of the user.
func IsSecretVolume(v corev1.Volume) bool {
	return (v.Name == tlsVolume || v.Name == usersVolume) && v.Projected != nil && len(v.Projected.Sources) > 0 && v.Projected.Sources[0].Secret != nil
}

// addSecrets lets a pod use the certificate and the users, even while its memcached has neither: switching them on
// restarts memcached in the pod. Without a Secret, its part of a volume is empty. The image, which the user of the
// Memcached can choose, can read what is mounted: of the certificate only the entries that memcached needs. Those with
// the users have the names of the users.
func (b *Builder) addSecrets(spec *corev1ac.PodSpecApplyConfiguration, revision *v1beta1.MemcachedSpec) {
	mount := func(name, flag, path string, secrets ...corev1.SecretProjection) {
		volume := b.options.Restrictions.SecretVolume(name, secrets...)
		if len(volume.Projected.Sources) == 0 {
			return
		}
		spec.WithVolumes(convert[corev1ac.VolumeApplyConfiguration](volume))
		spec.Containers[0].WithArgs(flag, path).
			WithVolumeMounts(corev1ac.VolumeMount().WithName(name).WithMountPath(path).WithReadOnly(true))
	}
	mount(tlsVolume, "-tls-dir", tlsPath, CertificateSecret(b.name, revision.TLS, corev1.TLSCertKey, corev1.TLSPrivateKeyKey, corev1.ServiceAccountRootCAKey))
	mount(usersVolume, "-auth-dir", usersPath, UserSecrets(b.name, revision.Auth)...)
}

// CertificateSecret returns these entries of the Secret with the certificate of a Memcached.
func CertificateSecret(memcached string, tls v1beta1.TLSSpec, keys ...string) corev1.SecretProjection {
	secret := corev1.SecretProjection{LocalObjectReference: corev1.LocalObjectReference{Name: v1beta1.TLSSecretName(memcached, tls)}}
	for _, key := range keys {
		secret.Items = append(secret.Items, corev1.KeyToPath{Key: key, Path: key})
	}
	return secret
}

// UserSecrets returns the Secrets with the users of a Memcached: that of spec.auth, and of a binding's the password of its user.
func UserSecrets(memcached string, auth v1beta1.AuthSpec) []corev1.SecretProjection {
	return []corev1.SecretProjection{
		{LocalObjectReference: corev1.LocalObjectReference{Name: v1beta1.AuthSecretName(memcached, auth)}},
		{LocalObjectReference: corev1.LocalObjectReference{Name: v1beta1.BindingSecretName(memcached)},
			Items: []corev1.KeyToPath{{Key: v1beta1.BindingPasswordKey, Path: v1beta1.BindingUser}}},
	}
}

// SecretVolume returns a volume with those Secrets that the settings allow. A pod starts without them, too.
func (r Restrictions) SecretVolume(name string, secrets ...corev1.SecretProjection) corev1.Volume {
	projected := &corev1.ProjectedVolumeSource{DefaultMode: new(int32(readableByAll))}
	for _, secret := range secrets {
		if r.allowSecret(secret.Name) {
			secret.Optional = new(true)
			projected.Sources = append(projected.Sources, corev1.VolumeProjection{Secret: &secret})
		}
	}
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Projected: projected}}
}
