package memcached

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/manifests"
	"github.com/memcached-operator/memcached-operator/internal/agentapi"
	"github.com/memcached-operator/memcached-operator/internal/index"
)

// observed is all that a reconcile saw.
type observed struct {
	memcached *v1alpha1.Memcached
	// now is when it was seen.
	now time.Time
	// image that the spec asks for, unusable if it is none, and target all that it asks
	// of a pod.
	image    manifests.Image
	unusable error
	target   manifests.Asked
	// objects that bear a name which a Memcached of this size uses, or are shards
	// beyond it. An absent name has no entry.
	objects map[manifests.Key]object
	// pods by the name of their shard: the one that holds it first.
	pods map[string][]*corev1.Pod
	// shards that are asked for and have a ReplicaSet that is theirs, by ordinal, as far
	// as their objects tell.
	shards []shard
	// found is which objects another reconcile found to be as they should be.
	found finding
	// strays are pods that a shard's Services lead to as well, and that are not this
	// Memcached's: those of a deleted one of its name have not ended yet.
	strays map[string]bool
	// proofs are the pods in which images are proven.
	proofs []*corev1.Pod
	// agents' answers by pod name; without an entry the agent was not asked, or did
	// not answer.
	agents map[string]agentapi.Status
	// silent are the pods, by name, whose agents were asked and could not be reached.
	silent map[string]bool
	// restores that were made for this Memcached, by name.
	restores map[string]object
	// final is the last backup of a Memcached that is being deleted; nil while there
	// is none.
	final *v1alpha1.MemcachedBackup
	// backups of it, read when a shard may have been lost.
	backups []*v1alpha1.MemcachedBackup
}

// object is one that exists.
type object struct {
	client.Object
	owner ownership
}

// ownership says whose an object is.
type ownership int

const (
	// ours: this Memcached controls it.
	ours ownership = iota
	// orphaned: the operator made it for a Memcached of this name, and no one
	// controls it. It is taken over, with its items.
	orphaned
	// predecessors: a deleted Memcached of this name controls it, and the garbage
	// collector will end it.
	predecessors
	// foreign: somebody else's, never written and never ended.
	foreign
)

