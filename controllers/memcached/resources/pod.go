package resources

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
)

const (
	// Container is the name of the container that runs memcached.
	Container     = "memcached"
	initContainer = "agent"
	portMemcached = "memcached"
	portAgent     = "agent"
	portHandover  = "handover"
	portMetrics   = "metrics"
	portDiscovery = "discovery"

	// memcachedUser is the user ID of the official image. That image has a user name, which the
	// kubelet can't verify to be another user than root.
	memcachedUser = 11211

	agentPath   = "/opt/agent"
	dataPath    = "/var/lib/memcached"
	podInfoPath = "/etc/podinfo"
	keyPath     = "/etc/handover"
)

// template is what the pod templates of all shards of a revision have in common.
type template struct {
	scheduling  *corev1ac.PodSpecApplyConfiguration
	security    *corev1ac.PodSecurityContextApplyConfiguration
	resources   *corev1ac.ResourceRequirementsApplyConfiguration
	annotations map[string]string
}

// podTemplate returns the pod template of a shard.
func (b *Builder) podTemplate(name string, labels map[string]string, shard *Shard) *corev1ac.PodTemplateSpecApplyConfiguration {
	revision := shard.Revision
	common, ok := b.templates[revision.String()]
	if !ok {
		common = b.newTemplate(revision)
		b.templates[revision.String()] = common
	}
	spec := *common.scheduling // each template its own copy of the top level
	pod := corev1ac.PodTemplateSpec().
		WithLabels(revision.Spec.Pod.Metadata.Labels).
		WithLabels(labels).
		WithAnnotations(common.annotations).
		WithSpec((&spec).
			WithHostname(name).
			WithSubdomain(b.name).
			WithTerminationGracePeriodSeconds(int64((drainTimeout(b.memcached) + saveTimeout) / time.Second)).
			WithSecurityContext(common.security).
			WithVolumes(volumes(revision.Volume)...).
			WithInitContainers(agentInstaller(b.options, common.resources)).
			WithContainers(memcachedContainer(b.options.Host(b.namespace, name), revision, common.resources, drainTimeout(b.memcached), b.options.LogFormat)))
	if shard.AvoidNode != "" {
		spec.WithAffinity(avoidNode(spec.Affinity, shard.AvoidNode))
	}
	b.addSecrets(&spec, &revision.Spec)
	if HandsOver(b.memcached) {
		b.addHandover(&spec, name)
		b.addScaling(&spec, name)
		pod.WithAnnotations(map[string]string{
			annotations.Handover: string(cmp.Or(b.memcached.Spec.UpdateStrategy.Handover.Mode, v1beta1.HandoverStrict)),
		})
	}
	if shard.Discovery != "" {
		pod.WithAnnotations(map[string]string{annotations.Discovery: shard.Discovery})
	}
	if shard.Scaling != "" {
		pod.WithAnnotations(map[string]string{annotations.Scaling: shard.Scaling})
	}
	return pod
}

func (b *Builder) newTemplate(revision PodRevision) *template {
	return &template{
		scheduling:  b.schedulingSpec(&revision.Spec),
		security:    podSecurity(&revision.Spec.Pod.SecurityContext, b.options),
		resources:   convert[corev1ac.ResourceRequirementsApplyConfiguration](revision.Resources),
		annotations: PodAnnotations(revision),
	}
}

// PodAnnotations returns the annotations of a pod of a revision.
func PodAnnotations(revision PodRevision) map[string]string {
	all := maps.Clone(revision.Spec.Pod.Metadata.Annotations)
	if all == nil {
		all = map[string]string{}
	}
	all[annotations.Arguments] = revision.ArgumentsText
	all[annotations.Protection] = Protections(&revision.Spec).String()
	all[annotations.Revision] = revision.Hash()
	all[annotations.Spec] = revision.String()
	// lets the cluster autoscaler evict the pod in spite of its local volumes
	all["cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"] = "data,agent"
	all["kubectl.kubernetes.io/default-container"] = Container
	return all
}

