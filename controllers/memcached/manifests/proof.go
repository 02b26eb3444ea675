package manifests

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
)

// proofBound, in seconds, is how long a proof may take: most of it is the pull.
const proofBound = 3600

// KindPod is the kind of a proof.
const KindPod Kind = "Pod"

// ProofLabels returns the labels of the pods that prove images for a Memcached. No
// Service, budget or policy of its shards selects them.
func ProofLabels(memcached string) map[string]string {
	labels := Labels(memcached)
	labels[v1alpha1.LabelName] = v1alpha1.ProofNameValue
	return labels
}

// Proof returns the pod that proves on the node of a shard's pod, before anything
// is done to the shard, what the kubelet will do there with the image that is
// asked for: pull it with the credentials of that pod and run it. The agent in it
// asks memcached for its version and tries the arguments. Another attempt is
// another pod.
func Proof(m *v1alpha1.Memcached, shard *corev1.Pod, asked Asked, attempt string, options Options) (Object, error) {
	var running corev1.Container
	for _, c := range shard.Spec.Containers {
		if c.Name == Container {
			running = c
		}
	}
	_, arguments := asked.Arguments()
	proven, err := json.Marshal([]any{shard.Spec.NodeName, shard.Spec.ImagePullSecrets, running.ImagePullPolicy, asked.Image.Reference, arguments, options.AgentImage, attempt})
	if err != nil {
		return Object{}, fmt.Errorf("naming a proof: %w", err)
	}
	sum := sha256.Sum256(proven)
	name := m.Name + "-proof-" + hex.EncodeToString(sum[:5])

	spec, err := convert[corev1ac.PodSpecApplyConfiguration](corev1.PodSpec{
		NodeName:          shard.Spec.NodeName,
		ImagePullSecrets:  shard.Spec.ImagePullSecrets,
		Tolerations:       shard.Spec.Tolerations,
		PriorityClassName: shard.Spec.PriorityClassName,
	})
	if err != nil {
		return Object{}, err
	}
	// It may use as much as the shard and is promised next to nothing: a full node
	// must not keep a shard that it holds from being changed.
	limits := Resources(&asked.Spec).Limits
	container := corev1ac.Container().
		WithName(Container).
		WithImage(asked.Image.Reference).
		WithCommand(agentPath+"/agent", "prove").
		WithArgs("-data", dataPath, "-arguments", arguments).
		WithResources(corev1ac.ResourceRequirements().
			WithRequests(corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1m"), corev1.ResourceMemory: resource.MustParse("16Mi")}).
			WithLimits(corev1.ResourceList{corev1.ResourceMemory: limits[corev1.ResourceMemory]})).
		WithSecurityContext(containerSecurity()).
		WithVolumeMounts(
			corev1ac.VolumeMount().WithName("data").WithMountPath(dataPath),
			corev1ac.VolumeMount().WithName("agent").WithMountPath(agentPath).WithReadOnly(true),
		)
	if running.ImagePullPolicy != "" {
		container.WithImagePullPolicy(running.ImagePullPolicy)
	}
	installer := agentInstaller(options)
	installer.Resources.WithRequests(corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1m"), corev1.ResourceMemory: resource.MustParse("16Mi")})
	return Object{Key: Key{KindPod, name}, Apply: corev1ac.Pod(name, m.Namespace).
		WithLabels(ProofLabels(m.Name)).
		WithAnnotations(map[string]string{v1alpha1.AnnotationRevision: asked.Revision()}).
		WithOwnerReferences(owner(m)).
		WithSpec(spec.
			WithRestartPolicy(corev1.RestartPolicyNever).
			WithActiveDeadlineSeconds(proofBound).
			WithTerminationGracePeriodSeconds(0).
			WithAutomountServiceAccountToken(false).
			WithEnableServiceLinks(false).
			WithSecurityContext(podSecurity(options)).
			WithVolumes(
				corev1ac.Volume().WithName("data").WithEmptyDir(corev1ac.EmptyDirVolumeSource().WithSizeLimit(resource.MustParse("16Mi"))),
				corev1ac.Volume().WithName("agent").WithEmptyDir(corev1ac.EmptyDirVolumeSource().WithSizeLimit(resource.MustParse("32Mi"))),
			).
			WithInitContainers(installer).
			WithContainers(container))}, nil
}
