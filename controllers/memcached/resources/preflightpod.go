package resources

import (
	"crypto/sha256"
	"encoding/hex"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/memcached-operator/memcached-operator/internal/annotations"
)

// preflightDeadline, in seconds, is mostly for pulling the image.
const preflightDeadline = 3600

// PreflightPod returns the pod that checks a revision on the node of a shard's pod before the shard
// is updated: the kubelet pulls the image with that pod's credentials and runs it, and the agent in
// it checks memcached's version and arguments. Another attempt has another name.
func (b *Builder) PreflightPod(shard *corev1.Pod, revision PodRevision, attempt string) Object {
	running := ContainerOf(shard)
	sum := sha256.Sum256([]byte(mustMarshal([]any{
		shard.Spec.NodeName, shard.Spec.ImagePullSecrets, running.ImagePullPolicy,
		revision.Image.Reference, revision.ArgumentsText, b.options.AgentImage, attempt, revision.Spec.Pod.SecurityContext, revision.Spec.Pod.ServiceAccountName,
	})))
	name := b.name + "-preflight-" + hex.EncodeToString(sum[:5])

	pod := NewPod(&revision.Spec.Pod, b.preflightLabels, map[string]string{annotations.Revision: revision.Hash()})
	pod.Spec.NodeName = shard.Spec.NodeName
	// what the platform has added to the shard's pod matters on its node, too
	pod.Spec.ImagePullSecrets, pod.Spec.Tolerations, pod.Spec.PriorityClassName = shard.Spec.ImagePullSecrets, shard.Spec.Tolerations, shard.Spec.PriorityClassName
	build := func(amounts corev1.ResourceRequirements) runtime.ApplyConfiguration {
		return b.preflightPod(name, pod, running.ImagePullPolicy, revision, convert[corev1ac.ResourceRequirementsApplyConfiguration](amounts))
	}
	return Object{Key: Key{KindPod, name}, Apply: build(preflightResources(revision.Resources)), Fallback: build(revision.Resources)}
}

// preflightResources returns the amounts of a shard with requests of next to nothing: a full node must not block the update of
// its shards. A limit range may require more.
func preflightResources(of corev1.ResourceRequirements) corev1.ResourceRequirements {
	small := *of.DeepCopy()
	for name, most := range map[corev1.ResourceName]resource.Quantity{corev1.ResourceCPU: resource.MustParse("1m"), corev1.ResourceMemory: resource.MustParse("16Mi")} {
		if request := small.Requests[name]; request.Cmp(most) > 0 {
			small.Requests[name] = most
		}
	}
	return small
}

func (b *Builder) preflightPod(name string, pod corev1.PodTemplateSpec, policy corev1.PullPolicy, revision PodRevision, amounts *corev1ac.ResourceRequirementsApplyConfiguration) *corev1ac.PodApplyConfiguration {
	container := corev1ac.Container().
		WithName(Container).
		WithImage(revision.Image.Reference).
		WithCommand(agentPath+"/agent", "preflight").
		WithArgs("-arguments", revision.ArgumentsText).
		WithResources(amounts).
		WithSecurityContext(containerSecurity()).
		WithReadinessProbe(convert[corev1ac.ProbeApplyConfiguration](NeverReady())).
		WithVolumeMounts(
			corev1ac.VolumeMount().WithName("agent").WithMountPath(agentPath).WithReadOnly(true),
		)
	if policy != "" {
		container.WithImagePullPolicy(policy)
	}
	return corev1ac.Pod(name, b.namespace).
		WithLabels(pod.Labels).
		WithAnnotations(pod.Annotations).
		WithOwnerReferences(b.owner).
		WithSpec(convert[corev1ac.PodSpecApplyConfiguration](pod.Spec).
			WithRestartPolicy(corev1.RestartPolicyNever).
			WithActiveDeadlineSeconds(preflightDeadline).
			WithTerminationGracePeriodSeconds(0).
			WithSecurityContext(podSecurity(&revision.Spec.Pod.SecurityContext, b.options)).
			WithVolumes(
				corev1ac.Volume().WithName("agent").WithEmptyDir(corev1ac.EmptyDirVolumeSource().
					WithSizeLimit(resource.MustParse("32Mi"))),
			).
			WithInitContainers(agentInstaller(b.options, amounts)).
			WithContainers(container))
}