// schedulingSpec returns what all shards' pods of a revision have, in addition to NewPod, of what the user writes in Kubernetes'
// own types.
func (b *Builder) schedulingSpec(spec *v1beta1.MemcachedSpec) *corev1ac.PodSpecApplyConfiguration {
	pod, own := NewPod(&spec.Pod, nil, nil).Spec, spec.Pod.Scheduling.DeepCopy()
	if own.Affinity != nil {
		pod.Affinity.PodAffinity, pod.Affinity.PodAntiAffinity = own.Affinity.PodAffinity, own.Affinity.PodAntiAffinity
	}
	if own.TopologySpreadConstraints == nil && pod.Affinity.PodAntiAffinity == nil {
		pod.Affinity.PodAntiAffinity = spreadShards(b.labels)
	}
	for _, constraint := range own.TopologySpreadConstraints {
		if constraint.LabelSelector == nil { // it would count no pod, and spread none
			constraint.LabelSelector = &metav1.LabelSelector{MatchLabels: b.labels}
		}
		pod.TopologySpreadConstraints = append(pod.TopologySpreadConstraints, constraint)
	}
	tolerateNodeLoss(&pod, spec.Pod.NodeLossTolerationSeconds)
	return convert[corev1ac.PodSpecApplyConfiguration](pod)
}

// avoidNode returns an affinity that also excludes a node.
func avoidNode(from *corev1ac.AffinityApplyConfiguration, node string) *corev1ac.AffinityApplyConfiguration {
	affinity := convert[corev1.Affinity](from)
	requireOfNode(affinity, corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{
		{Key: "metadata.name", Operator: corev1.NodeSelectorOpNotIn, Values: []string{node}}}})
	return convert[corev1ac.AffinityApplyConfiguration](affinity)
}

// spreadShards prefers different zones and different nodes for the shards. Topology spread
// constraints don't work in every cluster: the scheduler excludes a node without the label of one
// of them from the scores of all, so that without zones none would have an effect.
func spreadShards(labels map[string]string) *corev1.PodAntiAffinity {
	from := func(topology string, weight int32) corev1.WeightedPodAffinityTerm {
		return corev1.WeightedPodAffinityTerm{Weight: weight, PodAffinityTerm: corev1.PodAffinityTerm{
			TopologyKey:   topology,
			LabelSelector: &metav1.LabelSelector{MatchLabels: labels},
		}}
	}
	return &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{
		from(corev1.LabelTopologyZone, 100), from(corev1.LabelHostname, 50),
	}}
}

// podSecurity returns the security context of a pod, which complies with the restricted level of Pod Security.
func podSecurity(own *v1beta1.SecurityContext, options Options) *corev1ac.PodSecurityContextApplyConfiguration {
	security := corev1.PodSecurityContext{
		RunAsNonRoot: new(true),
		RunAsUser:    own.RunAsUser, RunAsGroup: own.RunAsGroup,
		SELinuxOptions: own.SELinuxOptions, AppArmorProfile: own.AppArmorProfile,
		SeccompProfile: cmp.Or(own.SeccompProfile, &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}),
	}
	if !options.OmitRunAsUser {
		security.RunAsUser = cmp.Or(own.RunAsUser, new(int64(memcachedUser)))
		security.RunAsGroup = cmp.Or(own.RunAsGroup, new(int64(memcachedUser)))
	}
	return convert[corev1ac.PodSecurityContextApplyConfiguration](security)
}

// containerSecurity complies with the restricted level of Pod Security, and has a read-only root
// file system.
func containerSecurity() *corev1ac.SecurityContextApplyConfiguration {
	return corev1ac.SecurityContext().
		WithAllowPrivilegeEscalation(false).
		WithReadOnlyRootFilesystem(true).
		WithCapabilities(corev1ac.Capabilities().WithDrop("ALL"))
}

// volumes returns the pod's volumes: memory for the items, which outlives the container and not
// the pod; the agent's binary; and the annotations that the agent reads.
func volumes(memory resource.Quantity) []*corev1ac.VolumeApplyConfiguration {
	file := func(name, annotation string) *corev1ac.DownwardAPIVolumeFileApplyConfiguration {
		return corev1ac.DownwardAPIVolumeFile().WithPath(name).WithFieldRef(corev1ac.ObjectFieldSelector().
			WithAPIVersion("v1").WithFieldPath(fmt.Sprintf("metadata.annotations['%s']", annotation)))
	}
	return []*corev1ac.VolumeApplyConfiguration{
		corev1ac.Volume().WithName("data").WithEmptyDir(corev1ac.EmptyDirVolumeSource().
			WithMedium(corev1.StorageMediumMemory).WithSizeLimit(memory)),
		corev1ac.Volume().WithName("agent").WithEmptyDir(corev1ac.EmptyDirVolumeSource().
			WithSizeLimit(resource.MustParse("32Mi"))),
		corev1ac.Volume().WithName("podinfo").WithDownwardAPI(corev1ac.DownwardAPIVolumeSource().WithItems(
			file(agentwire.ArgumentsFile, annotations.Arguments),
			file(agentwire.ProtectionFile, annotations.Protection),
			file(agentwire.RestartFile, v1beta1.AnnotationRestart),
			file(agentwire.StopFile, annotations.Stop),
			file(agentwire.ReceiveFile, annotations.Receive),
			file(agentwire.DiscoveryFile, annotations.Discovery),
			file(agentwire.ScalingFile, annotations.Scaling),
		)),
	}
}

