package drain

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/shard/shardtest"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
)

func TestShardLeavesANodeThatIsAboutToGo(t *testing.T) {
	const requested = annotations.NodeLeaves + "node1"
	early := v1beta1.HandoverSpec{Mode: v1beta1.HandoverStrict, NodeDrain: v1beta1.NodeDrain{Mode: v1beta1.NodeDrainEarly}}
	for name, c := range map[string]struct {
		handover    v1beta1.HandoverSpec
		unschedules bool
		taint, has  string
		change      func(*v1beta1.Memcached, *corev1.Pod)
		want        string
	}{
		"a cordoned node":                     {handover: early, unschedules: true, want: requested},
		"a taint of an autoscaler":            {handover: early, taint: "karpenter.sh/disrupted", want: requested},
		"another taint":                       {handover: early, taint: "dedicated"},
		"a taint of the list":                 {handover: v1beta1.HandoverSpec{NodeDrain: v1beta1.NodeDrain{Mode: v1beta1.NodeDrainRequired, Taints: []string{"spot"}}}, taint: "spot", want: requested},
		"a taint that the list omits":         {handover: v1beta1.HandoverSpec{NodeDrain: v1beta1.NodeDrain{Mode: v1beta1.NodeDrainRequired, Taints: []string{"spot"}}}, taint: "karpenter.sh/disrupted"},
		"a node that stays":                   {handover: early},
		"a node that stays after all":         {handover: early, has: requested},
		"a move that a user requested":        {handover: early, has: "1", want: "1"},
		"the mode Disabled":                   {handover: v1beta1.HandoverSpec{NodeDrain: v1beta1.NodeDrain{Mode: v1beta1.NodeDrainDisabled}}, unschedules: true, has: requested},
		"no mode":                             {unschedules: true},
		"no handover":                         {handover: v1beta1.HandoverSpec{Mode: v1beta1.HandoverDisabled, NodeDrain: v1beta1.NodeDrain{Mode: v1beta1.NodeDrainEarly}}, unschedules: true},
		"a pod that can't hand over":          {handover: early, unschedules: true, change: func(_ *v1beta1.Memcached, p *corev1.Pod) { delete(p.Annotations, annotations.Handover) }},
		"a pod that is adopted":               {handover: early, unschedules: true, change: func(_ *v1beta1.Memcached, p *corev1.Pod) { shardtest.MountKey(p, "cache-handover-87654321") }},
		"a pod that is being deleted":         {handover: early, unschedules: true, change: func(_ *v1beta1.Memcached, p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{} }},
		"a Memcached that is being deleted":   {handover: early, unschedules: true, change: func(m *v1beta1.Memcached, _ *corev1.Pod) { m.DeletionTimestamp = &metav1.Time{} }},
		"a pod of another controller":         {handover: early, unschedules: true, change: func(_ *v1beta1.Memcached, p *corev1.Pod) { p.OwnerReferences = nil }},
		"a pod with a name that is no shards": {handover: early, unschedules: true, change: func(_ *v1beta1.Memcached, p *corev1.Pod) { p.OwnerReferences[0].Name = "other-0" }},
	} {
		t.Run(name, func(t *testing.T) {
			m := &v1beta1.Memcached{ObjectMeta: metav1.ObjectMeta{Name: "cache"}}
			m.Spec.UpdateStrategy.Handover = c.handover
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node1"}}
			node.Spec.Unschedulable = c.unschedules
			if c.taint != "" {
				node.Spec.Taints = []corev1.Taint{{Key: "dedicated"}, {Key: c.taint}}
			}
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
				Annotations:     map[string]string{annotations.Handover: "Strict"},
				OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "cache-0", Controller: new(true)}},
			}}
			if c.has != "" {
				pod.Annotations[v1beta1.AnnotationMove] = c.has
			}
			if c.change != nil {
				c.change(m, pod)
			}
			got, message := c.has, ""
			for _, move := range makePlan(observation{node, []memcachedPod{{pod, m}}}) {
				if got = move.value; move.event != nil {
					message = move.event.Message
				}
			}
			if got != c.want || strings.HasPrefix(message, "shard cache-0 moves to another node: node node1 ") != (c.want == requested) {
				t.Errorf("the annotation is %q with the event %q", got, message)
			}
		})
	}
}
