package resources

import (
	"cmp"
	"fmt"
	"maps"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/utils/ptr"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
	"github.com/memcached-operator/memcached-operator/internal/memcached/ring"
)

const (
	// scalingKey is the entry of the Secret with the key that all shards share, and scalingPath where it is mounted.
	scalingKey, scalingVolume, scalingPath = "key", "scaling", "/etc/scaling"
	// MaxScalingRequest is more than the size, in bytes, of the largest request to move items that a pod can have.
	MaxScalingRequest = 32 << 10
)

// Sizes are the numbers of shards that exist, of those in the list for clients, and of those that a client can know from that list or
// the former one: the first ones.
type Sizes struct{ Exist, Listed, Known int }

// SizesOf returns the sizes of a Memcached: that of Size, unless items move to other shards. What depends on a step is done when the
// status has the step. Neither a Memcached that is paused nor one that is being deleted gets another size.
func SizesOf(m *v1beta1.Memcached) Sizes {
	s := cmp.Or(ScalingOf(m), m.Status.Scaling)
	if s == nil {
		size := int(Size(m))
		if listed := sizeOfList(m); listed > 0 && (m.Spec.Paused || m.DeletionTimestamp != nil) {
			size = int(listed)
		}
		return Sizes{size, size, size}
	}
	from, to := int(s.From), int(s.To)
	switch {
	case s.Step == v1beta1.ScalingPreparing:
		return Sizes{from, from, from}
	case s.Step == v1beta1.ScalingFinishing:
		return Sizes{to, to, to}
	case isPublished(s):
		return Sizes{max(from, to), to, max(from, to)}
	default:
		return Sizes{max(from, to), from, from}
	}
}

// Listed returns the number of shards that clients know, for readers of a Memcached: it can have another size than a rejected spec.
func Listed(m *v1beta1.Memcached) int {
	if IsRejected(m) {
		m = Paused(m)
	}
	return SizesOf(m).Listed
}

// Paused returns a Memcached as a paused one, which is what a rejected spec makes of it.
func Paused(m *v1beta1.Memcached) *v1beta1.Memcached {
	paused := *m
	paused.Spec.Paused = true
	return &paused
}

// IsRejected reports whether the status says that the spec is rejected.
func IsRejected(m *v1beta1.Memcached) bool {
	c := meta.FindStatusCondition(m.Status.Conditions, v1beta1.ConditionProgressing)
	return c != nil && c.Reason == v1beta1.ReasonSpecRejected && c.ObservedGeneration == m.Generation
}

// isPublished reports whether clients may have the new list.
func isPublished(s *v1beta1.ScalingStatus) bool {
	return s.Step != v1beta1.ScalingPreparing && s.Step != v1beta1.ScalingCopying && s.Step != v1beta1.ScalingPublishing
}

// ScalingOf returns the change of the number of shards in which items move: that of the status, or one that begins. It is nil if there is
// none, or no longer.
func ScalingOf(m *v1beta1.Memcached) *v1beta1.ScalingStatus {
	switch s := m.Status.Scaling; {
	case s == nil && resizes(m) && ColdReason(m, sizeOfList(m), Size(m)) == "":
		return &v1beta1.ScalingStatus{From: sizeOfList(m), To: Size(m), Step: v1beta1.ScalingPreparing}
	case s == nil || s.Step == v1beta1.ScalingFinishing:
		return nil
	default:
		return s
	}
}

// sizeOfList returns the number of shards that clients know by status.servers, where the Service of one can be missing. Others may exist,
// which an earlier change has left.
func sizeOfList(m *v1beta1.Memcached) int32 {
	size := len(m.Status.Servers)
	if size > 0 {
		last, _, _ := strings.Cut(m.Status.Servers[size-1], ".")
		if ordinal, ok := Ordinal(m.Name, last); ok {
			size = ordinal + 1
		}
	}
	return int32(size) //nolint:gosec // at most 128 by the CRD
}

// resizes reports whether the size is another than the number of shards that clients know.
func resizes(m *v1beta1.Memcached) bool {
	if m.Status.ObservedGeneration <= 0 || m.Spec.Paused || m.DeletionTimestamp != nil {
		return false
	}
	size, was := Size(m), m.Status.LimitedSize
	if sizeOfList(m) == size || m.Status.ObservedGeneration == m.Generation && !IsRejected(m) && (was == nil || was.Size == size) {
		return false
	}
	return HasServers(m, len(m.Status.Servers))
}

// HasServers reports whether the status lists the servers of so many shards, and no others, in their order.
func HasServers(m *v1beta1.Memcached, size int) bool {
	for ordinal, server := range m.Status.Servers {
		if !strings.HasPrefix(server, ShardName(m.Name, ordinal)+".") {
			return false
		}
	}
	return len(m.Status.Servers) == size
}

