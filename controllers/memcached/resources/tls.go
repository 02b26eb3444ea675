package resources

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
)

const (
	tlsVolume = "tls"
	tlsPath   = "/etc/tls"
)

// tlsArguments returns memcached's arguments for TLS. The agent adds the files, and the addresses that the
// modes require: memcached itself can't listen at one port with and without TLS.
func tlsArguments(tls *v1alpha1.TLS) []string {
	if tls == nil {
		return nil
	}
	words := []string{"-Z"}
	if tls.Mode == v1alpha1.TLSPermissive {
		words = append(words, "-l", fmt.Sprintf("*:%d", agentwire.MemcachedPort), "-l", fmt.Sprintf("notls:*:%d", agentwire.MemcachedPort))
	}
	var options []string
	if tls.MinVersion == v1alpha1.TLS13 {
		options = append(options, "ssl_min_version=3")
	}
	// Without the cache, a client that resumes sessions fails.
	switch tls.ClientCertificates {
	case v1alpha1.ClientCertificatesOptional:
		options = append(options, "ssl_verify_mode=1", "ssl_session_cache")
	case v1alpha1.ClientCertificatesRequired:
		options = append(options, "ssl_verify_mode=2", "ssl_session_cache")
	}
	if len(options) > 0 {
		words = append(words, "-o", strings.Join(options, ","))
	}
	return words
}

// tlsConnection returns how much more memory a connection costs with TLS, in bytes. In mode Permissive,
// the agent forwards it.
func tlsConnection(tls *v1alpha1.TLS) int64 {
	switch {
	case tls == nil:
		return 0
	case tls.Mode == v1alpha1.TLSPermissive:
		return 48 << 10
	default:
		return 24 << 10
	}
}

// TLSProblem returns why the other fields of a spec don't allow its TLS, and what to do; empty if they do.
func TLSProblem(spec *v1alpha1.MemcachedSpec) string {
	if spec.TLS == nil {
		return ""
	}
	if i := slices.IndexFunc(spec.ExtraArgs, func(word string) bool { return strings.Contains(word, "ssl_") }); i >= 0 {
		return fmt.Sprintf("spec.extraArgs contains %s; remove it: the operator sets the options of TLS, as spec.tls says", spec.ExtraArgs[i])
	}
	if spec.Resources == nil {
		return ""
	}
	limit, limited := spec.Resources.Limits[corev1.ResourceMemory]
	if least := MemoryLimit(spec); limited && limit.Cmp(least) < 0 {
		return fmt.Sprintf("spec.resources.limits.memory is %s, too small for %d connections with TLS; set it to %s or more, remove it, or lower spec.maxConnections",
			limit.String(), *spec.MaxConnections, least.String())
	}
	return ""
}

// MountedTLSSecret returns the name of the Secret that a pod mounts for TLS; empty if it mounts none, as pods of
// release 1.0.0.
func MountedTLSSecret(pod *corev1.Pod) string {
	for _, v := range pod.Spec.Volumes {
		if IsTLSVolume(v) {
			return v.Secret.SecretName
		}
	}
	return ""
}

// IsTLSVolume reports whether a pod's volume is that of the certificate.
func IsTLSVolume(v corev1.Volume) bool { return v.Name == tlsVolume && v.Secret != nil }

// addTLS lets a pod use the certificate, also while its memcached has no TLS: switching it on restarts
// memcached in the pod. Without the Secret, the volume is empty.
func (b *Builder) addTLS(spec *corev1ac.PodSpecApplyConfiguration, tls *v1alpha1.TLS) {
	secret := corev1ac.SecretVolumeSource().
		WithSecretName(v1alpha1.TLSSecretName(b.name, tls)).WithOptional(true).WithDefaultMode(readableByAll)
	for _, key := range []string{corev1.TLSCertKey, corev1.TLSPrivateKeyKey, corev1.ServiceAccountRootCAKey} {
		secret.WithItems(corev1ac.KeyToPath().WithKey(key).WithPath(key))
	}
	spec.WithVolumes(corev1ac.Volume().WithName(tlsVolume).WithSecret(secret))
	spec.Containers[0].WithArgs("-tls-dir", tlsPath).
		WithVolumeMounts(corev1ac.VolumeMount().WithName(tlsVolume).WithMountPath(tlsPath).WithReadOnly(true))
}
