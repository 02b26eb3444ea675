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
	mount := func(volume, flag, path string, secrets ...*corev1ac.SecretProjectionApplyConfiguration) {
		projected := corev1ac.ProjectedVolumeSource().WithDefaultMode(readableByAll)
		for _, secret := range secrets {
			if b.options.Restrictions.allowSecret(*secret.Name) {
				projected.WithSources(corev1ac.VolumeProjection().WithSecret(secret.WithOptional(true)))
			}
		}
		if len(projected.Sources) == 0 {
			return
		}
		spec.WithVolumes(corev1ac.Volume().WithName(volume).WithProjected(projected))
		spec.Containers[0].WithArgs(flag, path).
			WithVolumeMounts(corev1ac.VolumeMount().WithName(volume).WithMountPath(path).WithReadOnly(true))
	}
	entry := func(key, path string) *corev1ac.KeyToPathApplyConfiguration {
		return corev1ac.KeyToPath().WithKey(key).WithPath(path)
	}
	mount(tlsVolume, "-tls-dir", tlsPath, corev1ac.SecretProjection().WithName(v1beta1.TLSSecretName(b.name, revision.TLS)).
		WithItems(entry(corev1.TLSCertKey, corev1.TLSCertKey), entry(corev1.TLSPrivateKeyKey, corev1.TLSPrivateKeyKey), entry(corev1.ServiceAccountRootCAKey, corev1.ServiceAccountRootCAKey)))
	mount(usersVolume, "-auth-dir", usersPath,
		corev1ac.SecretProjection().WithName(v1beta1.AuthSecretName(b.name, revision.Auth)),
		corev1ac.SecretProjection().WithName(v1beta1.BindingSecretName(b.name)).WithItems(entry(v1beta1.BindingPasswordKey, v1beta1.BindingUser)))
}