// GetsKeys reports whether a shard gets keys of others while items move.
func GetsKeys(m *v1beta1.Memcached, s *v1beta1.ScalingStatus, ordinal int) bool {
	name := string(ptr.Deref(m.Spec.Access.Hashing, v1beta1.Hashing{}).Algorithm)
	return ordinal < int(s.To) && len(ring.Sources(name, int(s.From), int(s.To), ordinal)) > 0
}

// ListedAs returns the label of the pods of a shard that stays while others leave; empty for none.
func ListedAs(m *v1beta1.Memcached, ordinal int) string {
	if s := m.Status.Scaling; s != nil && s.To < s.From && ordinal < int(s.To) {
		return s.ID
	}
	return ""
}

// listed returns labels with that of the pods that stay.
func (d Desired) listed(labels map[string]string) map[string]string {
	if d.Listed == "" {
		return labels
	}
	labels = maps.Clone(labels)
	labels[annotations.Listed] = d.Listed
	return labels
}

// ColdReason returns why no items move when the number of shards changes, and what to do; empty if they can. From a number to
// itself, it returns why none can be purged.
func ColdReason(m *v1beta1.Memcached, from, to int32) string {
	switch hashing, fewer := m.Spec.Access.Hashing, min(from, to); {
	case m.Spec.Scaling.Mode == v1beta1.ScalingCold && from != to:
		return "spec.scaling.mode is Cold"
	case hashing == nil:
		return "set spec.access.hashing to what your clients use"
	case !HandsOver(m):
		return "set spec.updateStrategy.handover.mode to another value than Disabled"
	case fewer < 2:
		return "it requires two shards or more before and after"
	case hashing.Algorithm == v1beta1.HashModulo && ring.Reshuffles(ring.Modulo, int(from), int(to)):
		return "with Modulo, it requires a multiple of the smaller number of shards"
	}
	return ""
}

// ColdScaling returns why no items move although the spec has another size than the status that clients know; empty if they do, or
// if there are none.
func ColdScaling(m *v1beta1.Memcached) string {
	if !resizes(m) || sizeOfList(m) == 0 || Size(m) == 0 {
		return ""
	}
	return ColdReason(m, sizeOfList(m), Size(m))
}

// ScalingRequest returns what the pod of a shard has to know of a change of the number of shards, for which there is no ColdReason.
func (o Options) ScalingRequest(m *v1beta1.Memcached, s *v1beta1.ScalingStatus, ordinal int, step agentwire.ScalingStep) string {
	r := agentwire.Scaling{
		ID: s.ID, Ring: string(m.Spec.Access.Hashing.Algorithm), Ordinal: ordinal, Step: step,
		From: v1beta1.HashedNames(m, o.servers(m, int(s.From))), To: v1beta1.HashedNames(m, o.servers(m, int(s.To))),
	}
	for ordinal := range int(s.From) {
		r.Agents = append(r.Agents, fmt.Sprintf("%s:%d", o.Host(m.Namespace, ShardName(m.Name, ordinal)), agentwire.Port))
	}
	return r.String()
}

// scalingSecretName returns the name of the Secret with the key that all shards of a Memcached share.
func scalingSecretName(m *v1beta1.Memcached) string {
	return m.Name + "-scaling-" + string(m.UID[:min(8, len(m.UID))])
}

// scalingSecret returns the Secret with which shards authenticate each other and encrypt the items that move, without the key. A shard's
// key of handovers is no other shard's.
func (b *Builder) scalingSecret() *corev1.Secret {
	secret := &corev1.Secret{ObjectMeta: b.owned, Type: corev1.SecretTypeOpaque, Immutable: new(true), Data: map[string][]byte{scalingKey: nil}}
	secret.Name = scalingSecretName(b.memcached)
	return secret
}

// addScaling adds to the pod of a shard what it needs to move items to other shards. The pod starts without the Secret, too.
func (b *Builder) addScaling(spec *corev1ac.PodSpecApplyConfiguration, shard string) {
	spec.WithVolumes(corev1ac.Volume().WithName(scalingVolume).WithSecret(corev1ac.SecretVolumeSource().
		WithSecretName(scalingSecretName(b.memcached)).WithOptional(true).WithDefaultMode(readableByAll).
		WithItems(corev1ac.KeyToPath().WithKey(scalingKey).WithPath(scalingKey))))
	ordinal, _ := Ordinal(b.name, shard)
	spec.Containers[0].WithArgs("-scaling-key", scalingPath+"/"+scalingKey, "-ordinal", strconv.Itoa(ordinal)).
		WithVolumeMounts(corev1ac.VolumeMount().WithName(scalingVolume).WithMountPath(scalingPath).WithReadOnly(true))
}
