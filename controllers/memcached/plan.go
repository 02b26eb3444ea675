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
)

const (
	// askAgain is when a shard that did not tell how it started is asked again.
	askAgain = 5 * time.Second
	// lookAgain is when a name that somebody else holds is looked up again. The
	// cache does not hold foreign objects, so no watch tells that it is free.
	lookAgain = 30 * time.Second
)

// plan is what a reconcile does, and what keeps it from doing more.
type plan struct {
	// image that new pods get.
	image manifests.Image
	// revision that a pod of the spec as it is now bears.
	revision string
	// applies are the objects to write, in this order.
	applies []manifests.Object
	// uids of those that exist: the write is refused should another object have
	// taken the name.
	uids map[manifests.Key]types.UID
	// deletes are the objects to end, in this order.
	deletes []client.Object
	// refused says why nothing is written, a reason of Degraded and a sentence.
	refused *problem
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
	image, err := manifests.ResolveImage(m.Spec.Image, m.Spec.Version, options.DefaultImage)
	p := plan{image: image, revision: manifests.Revision(m, image), uids: map[manifests.Key]types.UID{}}
	refusal := manifests.RefuseVersion(image.Version)
	switch {
	case err != nil:
		p.refused = &problem{v1alpha1.ReasonImageInvalid, err.Error() + "; nothing is changed until spec.image is mended"}
	case refusal != "":
		p.refused = &problem{v1alpha1.ReasonVersionUnsupported, refusal + "; nothing is changed until then"}
	case m.DeletionTimestamp == nil && !m.Spec.Paused:
		p.planApplies(seen, options)
		p.planDeletes(seen)
		p.planReplacements(seen)
	}
	p.planRequeue(seen)
	return p
}

// planApplies finds the objects that are missing or not as they should be.
func (p *plan) planApplies(seen *observed, options manifests.Options) {
	desired, err := manifests.Build(seen.memcached, p.image, options)
	if err != nil {
		p.refused = &problem{v1alpha1.ReasonApplyRefused, err.Error()}
		return
	}
	for _, want := range desired {
		have, exists := seen.objects[want.Key]
		switch {
		case !exists:
			p.applies = append(p.applies, want)
		case have.owner == foreign:
			p.conflicts = append(p.conflicts, want.Key)
		case have.owner == predecessors || have.GetDeletionTimestamp() != nil:
			p.leftovers = append(p.leftovers, want.Key)
		case !isApplied(want.Apply, have.Object):
			p.applies = append(p.applies, want)
			p.uids[want.Key] = have.GetUID()
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

// planReplacements finds pods that cannot run as they were asked to and of which
// something else is asked by now, so that a mended spec mends its shards: their
// ReplicaSets do not look at a pod that is there. In such a pod memcached does not
// run, so no item is lost. The ReplicaSet has to be as it should be first, or it
// would make another such pod.
func (p *plan) planReplacements(seen *observed) {
	for _, key := range manifests.Keys(seen.memcached.Name, int(*seen.memcached.Spec.Size)) {
		unwritten := func(o manifests.Object) bool { return o.Key == key }
		if key.Kind != manifests.KindReplicaSet || slices.ContainsFunc(p.applies, unwritten) {
			continue
		}
		for _, pod := range seen.pods[key.Name] {
			if pod.DeletionTimestamp == nil && pod.Annotations[v1alpha1.AnnotationRevision] != p.revision && podTrouble(pod) != nil && !runs(pod) {
				p.deletes = append(p.deletes, pod)
			}
		}
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
		if isReady(pods[0]) && !told && !startIsKnown(seen.memcached.Status.Shards, shard, pods[0]) {
			p.requeueAfter = askAgain
		}
	}
	if p.requeueAfter == 0 && len(p.conflicts) > 0 {
		p.requeueAfter = lookAgain
	}
}
