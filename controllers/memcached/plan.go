package memcached

import (
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	networkingv1ac "k8s.io/client-go/applyconfigurations/networking/v1"
	policyv1ac "k8s.io/client-go/applyconfigurations/policy/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/manifests"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/rollout"
)

const (
	// askAgain is when a shard that did not tell how it started is asked again, and
	// askLater the most until one is that cannot be reached, as behind a policy that
	// keeps the operator out.
	askAgain = time.Second
	askLater = 30 * time.Second
	// lookAgain is when a name that somebody else holds is looked up again. The
	// cache does not hold foreign objects, so no watch tells that it is free.
	lookAgain = 30 * time.Second
	// lookAtOnce is when to look again at what changed while it was looked at.
	lookAtOnce = 100 * time.Millisecond
)

// plan is what a reconcile does, and what keeps it from doing more.
type plan struct {
	// image that the spec asks for, and target all that it asks of a pod.
	image  manifests.Image
	target manifests.Asked
	// shards that exist, and what is decided about a change of the spec.
	shards   []shard
	decision rollout.Decision
	// proofs that are to be made, and why one failed.
	proofs   []manifests.Object
	unproven *problem
	// bootstrap is how the filling of the first shards stands after this, and
	// awaitsBootstrap that no shard is made before the status tells of it.
	bootstrap       *v1alpha1.BootstrapStatus
	awaitsBootstrap bool
	// rewarms are the shards that were lost.
	rewarms []rewarm
	// applies are the objects to write, in this order, and found those that are as they
	// should be.
	applies []manifests.Object
	found   finding
	// uids of those that exist: the write is refused should another object have
	// taken the name.
	uids map[manifests.Key]types.UID
	// versions of those that were decided by: the write is refused should it be another
	// one by now.
	versions map[manifests.Key]string
	// patches of pods, after the objects.
	patches []podPatch
	// creates are what other controllers are to do, after that.
	creates []client.Object
	// deletion is what is done before the Memcached may go.
	deletion deletion
	// deletes are the objects to end, in this order, after that.
	deletes []client.Object
	// refused says why nothing is written, a reason of Degraded and a sentence.
	refused *problem
	// invalid says why no change of the spec reaches a shard.
	invalid *problem
	// conflicts are names that somebody else holds.
	conflicts []manifests.Key
	// leftovers are names that a deleted Memcached of the same name still holds.
	leftovers []manifests.Key
	// requeueAfter is when to look again where no watch will tell; 0 is never.
	requeueAfter time.Duration
}

// problem is a reason and a sentence for a person.
type problem struct{ reason, message string }

// makePlan decides what to do about what was seen.
func makePlan(seen *observed, options manifests.Options) plan {
	m := seen.memcached
	p := plan{image: seen.image, target: seen.target, found: seen.found, uids: map[manifests.Key]types.UID{}, versions: map[manifests.Key]string{}}
	refusal := manifests.RefuseVersion(p.image.Version)
	p.shards = shardsOf(seen, options.CanResize)
	switch {
	case m.Spec.Unreadable != "":
		p.refused = &problem{v1alpha1.ReasonSpecUnreadable, m.Spec.Unreadable + "; nothing is changed until it can be read"}
	case seen.unusable != nil:
		p.refused = &problem{v1alpha1.ReasonImageInvalid, seen.unusable.Error() + "; nothing is changed until spec.image is mended"}
	case refusal != "":
		p.refused = &problem{v1alpha1.ReasonVersionUnsupported, refusal + "; nothing is changed until then"}
	}
	p.planDeletion(seen)
	p.planBootstrap(seen)
	p.planRewarm(seen)
	if p.refused == nil && m.DeletionTimestamp == nil {
		p.planUpdate(seen, options)
	}
	p.planRequeue(seen)
	return p
}

// planUpdate decides how the shards become what is asked, and finds all that is to
// be written unless the Memcached is paused.
func (p *plan) planUpdate(seen *observed, options manifests.Options) {
	p.planProofs(seen, options)
	in := inputOf(seen, p.shards, p.target)
	if in.Invalid != "" {
		p.invalid = &problem{v1alpha1.ReasonStrategyInvalid, in.Invalid}
	}
	p.decision = rollout.Next(in)
	if seen.memcached.Spec.Paused {
		return
	}
	p.planApplies(seen, options)
	p.planStep(seen)
	p.planDeletes(seen)
	p.planProofDeletes(seen)
}

// lookAfter has the Memcached looked at again after d at the latest.
func (p *plan) lookAfter(d time.Duration) {
	if d > 0 && (p.requeueAfter == 0 || d < p.requeueAfter) {
		p.requeueAfter = d
	}
}

