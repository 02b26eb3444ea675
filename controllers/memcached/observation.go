package memcached

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

// observation is everything that a reconcile has read.
type observation struct {
	memcached *v1alpha1.Memcached
	// now is when it was read.
	now time.Time
	// image that the spec selects, or imageError if it is invalid; while follow has a message,
	// the image in the status.
	image      resources.Image
	imageError error
	follow     follow
	// defaultImage that image depends on; empty if it depends on none.
	defaultImage string
	// updateRevision is the pod configuration that the spec results in.
	updateRevision resources.PodRevision
	// objects with a name that a Memcached of this size uses, and the shards beyond it. A
	// name without an object has no entry.
	objects map[resources.Key]object
	// pods by the name of their shard, ordered by shard.ComparePods.
	pods map[string][]*corev1.Pod
	// shards within the size whose ReplicaSet belongs to this Memcached, by ordinal.
	shards []shard.Observation
	// names of the shards within the size, by ordinal.
	names []string
	// owned is the metadata of objects that are deleted with the Memcached, without a name.
	owned metav1.ObjectMeta
	// cached are the objects that an earlier reconcile found up to date, and failed the
	// attempts that failed.
	cached applycache.Objects
	failed applycache.Attempts
	// unread are missing names that a later reconcile looks up: see batch.
	unread map[resources.Key]bool
	// unownedPods are the names of shards whose Services select pods that don't belong to
	// this Memcached: those of a deleted one of its name haven't terminated yet.
	unownedPods map[string]bool
	// preflightPods check images on nodes.
	preflightPods []*corev1.Pod
	// agents are the agents' answers by pod name. An agent that was not queried, or did not
	// answer, has no entry; it is in unreachable if the query failed.
	agents      map[string]agentwire.Status
	unreachable map[string]bool
	// receiving are the answers of the agents in pods that receive the items of another one.
	receiving map[string]agentwire.Status
	// secrets are what agents reported last of their Secrets, by the UIDs of their pods.
	secrets map[types.UID]agentwire.Secrets
	// restores into this Memcached, by name.
	restores map[string]object
	// finalBackup of a Memcached that is being deleted; nil while there is none.
	finalBackup *v1alpha1.MemcachedBackup
	// binding is the Secret of spec.binding, read only to change it.
	binding object
	// bindingForbidden is whether the operator may not read it.
	bindingForbidden bool
	// backups of the Memcached, read only when a shard may have been lost.
	backups []*v1alpha1.MemcachedBackup
}

// object is an existing object.
type object struct {
	resources.APIObject
	owner ownership
}

// ownership is who owns an object.
type ownership int

const (
	// ours: this Memcached controls it.
	ours ownership = iota
	// orphaned: the operator created it for a Memcached of this name, and it has no
	// controller. The operator adopts it with its items.
	orphaned
	// predecessors: a deleted Memcached of this name controls it, and the garbage collector
	// will delete it.
	predecessors
	// foreign: another owner's, never written and never deleted.
	foreign
)

// ownershipOf returns who owns an object.
func ownershipOf(m *v1alpha1.Memcached, o resources.APIObject) ownership {
	controller := metav1.GetControllerOf(o)
	switch {
	case controller == nil:
		if o.GetLabels()[v1alpha1.LabelManagedBy] == v1alpha1.ManagedByValue && o.GetLabels()[v1alpha1.LabelInstance] == m.Name {
			return orphaned
		}
		return foreign
	case controller.UID == m.UID:
		return ours
	case controller.Kind == "Memcached" && controller.Name == m.Name && strings.HasPrefix(controller.APIVersion, v1alpha1.GroupVersion.Group+"/"):
		return predecessors
	default:
		return foreign
	}
}

// isShards reports whether an object belongs to this Memcached or can be adopted by it.
func (o object) isShards() bool { return o.owner == ours || o.owner == orphaned }

// replicaSet returns a shard's ReplicaSet, or nil.
func (obs *observation) replicaSet(name string) *appsv1.ReplicaSet {
	set, _ := obs.objects[resources.Key{Kind: resources.KindReplicaSet, Name: name}].APIObject.(*appsv1.ReplicaSet)
	return set
}

// follow is whether a Memcached keeps its image while the operator has another default image.
type follow struct {
	// message says what it waits for; empty when it doesn't wait.
	message string
	// recheck is when to check again; 0 is never.
	recheck time.Duration
}

// readShards determines the update revision, and the shards' revisions and pods.
func (obs *observation) readShards() {
	m := obs.memcached
	obs.updateRevision = resources.NewPodRevision(&m.Spec, obs.image)
	shards := shard.Observer{Status: &m.Status, Update: obs.updateRevision}
	size := int(*m.Spec.Size)
	obs.shards, obs.names = make([]shard.Observation, 0, size), make([]string, 0, size)
	for ordinal := range size {
		name := resources.ShardName(m.Name, ordinal)
		obs.names = append(obs.names, name)
		set, ok := obs.objects[resources.Key{Kind: resources.KindReplicaSet, Name: name}]
		if ok && set.isShards() {
			obs.shards = append(obs.shards, shards.Observe(ordinal, set.APIObject.(*appsv1.ReplicaSet), obs.pods[name]))
		}
	}
}