// ownershipOf returns whose an object is.
func ownershipOf(m *v1alpha1.Memcached, o client.Object) ownership {
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

// observe reads all that a reconcile needs.
func (r *Reconciler) observe(ctx context.Context, m *v1alpha1.Memcached) (*observed, error) {
	seen := &observed{
		memcached: m,
		now:       r.Clock.Now(),
		objects:   map[manifests.Key]object{},
		pods:      map[string][]*corev1.Pod{},
		strays:    map[string]bool{},
		agents:    map[string]agentapi.Status{},
		silent:    map[string]bool{},
	}
	if err := r.observeObjects(ctx, seen); err != nil {
		return nil, err
	}
	if err := r.observePods(ctx, seen); err != nil {
		return nil, err
	}
	seen.readShards(r.Options.DefaultImage)
	r.askAgents(ctx, seen)
	if err := r.observeRuns(ctx, seen); err != nil {
		return nil, err
	}
	return seen, nil
}

// observeObjects reads the objects of the Memcached. The cache holds those that
// bear the operator's label. A name that is not among them is looked up at the
// API server: it may be free, somebody else's, newer than the cache, or without
// its label.
func (r *Reconciler) observeObjects(ctx context.Context, seen *observed) error {
	m := seen.memcached
	var (
		replicaSets appsv1.ReplicaSetList
		services    corev1.ServiceList
		budgets     policyv1.PodDisruptionBudgetList
		policies    networkingv1.NetworkPolicyList
	)
	for _, list := range []client.ObjectList{&replicaSets, &services, &budgets, &policies} {
		if err := r.list(ctx, m, list, manifests.Labels(m.Name)); err != nil {
			return err
		}
	}
	add := func(kind manifests.Kind, o client.Object) {
		seen.objects[manifests.Key{Kind: kind, Name: o.GetName()}] = object{o, ownershipOf(m, o)}
	}
	for i := range replicaSets.Items {
		add(manifests.KindReplicaSet, &replicaSets.Items[i])
	}
	for i := range services.Items {
		add(manifests.KindService, &services.Items[i])
	}
	for i := range budgets.Items {
		add(manifests.KindPodDisruptionBudget, &budgets.Items[i])
	}
	for i := range policies.Items {
		add(manifests.KindNetworkPolicy, &policies.Items[i])
	}
	for _, key := range manifests.Keys(m.Name, int(*m.Spec.Size)) {
		if _, ok := seen.objects[key]; ok {
			continue
		}
		o := newObject(key.Kind)
		switch err := r.Live.Get(ctx, client.ObjectKey{Namespace: m.Namespace, Name: key.Name}, o); {
		case err == nil:
			add(key.Kind, o)
		case !apierrors.IsNotFound(err):
			return fmt.Errorf("looking up %s: %w", key, err)
		}
	}
	return nil
}

// list reads what was made for a Memcached and has these labels. What comes from the
// cache is the cache's own and must not be changed: a copy of it all would be most of
// a reconcile that finds nothing to do.
func (r *Reconciler) list(ctx context.Context, m *v1alpha1.Memcached, into client.ObjectList, labels map[string]string) error {
	err := r.Client.List(ctx, into, client.InNamespace(m.Namespace), client.MatchingLabels(labels), index.By(index.Instance, m.Name), client.UnsafeDisableDeepCopy)
	if err != nil {
		return fmt.Errorf("listing %T: %w", into, err)
	}
	return nil
}

// newObject returns an empty object of a kind.
func newObject(kind manifests.Kind) client.Object {
	switch kind {
	case manifests.KindReplicaSet:
		return &appsv1.ReplicaSet{}
	case manifests.KindService:
		return &corev1.Service{}
	case manifests.KindPodDisruptionBudget:
		return &policyv1.PodDisruptionBudget{}
	default:
		return &networkingv1.NetworkPolicy{}
	}
}

// observePods reads the pods that this Memcached's ReplicaSets control.
func (r *Reconciler) observePods(ctx context.Context, seen *observed) error {
	var pods corev1.PodList
	m := seen.memcached
	if err := r.list(ctx, m, &pods, manifests.Labels(m.Name)); err != nil {
		return err
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		controller := metav1.GetControllerOf(pod)
		if controller == nil {
			continue
		}
		set, ok := seen.objects[manifests.Key{Kind: manifests.KindReplicaSet, Name: controller.Name}]
		if ok && set.GetUID() == controller.UID && (set.owner == ours || set.owner == orphaned) {
			seen.pods[set.GetName()] = append(seen.pods[set.GetName()], pod)
		} else if !hasEnded(pod) {
			seen.strays[controller.Name] = true
		}
	}
	for _, pods := range seen.pods {
		slices.SortFunc(pods, comparePods)
	}
	var proofs corev1.PodList
	if err := r.list(ctx, m, &proofs, manifests.ProofLabels(m.Name)); err != nil {
		return err
	}
	for i := range proofs.Items {
		if metav1.IsControlledBy(&proofs.Items[i], m) {
			seen.proofs = append(seen.proofs, &proofs.Items[i])
		}
	}
	return nil
}

// comparePods orders the pods of a shard: first the one that serves, then the one
// that will. While a replacement comes up, the pod that goes still serves.
func comparePods(a, b *corev1.Pod) int {
	rank := func(p *corev1.Pod) int {
		switch ready, going := isReady(p), p.DeletionTimestamp != nil; {
		case ready && !going:
			return 0
		case ready:
			return 1
		case !going && !hasEnded(p):
			return 2
		default:
			return 3
		}
	}
	if d := rank(a) - rank(b); d != 0 {
		return d
	}
	if d := b.CreationTimestamp.Compare(a.CreationTimestamp.Time); d != 0 {
		return d // the newer one
	}
	return strings.Compare(a.Name, b.Name)
}

// askAgents asks those shards, all at once, of which something is to be known: how
// one started that the status does not tell of yet, how one takes a change that it
// is in, and how the next one to be changed does. A settled shard is not asked, and
// one that does not serve only while all are filled.
func (r *Reconciler) askAgents(ctx context.Context, seen *observed) {
	var (
		wait sync.WaitGroup
		lock sync.Mutex
	)
	for _, pod := range toAsk(seen) {
		wait.Go(func() {
			status, err := r.Agents.Status(ctx, pod.Status.PodIP)
			lock.Lock()
			defer lock.Unlock()
			switch {
			case err != nil:
				seen.silent[pod.Name] = true
			case tellsStart(status, pod): // else it is asked again
				seen.agents[pod.Name] = status
			}
		})
	}
	wait.Wait()
}

// toAsk returns the pods whose agents are asked.
func toAsk(seen *observed) []*corev1.Pod {
	m, target := seen.memcached, seen.target.Revision()
	if seen.unusable != nil { // then the shards stay what they were asked to be
		target = manifests.Ask(&m.Spec, manifests.Image{Reference: m.Status.Image}).Revision()
	}
	var (
		ask           []*corev1.Pod
		first, latest *corev1.Pod
		at            time.Time
	)
	for _, s := range seen.shards {
		pod := s.pod
		if pod == nil || pod.Status.PodIP == "" || !isReady(pod) && !(isBootstrapping(m.Status.Bootstrap) && runs(pod)) {
			continue
		}
		asked := s.asked.Revision()
		if asked != target && first == nil {
			first = pod
		}
		if s.step != nil && s.step.At.After(at) {
			latest, at = pod, s.step.At
		}
		if !startIsKnown(&m.Status, s.Name, pod) || asked != s.Template || pod.Annotations[v1alpha1.AnnotationStop] != "" {
			ask = append(ask, pod)
		}
	}
	if first != nil {
		ask = append(ask, first)
		if latest != nil && m.Spec.UpdateStrategy != nil && m.Spec.UpdateStrategy.HitRatioGate != nil {
			ask = append(ask, latest)
		}
	}
	slices.SortFunc(ask, func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return slices.Compact(ask)
}

// tellsStart says whether an answer is of this pod and of its newest start, and
// not of another pod that took over the address, or of memcached before a
// restart that is yet to come.
func tellsStart(status agentapi.Status, pod *corev1.Pod) bool {
	return status.PodUID == string(pod.UID) &&
		status.Start.Result != "" &&
		status.Restart == pod.Annotations[v1alpha1.AnnotationRestart] &&
		(status.Phase == agentapi.PhaseServing || status.Phase == agentapi.PhaseDraining)
}

// startIsKnown says whether the status already tells how memcached last started
// in a pod: in this container, and with what was last asked of it. A release before
// 1.2 told no revision, and changed no pod that runs.
func startIsKnown(status *v1alpha1.MemcachedStatus, name string, pod *corev1.Pod) bool {
	shard, ok := shardNamed(status.Shards, name)
	revision := status.Revisions[name]
	return ok && shard.Start != "" &&
		shard.ContainerID == containerID(pod) &&
		shard.Restart == pod.Annotations[v1alpha1.AnnotationRestart] &&
		(revision == pod.Annotations[v1alpha1.AnnotationRevision] || revision == "" && pod.Annotations[v1alpha1.AnnotationStep] == "")
}

// hasEnded says whether nothing of a pod runs any more.
func hasEnded(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
}

// isReady says whether Kubernetes sends a shard's clients to the pod.
func isReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// containerID returns the id of the pod's memcached container: another one after
// every restart of the container.
func containerID(pod *corev1.Pod) string {
	for _, c := range pod.Status.ContainerStatuses {
		if c.Name == manifests.Container {
			return c.ContainerID
		}
	}
	return ""
}
