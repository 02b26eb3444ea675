package resources

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
)

const (
	// KeySize is the size of each key of KeySecrets, in bytes.
	KeySize = 32
	// handoverKey is the file with a shard's key in its pod.
	handoverKey = "key"
	// maxShards is the largest spec.size.
	maxShards = 128

	// readableByAll is the mode of a Secret's files. Root owns them, and without an fsGroup only a mode for
	// all users lets memcached's read them. An fsGroup would make the kubelet change the owner of the items'
	// volume, too, and OpenShift chooses it. No other container mounts these volumes.
	readableByAll = 0o444

	// placement is how long the replacement of a pod may take to be scheduled, to pull its image
	// and to start. Without a handover, a terminating pod serves that long.
	placement = time.Minute
	// saveTimeout is the part of the grace period in which memcached saves its items.
	saveTimeout = 30 * time.Second
	// copyRate, in bytes per second, is the least rate at which a handover copies items under load.
	copyRate = 50_000_000
	// maxDrainTimeout keeps the grace period within an hour.
	maxDrainTimeout = time.Hour - saveTimeout
)

// HandsOver reports whether new pods of a Memcached hand over their items.
func HandsOver(m *v1beta1.Memcached) bool {
	return m.Spec.UpdateStrategy.Handover.Mode != v1beta1.HandoverDisabled
}

// CanHandOver reports whether a pod was created with what a handover requires, and not with the keys of a deleted Memcached of the same name.
func CanHandOver(m *v1beta1.Memcached, pod *corev1.Pod) bool {
	return CanReceive(pod) && !slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
		return IsKeyVolume(v) && v.Secret.SecretName != HandoverSecretName(m)
	})
}

// CanReceive reports whether a pod was created with what a handover requires.
func CanReceive(pod *corev1.Pod) bool { return pod.Annotations[annotations.Handover] != "" }

// IsKeyVolume reports whether a pod's volume is that of its key for handovers.
func IsKeyVolume(v corev1.Volume) bool { return v.Name == portHandover && v.Secret != nil }

// drainTimeout returns how long a terminating pod keeps serving while its replacement starts and
// receives its items, in whole seconds: one and a half times what a full memory takes at copyRate,
// as writes of clients are copied too. docs/handover.md has the formula.
func drainTimeout(m *v1beta1.Memcached) time.Duration {
	if !HandsOver(m) {
		return placement
	}
	seconds := (m.Spec.Memory.Value()*3/2 + copyRate - 1) / copyRate
	return min(placement+time.Duration(seconds)*time.Second, maxDrainTimeout)
}

// HandoverSecretName returns the name of the Secret with the keys of a Memcached's handovers. With a part of the UID, it
// isn't that of a deleted Memcached of the same name, which the garbage collector may delete later.
func HandoverSecretName(m *v1beta1.Memcached) string {
	return m.Name + "-handover-" + string(m.UID[:min(8, len(m.UID))])
}

// KeySecrets returns the Secrets with the keys of a Memcached.
func (b *Builder) KeySecrets() []*corev1.Secret {
	return []*corev1.Secret{b.handoverSecret(), b.scalingSecret()}
}

// handoverSecret returns the Secret with which the pods of a shard authenticate each other and encrypt the items: an
// entry for each shard that the Memcached can have, without the key, since the operator can't read or change it later.
// The kubelet needn't watch an immutable one.
func (b *Builder) handoverSecret() *corev1.Secret {
	secret := &corev1.Secret{ObjectMeta: b.owned, Type: corev1.SecretTypeOpaque, Immutable: new(true), Data: map[string][]byte{}}
	secret.Name = HandoverSecretName(b.memcached)
	for ordinal := range maxShards {
		secret.Data[ShardName(b.name, ordinal)] = nil
	}
	return secret
}

// addHandover adds to the pod of a shard what it needs for a handover. Memcached can read what is mounted, so that is the
// key of this shard only. The pod starts without the Secret, too, and then neither hands over items nor receives any.
func (b *Builder) addHandover(spec *corev1ac.PodSpecApplyConfiguration, shard string) {
	spec.WithVolumes(corev1ac.Volume().WithName(portHandover).WithSecret(corev1ac.SecretVolumeSource().
		WithSecretName(HandoverSecretName(b.memcached)).WithOptional(true).WithDefaultMode(readableByAll).
		WithItems(corev1ac.KeyToPath().WithKey(shard).WithPath(handoverKey))))
	container := &spec.Containers[0]
	if mode := b.memcached.Spec.UpdateStrategy.Handover.Mode; mode == v1beta1.HandoverAvailable {
		container.WithArgs("-handover-mode", string(mode))
	}
	container.
		WithArgs("-handover-key", keyPath+"/"+handoverKey, "-handover-listen", fmt.Sprintf(":%d", agentwire.HandoverPort),
			"-handover-owner", string(b.memcached.UID)).
		WithEnv(podField("POD_IP", "status.podIP")).
		WithPorts(port(portHandover, agentwire.HandoverPort)).
		WithVolumeMounts(corev1ac.VolumeMount().WithName(portHandover).WithMountPath(keyPath).WithReadOnly(true))
}