// planApplies finds the objects that are missing or not as they should be.
func (p *plan) planApplies(seen *observed, options manifests.Options) {
	shards := make([]manifests.Shard, *seen.memcached.Spec.Size)
	for ordinal := range shards {
		shards[ordinal] = p.shardWanted(seen, ordinal)
	}
	wishes := wishesOf(seen.memcached, shards)
	if seen.found.covers(wishes, seen.objects) {
		return
	}
	desired, err := manifests.Build(seen.memcached, func(ordinal int) manifests.Shard { return shards[ordinal] }, options)
	if err != nil {
		p.refused = &problem{v1alpha1.ReasonApplyRefused, err.Error()}
		return
	}
	p.found = finding{}
	for _, want := range desired {
		have, exists := seen.objects[want.Key]
		switch {
		case p.awaitsBootstrap && want.Key.Kind == manifests.KindReplicaSet:
		case !exists:
			p.applies = append(p.applies, want)
		case have.owner == foreign:
			p.conflicts = append(p.conflicts, want.Key)
		case have.owner == predecessors || have.GetDeletionTimestamp() != nil:
			p.leftovers = append(p.leftovers, want.Key)
		case seen.found.has(want.Key, have, wishes) || isApplied(want.Apply, have.Object):
			p.found[want.Key] = fulfilled{have.GetUID(), have.GetResourceVersion(), wishes[want.Key]}
		default:
			p.applies = append(p.applies, want)
			p.uids[want.Key] = have.GetUID()
			if want.Key.Kind == manifests.KindReplicaSet {
				p.versions[want.Key] = have.GetResourceVersion()
			}
		}
	}
}

// isApplied says whether an object already is as it should be: the fields that
// the operator owns, with the values they have now, are those it would write.
// Fields that others set are theirs.
func isApplied(want runtime.ApplyConfiguration, have client.Object) bool {
	var (
		owned any
		err   error
	)
	switch have := have.(type) {
	case *appsv1.ReplicaSet:
		owned, err = appsv1ac.ExtractReplicaSet(have, v1alpha1.ManagedByValue)
	case *corev1.Service:
		owned, err = corev1ac.ExtractService(have, v1alpha1.ManagedByValue)
	case *policyv1.PodDisruptionBudget:
		owned, err = policyv1ac.ExtractPodDisruptionBudget(have, v1alpha1.ManagedByValue)
	case *networkingv1.NetworkPolicy:
		owned, err = networkingv1ac.ExtractNetworkPolicy(have, v1alpha1.ManagedByValue)
	default:
		err = fmt.Errorf("no object of kind %T is made", have)
	}
	return err == nil && equality.Semantic.DeepEqual(owned, want)
}

// planDeletes finds the shards beyond the size, highest ordinal first, the
// Service before its pod: clients are to see the name gone, not the server dead.
func (p *plan) planDeletes(seen *observed) {
	m := seen.memcached
	type extra struct {
		ordinal int
		object  client.Object
	}
	var extras []extra
	for key, have := range seen.objects {
		ordinal, isShard := manifests.Ordinal(m.Name, key.Name)
		if !isShard || ordinal < int(*m.Spec.Size) || have.owner != ours || have.GetDeletionTimestamp() != nil {
			continue
		}
		extras = append(extras, extra{ordinal, have.Object})
	}
	slices.SortFunc(extras, func(a, b extra) int {
		if a.ordinal != b.ordinal {
			return b.ordinal - a.ordinal
		}
		if _, isService := a.object.(*corev1.Service); isService {
			return -1
		}
		return 1
	})
	for _, e := range extras {
		p.deletes = append(p.deletes, e.object)
	}
}

// runs says whether the pod's memcached container runs.
func runs(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.ContainerStatuses, func(c corev1.ContainerStatus) bool {
		return c.Name == manifests.Container && c.State.Running != nil
	})
}

// planRequeue sets when to look again at what no watch tells of.
func (p *plan) planRequeue(seen *observed) {
	for shard, pods := range seen.pods {
		_, told := seen.agents[pods[0].Name]
		answers := isReady(pods[0]) || isBootstrapping(p.bootstrap) && runs(pods[0])
		if answers && !told && !startIsKnown(&seen.memcached.Status, shard, pods[0]) {
			wait := askAgain
			if seen.silent[pods[0].Name] {
				wait = min(max(seen.now.Sub(lastStep(seen, shard))/4, askAgain), askLater)
			}
			p.lookAfter(wait)
		}
	}
	if len(p.conflicts) > 0 {
		p.lookAfter(lookAgain)
	}
}
