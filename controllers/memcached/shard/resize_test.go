package shard

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/rollout"
)

// A limit range adds what the spec doesn't name. The API server rejects a resize to a request above a limit, or to another QoS class.
func TestResizeTakesWhatTheLimitRangeAddedIntoAccount(t *testing.T) {
	for name, c := range map[string]struct {
		from, to, added string
		want            bool
	}{
		"nothing is added":                    {"cpu 100m memory 1Gi | memory 1Gi", "cpu 500m memory 1Gi | memory 1Gi", "", true},
		"a request below the added limit":     {"cpu 100m memory 1Gi | memory 1Gi", "cpu 200m memory 1Gi | memory 1Gi", "| cpu 500m", true},
		"a request above the added limit":     {"cpu 100m memory 1Gi | memory 1Gi", "cpu 600m memory 1Gi | memory 1Gi", "| cpu 500m", false},
		"a request that is the added limit":   {"cpu 100m memory 1Gi | memory 1Gi", "cpu 500m memory 1Gi | memory 1Gi", "| cpu 500m", false},
		"a limit instead of the added one":    {"cpu 100m memory 1Gi | memory 1Gi", "cpu 100m memory 1Gi | cpu 2 memory 1Gi", "| cpu 500m", true},
		"an added resource of another kind":   {"cpu 100m memory 1Gi | memory 1Gi", "cpu 200m memory 1Gi | memory 1Gi", "ephemeral-storage 1Gi | ephemeral-storage 1Gi", true},
		"a limit of the spec that is removed": {"cpu 100m memory 1Gi | cpu 500m memory 1Gi", "cpu 100m memory 1Gi | memory 1Gi", "", false},
	} {
		from, to, added := podRevision(t, withResources(c.from)).Resources, podRevision(t, withResources(c.to)).Resources, v1beta1.MemcachedSpec{}
		withResources(c.added)(&added)
		pod := &corev1.Pod{}
		has := *from.DeepCopy()
		for name, quantity := range added.Resources.Limits {
			has.Limits[name] = quantity
		}
		for name, quantity := range added.Resources.Requests {
			has.Requests[name] = quantity
		}
		pod.Spec.Containers = []corev1.Container{{Name: "sidecar"}, {Name: resources.Container, Resources: has}}
		if got := resizeOf(pod, from, to, resources.ResizeAll); !got.needed || got.possible != c.want {
			t.Errorf("%s: %+v, want possible: %t", name, got, c.want)
		}
	}
}

func TestResizeProgress(t *testing.T) {
	small, large := corev1.ResourceList{"cpu": resource.MustParse("1")}, corev1.ResourceList{"cpu": resource.MustParse("2")}
	condition := func(kind corev1.PodConditionType, reason, message string) []corev1.PodCondition {
		return []corev1.PodCondition{{Type: kind, Reason: reason, Message: message, Status: corev1.ConditionTrue}}
	}
	for _, c := range []struct {
		name         string
		requested    corev1.ResourceList
		want         corev1.ResourceList
		conditions   []corev1.PodCondition
		inEffect     corev1.ResourceList
		wantProgress rollout.Progress
		wantReason   string
	}{
		{"not requested", small, large, nil, small, rollout.Needed, ""},
		{"requested", large, large, nil, small, rollout.Underway, "the kubelet resizes the pod"},
		{"deferred", large, large, condition(corev1.PodResizePending, corev1.PodReasonDeferred, "Node has no room"), small, rollout.Underway, "Node has no room"},
		{"started", large, large, condition(corev1.PodResizeInProgress, "", ""), small, rollout.Underway, "PodResizeInProgress"},
		{"infeasible", large, large, condition(corev1.PodResizePending, corev1.PodReasonInfeasible, "Node is too small"), small, rollout.Refused, "Node is too small"},
		{"in effect", large, large, nil, large, rollout.Done, ""},
		{"less requested", small, small, nil, large, rollout.Underway, "the kubelet resizes the pod"},
		{"less in effect, but not complete", small, small, condition(corev1.PodResizeInProgress, "", ""), small, rollout.Underway, "PodResizeInProgress"},
		{"the kubelet can't give what is requested", large, large, condition(corev1.PodResizeInProgress, corev1.PodReasonError, "no cgroup"), small, rollout.Underway, "no cgroup"},
		{"the kubelet can't take away what is in effect", small, small, condition(corev1.PodResizeInProgress, corev1.PodReasonError, "missing container usage"), large, rollout.Done, ""},
		{"in effect in another unit", corev1.ResourceList{"cpu": resource.MustParse("2000m")}, large, nil, large, rollout.Done, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			pod := &corev1.Pod{}
			pod.Spec.Containers = []corev1.Container{{Name: resources.Container, Resources: corev1.ResourceRequirements{Requests: c.requested}}}
			pod.Status.Conditions = c.conditions
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: resources.Container, Resources: &corev1.ResourceRequirements{Requests: c.inEffect}}}
			if progress, reason := resizeProgress(pod, corev1.ResourceRequirements{Requests: c.want}); progress != c.wantProgress || reason != c.wantReason {
				t.Errorf("progress %s: %q, want %s: %q", progress, reason, c.wantProgress, c.wantReason)
			}
		})
	}
}

