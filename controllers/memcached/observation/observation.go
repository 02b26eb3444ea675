package observation

import (
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/shard"
	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
)

// Observation is everything that a reconcile has read.
type Observation struct {
	// Memcached as it was read, or as a paused one if its spec is rejected.
	Memcached *v1beta1.Memcached
	// Rejected is why the spec can't be applied, or nil, and Paused whether its user has paused it.
	Rejected *shard.Problem
	Paused   bool
	// Now is when it was read.
	Now time.Time
	// Memory of earlier reconciles, in which this one replaces the silences and reports of agents.
	Memory
	// Image that the spec selects, or ImageError if it is invalid; while DefaultImageHold has a
	// message, the image in the status.
	Image            resources.Image
	ImageError       error
	DefaultImageHold DefaultImageHold
	// DefaultImage that Image depends on; empty if it depends on none.
	DefaultImage string
	// UpdateRevision is the pod configuration that the spec results in.
	UpdateRevision resources.PodRevision
	// Objects with a name that a Memcached of this size uses, and the shards beyond it. A
	// name without an object has no entry.
	Objects map[resources.Key]Object
	// Pods by the name of their shard, ordered by shard.ComparePods.
	Pods map[string][]*corev1.Pod
	// HasRemains is whether a pod serves whose ReplicaSet was deleted. The garbage collector will delete it.
	HasRemains bool
	// Shards that should exist whose ReplicaSet belongs to this Memcached, by ordinal.
	Shards []shard.Observation
	// Names of the shards that should exist, by ordinal.
	Names []string
	// Owned is the metadata of objects that are deleted with the Memcached, without a name.
	Owned metav1.ObjectMeta
	// PreflightPods check images on nodes.
	PreflightPods []*corev1.Pod
	// Agents are the agents' answers by pod name. An agent that was not queried, or did not
	// answer, has no entry; it is in Unreachable if the query failed.
	Agents      map[string]agentwire.Status
	Unreachable map[string]bool
	// Answers are all answers of agents by pod name, also those that don't describe the latest start.
	Answers map[string]agentwire.Status
	// Restores into this Memcached, by name.
	Restores map[string]Object
	// FinalBackup of a Memcached that is being deleted; nil while there is none.
	FinalBackup *v1beta1.MemcachedBackup
	// Binding is the Secret of spec.access.binding, read only to change it.
	Binding Object
	// BindingForbidden is whether the operator may not read it.
	BindingForbidden bool
	// RehearsalFailed is whether the dry run of the step that follows failed.
	RehearsalFailed bool
	// Budgets are the PodDisruptionBudgets of the namespace that no Memcached controls, of which only the selector is known.
	Budgets []policyv1.PodDisruptionBudget
	// Backups of the Memcached, read only when a shard may have been lost.
	Backups []*v1beta1.MemcachedBackup
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
func OwnershipOf(m *v1beta1.Memcached, o resources.APIObject) Ownership {
	controller := metav1.GetControllerOf(o)
	switch {
	case controller == nil:
		if o.GetLabels()[v1beta1.LabelManagedBy] == v1beta1.ManagedByValue && o.GetLabels()[v1beta1.LabelInstance] == m.Name {
			return Orphaned
		}
		return Foreign
	case controller.UID == m.UID:
		return Ours
	case controller.Kind == "Memcached" && controller.Name == m.Name && strings.HasPrefix(controller.APIVersion, v1beta1.GroupVersion.Group+"/"):
		return Predecessors
	default:
		return Foreign
	}
}

// IsManaged reports whether an object belongs to this Memcached or can be adopted by it.
func (o Object) IsManaged() bool { return o.Owner == Ours || o.Owner == Orphaned }

// ReplicaSet returns a shard's ReplicaSet, or nil.
func (obs *Observation) ReplicaSet(name string) *appsv1.ReplicaSet {
	set, _ := obs.Objects[resources.Key{Kind: resources.KindReplicaSet, Name: name}].APIObject.(*appsv1.ReplicaSet)
	return set
}

// ReadShards determines the update revision, and the shards' revisions and pods.
func (obs *Observation) ReadShards() {
	m := obs.Memcached
	obs.UpdateRevision = resources.NewPodRevision(&m.Spec, obs.Image)
	shards := shard.Observer{Status: &m.Status, Update: obs.UpdateRevision}
	size := resources.SizesOf(m).Exist
	obs.Shards, obs.Names = make([]shard.Observation, 0, size), make([]string, 0, size)
	for ordinal := range size {
		name := resources.ShardName(m.Name, ordinal)
		obs.Names = append(obs.Names, name)
		set, ok := obs.Objects[resources.Key{Kind: resources.KindReplicaSet, Name: name}]
		if ok && set.IsManaged() {
			obs.Shards = append(obs.Shards, shards.Observe(ordinal, set.APIObject.(*appsv1.ReplicaSet), obs.Pods[name]))
		}
	}
}

// Listed returns the names of the shards that clients know, by ordinal.
func (obs *Observation) Listed() []string {
	return obs.Names[:min(resources.SizesOf(obs.Memcached).Listed, len(obs.Names))]
}

// NoteAdmitted remembers the result of a dry run, and forgets those of pods that no shard has.
func (obs *Observation) NoteAdmitted(pod types.UID, image shard.AdmittedImage) {
	all := map[types.UID]shard.AdmittedImage{pod: image}
	for _, s := range obs.Shards {
		if s.Active == nil || s.Active.UID == pod {
			continue
		}
		if other, ok := obs.Admitted[s.Active.UID]; ok {
			all[s.Active.UID] = other
		}
	}
	obs.Admitted = all
}

// BindingIsOutdated reports whether the Secret lists other shards than it should. New shards are listed when all are ready.
func BindingIsOutdated(m *v1beta1.Memcached) bool {
	was, size := m.Status.Binding, int32(resources.SizesOf(m).Listed) //nolint:gosec // at most 128 by the CRD
	return was == nil || was.Name == "" || size < was.Size || size > was.Size && m.Status.ReadyShards == size
}

// FinalBackupName returns the name of the final backup of a Memcached. It differs for
// another Memcached of the same name.
func FinalBackupName(m *v1beta1.Memcached) string {
	return m.Name + "-final-" + string(m.UID[:min(len(m.UID), 8)])
}
