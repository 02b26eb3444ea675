package resources

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
)

// shardPod returns the spec of a shard's pod.
func shardPod(t *testing.T, edit func(*v1beta1.MemcachedSpec)) corev1.PodSpec {
	t.Helper()
	m := memcached(1, edit)
	objects := build(m, upToDate(m, Image{Reference: fallback}), options)
	for _, o := range objects {
		if set, ok := o.Apply.(*appsv1ac.ReplicaSetApplyConfiguration); ok {
			return *convert[corev1.PodSpec](set.Spec.Template.Spec)
		}
	}
	t.Fatal("no ReplicaSet")
	return corev1.PodSpec{}
}

func TestShardLeavesALostNodeAfterAMinute(t *testing.T) {
	toleration := func(key string, seconds int64) corev1.Toleration {
		return corev1.Toleration{Key: "node.kubernetes.io/" + key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: &seconds}
	}
	spot := corev1.Toleration{Key: "spot", Operator: corev1.TolerationOpExists}
	forever := corev1.Toleration{Key: "node.kubernetes.io/unreachable", Operator: corev1.TolerationOpExists}
	noSchedule := corev1.Toleration{Key: "node.kubernetes.io/unreachable", Effect: corev1.TaintEffectNoSchedule}
	every := corev1.Toleration{Operator: corev1.TolerationOpExists}
	for name, c := range map[string]struct {
		user    []corev1.Toleration
		seconds *int32
		want    []corev1.Toleration
	}{
		"by default":                {nil, nil, []corev1.Toleration{toleration("not-ready", 60), toleration("unreachable", 60)}},
		"after another time":        {[]corev1.Toleration{spot}, new(int32(0)), []corev1.Toleration{spot, toleration("not-ready", 0), toleration("unreachable", 0)}},
		"the user tolerates one":    {[]corev1.Toleration{forever}, nil, []corev1.Toleration{forever, toleration("not-ready", 60)}},
		"for another time":          {[]corev1.Toleration{toleration("not-ready", 300)}, nil, []corev1.Toleration{toleration("not-ready", 300), toleration("unreachable", 60)}},
		"another effect is another": {[]corev1.Toleration{noSchedule}, nil, []corev1.Toleration{noSchedule, toleration("not-ready", 60), toleration("unreachable", 60)}},
		"the user tolerates all":    {[]corev1.Toleration{every}, nil, []corev1.Toleration{every}},
	} {
		t.Run(name, func(t *testing.T) {
			got := shardPod(t, func(s *v1beta1.MemcachedSpec) {
				s.Pod.Tolerations, s.Pod.NodeLossTolerationSeconds = c.user, c.seconds
			}).Tolerations
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("tolerations (-want +got):\n%s", diff)
			}
		})
	}
}

// A quota or a limit range accepts or rejects a container for its amounts, and Kubernetes derives the pod's QoS class from them.
func TestInitContainerHasTheAmountsOfTheShard(t *testing.T) {
	list := func(cpu, memory string) corev1.ResourceList {
		return corev1.ResourceList{"cpu": resource.MustParse(cpu), "memory": resource.MustParse(memory), "ephemeral-storage": resource.MustParse("1Gi")}
	}
	pod := shardPod(t, func(s *v1beta1.MemcachedSpec) {
		s.Resources = &v1beta1.ResourceRequirements{Requests: list("1", "1Gi"), Limits: list("1", "1Gi")}
	})
	if own := pod.Containers[0].Resources; !equality.Semantic.DeepEqual(own.Limits, list("1", "1Gi")) || !equality.Semantic.DeepEqual(pod.InitContainers[0].Resources, own) {
		t.Errorf("the init container has %+v, and memcached %+v", pod.InitContainers[0].Resources, own)
	}
}

func TestSpreadConstraintWithoutSelectorCountsTheShards(t *testing.T) {
	own := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "shop"}}
	got := shardPod(t, func(s *v1beta1.MemcachedSpec) {
		s.Pod.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: "zone"}, {MaxSkew: 1, TopologyKey: "rack", LabelSelector: own}}
	})
	if diff := cmp.Diff([]*metav1.LabelSelector{{MatchLabels: Labels("cache")}, own},
		[]*metav1.LabelSelector{got.TopologySpreadConstraints[0].LabelSelector, got.TopologySpreadConstraints[1].LabelSelector}); diff != "" {
		t.Errorf("selectors (-want +got):\n%s", diff)
	}
	if got.Affinity.PodAntiAffinity != nil {
		t.Error("the default is in addition to the user's constraints")
	}
}
