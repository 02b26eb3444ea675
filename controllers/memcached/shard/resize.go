package shard

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/rollout"
	"github.com/memcached-operator/memcached-operator/internal/podresult"
)

// ResizeSubresource of a pod takes new resources for running containers.
const ResizeSubresource = "resize"

// MemoryLimitTooSmall reports whether the memory limit of the active pod is less than what the operator set and memcached needs.
func (o *Observation) MemoryLimitTooSmall() (limit, needs resource.Quantity, tooSmall bool) {
	const mebibyte = 1 << 20
	needs = resources.MemoryLimit(&o.PodRevision.Spec)
	if set := o.PodRevision.Resources.Limits[corev1.ResourceMemory]; set.Cmp(needs) < 0 {
		needs = set // by an older operator
	}
	limit, tooSmall = containerResources(o.Active).Limits[corev1.ResourceMemory]
	isLess := limit.Cmp(needs) < 0
	return limit, *resource.NewQuantity((needs.Value()+mebibyte-1)/mebibyte*mebibyte, resource.BinarySI), tooSmall && isLess
}

// resizable reports whether Kubernetes can resize a running container, and the pod then is as a new one: CPU and memory only,
// none of them removed, the same QoS class, and some versions don't decrease a memory limit.
func resizable(can resources.Resizing, from, to corev1.ResourceRequirements) bool {
	if can == resources.ResizeNothing || can == resources.ResizeExceptLessMemory && to.Limits.Memory().Cmp(*from.Limits.Memory()) < 0 {
		return false
	}
	for _, lists := range [][2]corev1.ResourceList{{from.Requests, to.Requests}, {from.Limits, to.Limits}} {
		was, is := lists[0], lists[1]
		for name := range was {
			if _, ok := is[name]; !ok {
				return false
			}
		}
		for name, quantity := range is {
			before, ok := was[name]
			if name != corev1.ResourceCPU && name != corev1.ResourceMemory && (!ok || before.Cmp(quantity) != 0) {
				return false
			}
		}
	}
	return isGuaranteed(from) == isGuaranteed(to) && equality.Semantic.DeepEqual(from.Claims, to.Claims)
}

// isGuaranteed reports whether a pod of containers with these resources has the QoS class Guaranteed: else it is Burstable,
// since each shard requests memory.
func isGuaranteed(r corev1.ResourceRequirements) bool {
	return !slices.ContainsFunc([]corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory}, func(name corev1.ResourceName) bool {
		request, limit := r.Requests[name], r.Limits[name]
		return limit.IsZero() || request.Cmp(limit) != 0
	})
}

// admitted returns the desired resources as the API server accepted them for a running pod: with the amounts that neither the
// pod's revision nor another one names, such as the defaults of a limit range.
func admitted(pod *corev1.Pod, revision, desired corev1.ResourceRequirements) corev1.ResourceRequirements {
	has := containerResources(pod)
	add := func(has, revision, desired corev1.ResourceList) corev1.ResourceList {
		all := maps.Clone(desired)
		for name, quantity := range has {
			_, named := revision[name]
			if _, ok := all[name]; !ok && !named && all != nil {
				all[name] = quantity
			}
		}
		return all
	}
	return corev1.ResourceRequirements{Claims: desired.Claims, Limits: add(has.Limits, revision.Limits, desired.Limits), Requests: add(has.Requests, revision.Requests, desired.Requests)}
}

// exceedsLimit reports whether a request is larger than its limit, which the API server rejects.
func exceedsLimit(r corev1.ResourceRequirements) bool {
	for name, request := range r.Requests {
		if limit, ok := r.Limits[name]; ok && request.Cmp(limit) > 0 {
			return true
		}
	}
	return false
}

// resize is the resize of a pod's memcached container between two revisions.
type resize struct {
	// needed is whether the revisions have other resources, and possible whether Kubernetes can resize a running pod to them.
	needed, possible bool
	// progress is how far Kubernetes has resized the pod, with its message.
	progress rollout.Progress
	message  string
}

// resizeBetween returns a resize that hasn't started.
func resizeBetween(from, to corev1.ResourceRequirements, can resources.Resizing) resize {
	return resize{needed: !equality.Semantic.DeepEqual(from, to), possible: resizable(can, from, to), progress: rollout.Needed}
}

// resizeOf returns the resize of a running pod between two revisions, which hasn't started.
func resizeOf(pod *corev1.Pod, from, to corev1.ResourceRequirements, can resources.Resizing) resize {
	r := resizeBetween(from, to, can)
	before, after := admitted(pod, from, from), admitted(pod, from, to)
	r.possible = resizable(can, before, after) && !exceedsLimit(after)
	return r
}

// podResizes are those of the active pod to the target and back to the template.
type podResizes struct {
	toTarget, rollback resize
	// drifted is whether the pod was resized for a spec that has changed since.
	drifted bool
}

