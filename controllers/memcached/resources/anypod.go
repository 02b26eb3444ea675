package resources

import (
	"maps"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
)

// Basis is what the pods have in common that the operator causes for a Memcached: its shards, and the pods of preflight checks
// and Jobs. What the platform accepts of a shard, it accepts of the others.
type Basis struct {
	// Pod has only the fields that concern all of them.
	Pod v1beta1.MemcachedPod `json:"pod,omitzero"`
	// Resources of a shard.
	Resources corev1.ResourceRequirements `json:"resources,omitzero"`
}

// BasisOf returns the basis of a Memcached, without resources if its spec doesn't have the API server's defaults.
func BasisOf(spec *v1beta1.MemcachedSpec) Basis {
	pod := spec.Pod.DeepCopy()
	scheduling := &pod.Scheduling
	if affinity := scheduling.Affinity; affinity != nil {
		affinity.PodAffinity, affinity.PodAntiAffinity = nil, nil
	}
	scheduling.TopologySpreadConstraints = nil
	basis := Basis{Pod: v1beta1.MemcachedPod{Metadata: pod.Metadata, ImagePullSecrets: pod.ImagePullSecrets, Scheduling: *scheduling, ServiceAccountName: pod.ServiceAccountName}}
	if spec.Memory != nil && spec.Config.MaxConnections != nil {
		basis.Resources = resourcesOf(spec)
	}
	return basis
}

// NewPod returns what every pod has that the operator causes for a Memcached with this configuration. Its own labels and
// annotations replace those of the user.
func NewPod(of *v1beta1.MemcachedPod, labels, annotations map[string]string) corev1.PodTemplateSpec {
	of = of.DeepCopy()
	affinity := &corev1.Affinity{}
	if of.Affinity != nil {
		affinity.NodeAffinity = of.Affinity.NodeAffinity
	}
	requireOfNode(affinity, corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{
		{Key: corev1.LabelArchStable, Operator: corev1.NodeSelectorOpIn, Values: []string{"amd64", "arm64"}},
		{Key: corev1.LabelOSStable, Operator: corev1.NodeSelectorOpIn, Values: []string{"linux"}},
	}})
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: merged(of.Metadata.Labels, labels), Annotations: merged(of.Metadata.Annotations, annotations)},
		Spec: corev1.PodSpec{
			ImagePullSecrets:             of.ImagePullSecrets,
			ServiceAccountName:           of.ServiceAccountName,
			AutomountServiceAccountToken: new(false),
			EnableServiceLinks:           new(false),
			NodeSelector:                 of.NodeSelector,
			Affinity:                     affinity,
			Tolerations:                  of.Tolerations,
			PriorityClassName:            of.PriorityClassName,
		},
	}
}

// NeverReady is the readiness probe of a pod that isn't a shard: a Service or load balancer of the user that selects the labels
// of spec.pod.metadata must not send clients to it. The kubelet doesn't start the probe while the pod runs.
func NeverReady() *corev1.Probe {
	return &corev1.Probe{ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(1)}}, InitialDelaySeconds: math.MaxInt32}
}

// merged returns the entries of both maps; those of the second one win.
func merged(a, b map[string]string) map[string]string {
	all := make(map[string]string, len(a)+len(b))
	maps.Copy(all, a)
	maps.Copy(all, b)
	return all
}

// requireOfNode adds requirements to an affinity.
func requireOfNode(affinity *corev1.Affinity, all corev1.NodeSelectorTerm) {
	if affinity.NodeAffinity == nil {
		affinity.NodeAffinity = &corev1.NodeAffinity{}
	}
	required := affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	if required == nil {
		required = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{all}}
		affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = required
		return
	}
	for i := range required.NodeSelectorTerms { // of which one is enough
		term := &required.NodeSelectorTerms[i]
		if len(term.MatchExpressions)+len(term.MatchFields) == 0 { // it matches no node
			continue
		}
		term.MatchExpressions = slices.Concat(term.MatchExpressions, all.MatchExpressions)
		term.MatchFields = slices.Concat(term.MatchFields, all.MatchFields)
	}
}

// tolerateNodeLoss adds how long a pod stays on a node that doesn't respond, unless the user's tolerations say so.
func tolerateNodeLoss(pod *corev1.PodSpec, seconds *int32) {
	for _, key := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
		isCovered := slices.ContainsFunc(pod.Tolerations, func(t corev1.Toleration) bool {
			return (t.Key == key || t.Key == "" && t.Operator == corev1.TolerationOpExists) && (t.Effect == "" || t.Effect == corev1.TaintEffectNoExecute)
		})
		if !isCovered {
			pod.Tolerations = append(pod.Tolerations, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute,
				TolerationSeconds: new(int64(v1beta1.Seconds(seconds, v1beta1.DefaultNodeLossTolerationSeconds).Seconds()))})
		}
	}
}