// agentInstaller returns the init container that copies the agent into the pod, so that any image
// of memcached works. With the amounts of the memcached container, it costs nothing, passes the quotas and limit ranges that
// the container passes, and leaves the pod's QoS class to the user.
func agentInstaller(options Options, resources *corev1ac.ResourceRequirementsApplyConfiguration) *corev1ac.ContainerApplyConfiguration {
	return corev1ac.Container().
		WithName(initContainer).
		WithImage(options.AgentImage).
		WithCommand("/agent", "install", agentPath).
		WithResources(resources).
		WithSecurityContext(containerSecurity()).
		WithVolumeMounts(corev1ac.VolumeMount().WithName("agent").WithMountPath(agentPath))
}

// memcachedContainer returns the container in which the agent runs memcached.
func memcachedContainer(host string, revision PodRevision, resources *corev1ac.ResourceRequirementsApplyConfiguration, drainTimeout time.Duration, logFormat string) *corev1ac.ContainerApplyConfiguration {
	get := func(path string) *corev1ac.ProbeApplyConfiguration {
		return corev1ac.Probe().WithHTTPGet(corev1ac.HTTPGetAction().WithPath(path).WithPort(intstr.FromString(portAgent)))
	}
	container := corev1ac.Container().
		WithName(Container).
		WithImage(revision.Image.Reference).
		WithCommand(agentPath+"/agent", "run").
		WithArgs(
			"-data", dataPath,
			"-podinfo", podInfoPath,
			// the complete name: the bare one is also the pod's host name and would resolve to
			// the pod itself
			"-service", fmt.Sprintf("%s:%d", host, agentwire.Port),
			"-drain-timeout", fmt.Sprintf("%ds", drainTimeout/time.Second),
			"-metrics-listen", fmt.Sprintf(":%d", agentwire.MetricsPort),
			"-discovery-listen", fmt.Sprintf(":%d", agentwire.DiscoveryPort),
			"-log-format", cmp.Or(logFormat, "text"),
		).
		WithEnv(podField("POD_UID", "metadata.uid")).
		WithPorts(port(portMemcached, agentwire.MemcachedPort), port(portAgent, agentwire.Port), port(portMetrics, agentwire.MetricsPort), port(portDiscovery, agentwire.DiscoveryPort)).
		WithResources(resources).
		WithSecurityContext(containerSecurity()).
		// the agent responds within 3 s, unless the node is overloaded
		WithReadinessProbe(get("/readyz").WithPeriodSeconds(1).WithTimeoutSeconds(5).WithFailureThreshold(2)).
		// a kill loses the shard's items, so it takes a minute without an answer
		WithLivenessProbe(get("/healthz").WithPeriodSeconds(10).WithTimeoutSeconds(5).WithFailureThreshold(6)).
		WithVolumeMounts(
			corev1ac.VolumeMount().WithName("data").WithMountPath(dataPath),
			corev1ac.VolumeMount().WithName("agent").WithMountPath(agentPath).WithReadOnly(true),
			corev1ac.VolumeMount().WithName("podinfo").WithMountPath(podInfoPath).WithReadOnly(true),
		)
	if revision.Spec.Pod.ImagePullPolicy != "" {
		container.WithImagePullPolicy(revision.Spec.Pod.ImagePullPolicy)
	}
	return container
}

func port(name string, number int32) *corev1ac.ContainerPortApplyConfiguration {
	return corev1ac.ContainerPort().WithName(name).WithContainerPort(number).WithProtocol(corev1.ProtocolTCP)
}

// podField returns an environment variable with a field of the pod.
func podField(name, path string) *corev1ac.EnvVarApplyConfiguration {
	return corev1ac.EnvVar().WithName(name).WithValueFrom(corev1ac.EnvVarSource().WithFieldRef(
		corev1ac.ObjectFieldSelector().WithAPIVersion("v1").WithFieldPath(path)))
}

// convert converts a value of an API type into the apply configuration with the same JSON, or back. No value that was decoded
// from JSON can fail.
func convert[T any](from any) *T {
	to := new(T)
	if err := json.Unmarshal([]byte(mustMarshal(from)), to); err != nil {
		panic(fmt.Sprintf("converting %T to %T: %s", from, to, err))
	}
	return to
}