// resizesOf returns the resizes of the active pod. A pod that was updated in place keeps what it has too much and Kubernetes can't
// take away.
func (in Inputs) resizesOf(o *Observation, pod rollout.Pod) podResizes {
	has, update, template := o.PodRevision.Resources, in.Update.Resources, o.Template.Resources
	can := in.Resizing
	if pod.InPlace {
		can = resources.ResizeAll
	}
	all := podResizes{toTarget: resizeOf(o.Active, has, update, in.Resizing), rollback: resizeOf(o.Active, has, template, can)}
	all.toTarget.progress, all.toTarget.message = resizeProgress(o.Active, update)
	all.rollback.progress, all.rollback.message = resizeProgress(o.Active, template)
	if all.rollback.progress == rollout.Needed && !resizable(in.Resizing, containerResources(o.Active), admitted(o.Active, has, template)) {
		all.rollback.progress = rollout.NotNeeded
	}
	all.drifted = pod.Revision == o.templateTarget.Hash() && hasStaleResize(o.Active, has, in.Resizing) &&
		len(missingResources(containerResources(o.Active), update)) > 0
	return all
}

// resizeProgress returns how far the resize of a pod's memcached container is, with the
// kubelet's reason when it isn't complete. Refused: the node will never have room for it. What a
// container has too much need not be taken away before an update continues: with containerd, the
// kubelet often can't while the pod has a container that has exited (Kubernetes 1.37).
func resizeProgress(pod *corev1.Pod, want corev1.ResourceRequirements) (progress rollout.Progress, why string) {
	if len(missingResources(containerResources(pod), want)) > 0 {
		return rollout.Needed, ""
	}
	differs, lacks := false, false
	if c := podresult.Container(pod, resources.Container); c != nil && c.Resources != nil {
		differs, lacks = len(missingResources(*c.Resources, want)) > 0, lacksResources(*c.Resources, want)
	}
	for _, c := range pod.Status.Conditions {
		switch {
		case c.Type == corev1.PodResizePending && c.Reason == corev1.PodReasonInfeasible:
			return rollout.Refused, c.Message
		case c.Type == corev1.PodResizeInProgress && c.Reason == corev1.PodReasonError && !lacks:
			return rollout.Done, ""
		case c.Type == corev1.PodResizePending || c.Type == corev1.PodResizeInProgress:
			return rollout.Underway, cmp.Or(c.Message, string(c.Type))
		}
	}
	if differs {
		return rollout.Underway, "the kubelet resizes the pod"
	}
	return rollout.Done, ""
}

// lacksResources reports whether a container has less than the wanted resources. Without a limit
// it has more.
func lacksResources(have, want corev1.ResourceRequirements) bool {
	for name, quantity := range want.Requests {
		if q := have.Requests[name]; q.Cmp(quantity) < 0 {
			return true
		}
	}
	for name, quantity := range want.Limits {
		if q, ok := have.Limits[name]; ok && q.Cmp(quantity) < 0 {
			return true
		}
	}
	return false
}

// containerResources returns the desired resources of a pod's memcached container.
func containerResources(pod *corev1.Pod) corev1.ResourceRequirements {
	return resources.ContainerOf(pod).Resources
}

// resourceKey names a request or a limit.
type resourceKey struct {
	isLimit bool
	name    corev1.ResourceName
}

// missingResources returns the wanted requests and limits that are missing or differ.
// Additional ones don't count.
func missingResources(have, want corev1.ResourceRequirements) []resourceKey {
	var amounts []resourceKey
	for isLimit, lists := range map[bool][2]corev1.ResourceList{false: {have.Requests, want.Requests}, true: {have.Limits, want.Limits}} {
		for name, quantity := range lists[1] {
			if q, ok := lists[0][name]; !ok || q.Cmp(quantity) != 0 {
				amounts = append(amounts, resourceKey{isLimit, name})
			}
		}
	}
	return amounts
}

// hasStaleResize reports whether the operator resized a pod to resources that it should not
// have, and can revert it. Resources that another controller, such as an autoscaler, has
// set since are not stale.
func hasStaleResize(pod *corev1.Pod, want corev1.ResourceRequirements, can resources.Resizing) bool {
	amounts := missingResources(containerResources(pod), want)
	if len(amounts) == 0 || !resizable(can, containerResources(pod), want) {
		return false
	}
	isOurs := resizedByOperator(pod)
	return !slices.ContainsFunc(amounts, func(a resourceKey) bool { return !isOurs[a] })
}

// resizedByOperator returns the requests and limits of a pod's memcached container that
// the operator set last, according to the pod's managed fields.
func resizedByOperator(pod *corev1.Pod) map[resourceKey]bool {
	ours := map[resourceKey]bool{}
	for _, e := range pod.ManagedFields {
		var fields struct {
			Spec struct {
				Containers map[string]struct {
					Resources struct {
						Requests map[string]any `json:"f:requests"`
						Limits   map[string]any `json:"f:limits"`
					} `json:"f:resources"`
				} `json:"f:containers"`
			} `json:"f:spec"`
		}
		if !IsOperatorResize(e) || e.FieldsV1 == nil || json.Unmarshal(e.FieldsV1.GetRawBytes(), &fields) != nil {
			continue
		}
		resources := fields.Spec.Containers[`k:{"name":"`+resources.Container+`"}`].Resources
		for isLimit, of := range map[bool]map[string]any{false: resources.Requests, true: resources.Limits} {
			for name := range of {
				ours[resourceKey{isLimit, corev1.ResourceName(strings.TrimPrefix(name, "f:"))}] = true
			}
		}
	}
	return ours
}

// IsOperatorResize reports whether a managed fields entry lists the resources that the
// operator set last.
func IsOperatorResize(e metav1.ManagedFieldsEntry) bool {
	return e.Manager == v1beta1.ManagedByValue && e.Subresource == ResizeSubresource
}
