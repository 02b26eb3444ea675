package plan

import (
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/applycache"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/shard"
	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
)

// Observation is everything that a reconcile has read.
type Observation struct {
	Memcached *v1alpha1.Memcached
	// Now is when it was read.
	Now time.Time
	// Image that the spec selects, or ImageError if it is invalid; while Follow has a message,
	// the image in the status.
	Image      resources.Image
	ImageError error
	Follow     Follow
	// DefaultImage that Image depends on; empty if it depends on none.
	DefaultImage string
	// UpdateRevision is the pod configuration that the spec results in.
	UpdateRevision resources.PodRevision
	// Objects with a name that a Memcached of this size uses, and the shards beyond it. A
	// name without an object has no entry.
	Objects map[resources.Key]Object
	// Pods by the name of their shard, ordered by shard.ComparePods.
	Pods map[string][]*corev1.Pod
	// Shards within the size whose ReplicaSet belongs to this Memcached, by ordinal.
	Shards []shard.Observation
	// Names of the shards within the size, by ordinal.
	Names []string
	// Owned is the metadata of objects that are deleted with the Memcached, without a name.
	Owned metav1.ObjectMeta
	// Cached are the objects that an earlier reconcile found up to date.
	Cached applycache.Objects
	// PreflightPods check images on nodes.
	PreflightPods []*corev1.Pod
	// Agents are the agents' answers by pod name. An agent that was not queried, or did not
	// answer, has no entry; it is in Unreachable if the query failed.
	Agents      map[string]agentwire.Status
	Unreachable map[string]bool
	// Silences are those of the agents that let this reconcile or the last one wait, by the UIDs of their pods.
	Silences map[types.UID]applycache.Silence
	// Receiving are the answers of the agents in pods that receive the items of another one.
	Receiving map[string]agentwire.Status
	// Secrets are what agents reported last of their Secrets, by the UIDs of their pods.
	Secrets map[types.UID]agentwire.Secrets
	// Restores into this Memcached, by name.
	Restores map[string]Object
	// FinalBackup of a Memcached that is being deleted; nil while there is none.
	FinalBackup *v1alpha1.MemcachedBackup
	// Binding is the Secret of spec.binding, read only to change it.
	Binding Object
	// BindingForbidden is whether the operator may not read it.
	BindingForbidden bool
	// BindingTriedAt is when an earlier reconcile created or updated it, or failed to.
	BindingTriedAt time.Time
	// Backups of the Memcached, read only when a shard may have been lost.
	Backups []*v1alpha1.MemcachedBackup
}

// Object is an existing object.
type Object struct {
	resources.APIObject
	Owner Ownership
}

// Ownership is who owns an object.
type Ownership int

const (
	// Ours is an object that this Memcached controls.
	Ours Ownership = iota
	// Orphaned is one that the operator created for a Memcached of this name, and that has no
	// controller. The operator adopts it with its items.
	Orphaned
	// Predecessors is one that a deleted Memcached of this name controls; the garbage collector
	// will delete it.
	Predecessors
	// Foreign is one of another owner, never written and never deleted.
	Foreign
)

// OwnershipOf returns who owns an object.
func OwnershipOf(m *v1alpha1.Memcached, o resources.APIObject) Ownership {
	controller := metav1.GetControllerOf(o)
	switch {
	case controller == nil:
		if o.GetLabels()[v1alpha1.LabelManagedBy] == v1alpha1.ManagedByValue && o.GetLabels()[v1alpha1.LabelInstance] == m.Name {
			return Orphaned
		}
		return Foreign
	case controller.UID == m.UID:
		return Ours
	case controller.Kind == "Memcached" && controller.Name == m.Name && strings.HasPrefix(controller.APIVersion, v1alpha1.GroupVersion.Group+"/"):
		return Predecessors
	default:
		return Foreign
	}
}

// IsShards reports whether an object belongs to this Memcached or can be adopted by it.
func (o Object) IsShards() bool { return o.Owner == Ours || o.Owner == Orphaned }

// ReplicaSet returns a shard's ReplicaSet, or nil.
func (obs *Observation) ReplicaSet(name string) *appsv1.ReplicaSet {
	set, _ := obs.Objects[resources.Key{Kind: resources.KindReplicaSet, Name: name}].APIObject.(*appsv1.ReplicaSet)
	return set
}

// Follow is whether a Memcached keeps its image while the operator has another default image.
type Follow struct {
	// Message says what it waits for; empty when it doesn't wait.
	Message string
	// recheck is when to check again; 0 is never.
	recheck time.Duration
}

// ReadShards determines the update revision, and the shards' revisions and pods.
func (obs *Observation) ReadShards() {
	m := obs.Memcached
	obs.UpdateRevision = resources.NewPodRevision(&m.Spec, obs.Image)
	shards := shard.Observer{Status: &m.Status, Update: obs.UpdateRevision}
	size := int(*m.Spec.Size)
	obs.Shards, obs.Names = make([]shard.Observation, 0, size), make([]string, 0, size)
	for ordinal := range size {
		name := resources.ShardName(m.Name, ordinal)
		obs.Names = append(obs.Names, name)
		set, ok := obs.Objects[resources.Key{Kind: resources.KindReplicaSet, Name: name}]
		if ok && set.IsShards() {
			obs.Shards = append(obs.Shards, shards.Observe(ordinal, set.APIObject.(*appsv1.ReplicaSet), obs.Pods[name]))
		}
	}
}