// Kubernetes 1.33 rejects a lower memory limit.
func TestRollbackNeedsNoResizeThatKubernetesRejects(t *testing.T) {
	old, update := podRevision(t, withResources("| memory 1Gi")), podRevision(t, all(withResources("| memory 2Gi"), extraArgs("-v")))
	for can, want := range map[resources.Resizing]rollout.Progress{resources.ResizeAll: rollout.Needed, resources.ResizeExceptLessMemory: rollout.NotNeeded} {
		f := newFixture(old, update, old)
		f.can = can
		f.pods[0].Spec.Containers = []corev1.Container{{Name: resources.Container, Resources: update.Resources}}
		record(f.pods[0], UpdateRecord{Revision: update.Hash(), From: old.Hash(), At: f.now, Method: rollout.Restart})
		if got := f.evaluate().Rollout; !got.Pod.InPlace || got.Rollback.Method != rollout.Restart || got.Rollback.Resize != want {
			t.Errorf("Kubernetes %d: in place %t, %+v; want a restart with a resize %s", can, got.Pod.InPlace, got.Rollback, want)
		}
	}
}

func TestStaleResizeIsOnlyTheOperators(t *testing.T) {
	list := func(cpu, memory string) corev1.ResourceList {
		all := corev1.ResourceList{}
		for name, quantity := range map[corev1.ResourceName]string{"cpu": cpu, "memory": memory} {
			if quantity != "" {
				all[name] = resource.MustParse(quantity)
			}
		}
		return all
	}
	entry := func(manager, subresource, resources string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Subresource: subresource, Operation: metav1.ManagedFieldsOperationUpdate,
			FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:containers":{"k:{\"name\":\"memcached\"}":{"f:resources":` + resources + `}}}}`)}
	}
	const limits, requests, both = `{"f:limits":{"f:memory":{}}}`, `{"f:requests":{"f:memory":{}}}`, `{"f:limits":{"f:memory":{}},"f:requests":{"f:memory":{}}}`
	ours := v1beta1.ManagedByValue
	want := corev1.ResourceRequirements{Limits: list("", "1Gi"), Requests: list("100m", "1Gi")}
	more := corev1.ResourceRequirements{Limits: list("", "2Gi"), Requests: list("100m", "2Gi")}
	for _, c := range []struct {
		name   string
		have   corev1.ResourceRequirements
		fields []metav1.ManagedFieldsEntry
		want   bool
	}{
		{"the operator set both", more, []metav1.ManagedFieldsEntry{entry("kube-controller-manager", "", both), entry(ours, "resize", both)}, true},
		{"another controller set the request since", more, []metav1.ManagedFieldsEntry{entry("vpa-updater", "resize", requests), entry(ours, "resize", limits)}, false},
		{"the pod was created with it", more, []metav1.ManagedFieldsEntry{entry("kube-controller-manager", "", both)}, false},
		{"the operator set it without a resize", more, []metav1.ManagedFieldsEntry{entry(ours, "", both)}, false},
		{"the pod has the desired resources", want, []metav1.ManagedFieldsEntry{entry(ours, "resize", both)}, false},
		{"a limit would have to be removed", corev1.ResourceRequirements{Limits: list("1", "2Gi"), Requests: list("100m", "2Gi")}, []metav1.ManagedFieldsEntry{entry(ours, "resize", both)}, false},
		{"the managed fields can't be parsed", more, []metav1.ManagedFieldsEntry{entry(ours, "resize", `[]`)}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{ManagedFields: c.fields}}
			pod.Spec.Containers = []corev1.Container{{Name: resources.Container, Resources: c.have}}
			if got := hasStaleResize(pod, want, resources.ResizeAll); got != c.want {
				t.Errorf("stale: %v", got)
			}
		})
	}
}
