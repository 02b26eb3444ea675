package resources

import (
	"encoding/json"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
)

const (
	// Container is the name of the container that runs memcached.
	Container     = "memcached"
	initContainer = "agent"
	portMemcached = "memcached"
	portAgent     = "agent"

	// gracePeriod, in seconds, bounds the termination of a pod.
	gracePeriod = 90
	// drainTimeout is how long a terminating pod keeps serving while it waits for its
	// replacement. The rest of the grace period is for saving the items.
	drainTimeout = "60s"
	// memcachedUser is the user ID of the official image. That image has a user name, which the
	// kubelet can't verify to be another user than root.
	memcachedUser = 11211

	agentPath   = "/opt/agent"
	dataPath    = "/var/lib/memcached"
	podInfoPath = "/etc/podinfo"
)

// podTemplate returns a function that builds the pod templates of a revision. They differ only in
// the shard's label and names.
func podTemplate(m *v1alpha1.Memcached, revision PodRevision, options Options) (func(ordinal int) *corev1ac.PodTemplateSpecApplyConfiguration, error) {
	scheduling, err := schedulingSpec(m.Name, &revision.Spec)
	if err != nil {
		return nil, err
	}
	resources, err := convert[corev1ac.ResourceRequirementsApplyConfiguration](Resources(&revision.Spec))
	if err != nil {
		return nil, err
	}
	annotations := PodAnnotations(revision)
	return func(ordinal int) *corev1ac.PodTemplateSpecApplyConfiguration {
		spec := *scheduling // each template its own copy of the top level
		labels := maps.Clone(revision.Spec.PodMetadata.Labels)
		if labels == nil {
			labels = map[string]string{}
		}
		maps.Copy(labels, shardLabels(m.Name, ordinal))
		shard := ShardName(m.Name, ordinal)
		return corev1ac.PodTemplateSpec().
			WithLabels(labels).
			WithAnnotations(annotations).
			WithSpec((&spec).
				WithHostname(shard).
				WithSubdomain(m.Name).
				WithAutomountServiceAccountToken(false).
				WithEnableServiceLinks(false).
				WithTerminationGracePeriodSeconds(gracePeriod).
				WithSecurityContext(podSecurity(options)).
				WithVolumes(volumes(&revision.Spec)...).
				WithInitContainers(agentInstaller(options)).
				WithContainers(memcachedContainer(m.Namespace, shard, revision, resources)))
	}, nil
}

// PodAnnotations returns the annotations of a pod of a revision.
func PodAnnotations(revision PodRevision) map[string]string {
	all := maps.Clone(revision.Spec.PodMetadata.Annotations)
	if all == nil {
		all = map[string]string{}
	}
	_, arguments := revision.Arguments()
	all[annotations.Arguments] = arguments
	all[annotations.Revision] = revision.Hash()
	all[annotations.Spec] = revision.String()
	// lets the cluster autoscaler evict the pod in spite of its local volumes
	all["cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"] = "data,agent"
	all["kubectl.kubernetes.io/default-container"] = Container
	return all
}

// schedulingSpec returns the part of a pod's spec that the user writes in Kubernetes' own types.
func schedulingSpec(memcached string, spec *v1alpha1.MemcachedSpec) (*corev1ac.PodSpecApplyConfiguration, error) {
	scheduling := *spec.Scheduling.DeepCopy()
	if scheduling.TopologySpreadConstraints == nil && (scheduling.Affinity == nil || scheduling.Affinity.PodAntiAffinity == nil) {
		if scheduling.Affinity == nil {
			scheduling.Affinity = &corev1.Affinity{}
		}
		scheduling.Affinity.PodAntiAffinity = spreadShards(memcached)
	}
	return convert[corev1ac.PodSpecApplyConfiguration](struct {
		v1alpha1.Scheduling
		ImagePullSecrets []corev1.LocalObjectReference `json:"imagePullSecrets,omitempty"`
	}{scheduling, spec.ImagePullSecrets})
}

// spreadShards prefers different zones and different nodes for the shards. Topology spread
// constraints don't work in every cluster: the scheduler excludes a node without the label of one
// of them from the scores of all, so that without zones none would have an effect.
func spreadShards(memcached string) *corev1.PodAntiAffinity {
	from := func(topology string, weight int32) corev1.WeightedPodAffinityTerm {
		return corev1.WeightedPodAffinityTerm{Weight: weight, PodAffinityTerm: corev1.PodAffinityTerm{
			TopologyKey:   topology,
			LabelSelector: &metav1.LabelSelector{MatchLabels: Labels(memcached)},
		}}
	}
	return &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{
		from(corev1.LabelTopologyZone, 100), from(corev1.LabelHostname, 50),
	}}
}

// Resources returns the resources of the memcached container: those of the spec and, by default,
// enough memory for a full cache as limit and request, and no CPU limit.
func Resources(spec *v1alpha1.MemcachedSpec) corev1.ResourceRequirements {
	r := corev1.ResourceRequirements{}
	if spec.Resources != nil {
		own := spec.Resources.DeepCopy()
		r.Limits, r.Requests = own.Limits, own.Requests
	}
	if r.Limits == nil {
		r.Limits = corev1.ResourceList{}
	}
	if r.Requests == nil {
		r.Requests = corev1.ResourceList{}
	}
	if _, ok := r.Limits[corev1.ResourceMemory]; !ok {
		limit := MemoryLimit(spec)
		if request, ok := r.Requests[corev1.ResourceMemory]; ok && request.Cmp(limit) > 0 {
			limit = request
		}
		r.Limits[corev1.ResourceMemory] = limit
	}
	if _, ok := r.Requests[corev1.ResourceMemory]; !ok {
		r.Requests[corev1.ResourceMemory] = r.Limits[corev1.ResourceMemory]
	}
	if _, ok := r.Requests[corev1.ResourceCPU]; !ok {
		r.Requests[corev1.ResourceCPU] = resource.MustParse("100m")
		if limit, limited := r.Limits[corev1.ResourceCPU]; limited { // the API server's default
			r.Requests[corev1.ResourceCPU] = limit
		}
	}
	return r
}

// podSecurity complies with the restricted level of Pod Security.
func podSecurity(options Options) *corev1ac.PodSecurityContextApplyConfiguration {
	security := corev1ac.PodSecurityContext().
		WithRunAsNonRoot(true).
		WithSeccompProfile(corev1ac.SeccompProfile().WithType(corev1.SeccompProfileTypeRuntimeDefault))
	if !options.OmitRunAsUser {
		security.WithRunAsUser(memcachedUser).WithRunAsGroup(memcachedUser)
	}
	return security
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
func volumes(spec *v1alpha1.MemcachedSpec) []*corev1ac.VolumeApplyConfiguration {
	file := func(name, annotation string) *corev1ac.DownwardAPIVolumeFileApplyConfiguration {
		return corev1ac.DownwardAPIVolumeFile().WithPath(name).WithFieldRef(corev1ac.ObjectFieldSelector().
			WithAPIVersion("v1").WithFieldPath(fmt.Sprintf("metadata.annotations['%s']", annotation)))
	}
	return []*corev1ac.VolumeApplyConfiguration{
		corev1ac.Volume().WithName("data").WithEmptyDir(corev1ac.EmptyDirVolumeSource().
			WithMedium(corev1.StorageMediumMemory).WithSizeLimit(volumeSize(spec))),
		corev1ac.Volume().WithName("agent").WithEmptyDir(corev1ac.EmptyDirVolumeSource().
			WithSizeLimit(resource.MustParse("32Mi"))),
		corev1ac.Volume().WithName("podinfo").WithDownwardAPI(corev1ac.DownwardAPIVolumeSource().WithItems(
			file(agentwire.ArgumentsFile, annotations.Arguments),
			file(agentwire.RestartFile, v1alpha1.AnnotationRestart),
			file(agentwire.StopFile, annotations.Stop),
			file(agentwire.HoldFile, annotations.HoldUntil),
		)),
	}
}

// agentInstaller returns the init container that copies the agent into the pod, so that any image
// of memcached works.
func agentInstaller(options Options) *corev1ac.ContainerApplyConfiguration {
	small := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("32Mi")}
	return corev1ac.Container().
		WithName(initContainer).
		WithImage(options.AgentImage).
		WithCommand("/agent", "install", agentPath).
		WithResources(corev1ac.ResourceRequirements().WithRequests(small).
			WithLimits(corev1.ResourceList{corev1.ResourceMemory: small[corev1.ResourceMemory]})).
		WithSecurityContext(containerSecurity()).
		WithVolumeMounts(corev1ac.VolumeMount().WithName("agent").WithMountPath(agentPath))
}

// memcachedContainer returns the container in which the agent runs memcached.
func memcachedContainer(namespace, shard string, revision PodRevision, resources *corev1ac.ResourceRequirementsApplyConfiguration) *corev1ac.ContainerApplyConfiguration {
	port := func(name string, number int32) *corev1ac.ContainerPortApplyConfiguration {
		return corev1ac.ContainerPort().WithName(name).WithContainerPort(number).WithProtocol(corev1.ProtocolTCP)
	}
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
			// with the namespace: the bare name is also the pod's host name and would resolve to
			// the pod itself
			"-service", fmt.Sprintf("%s.%s.svc:%d", shard, namespace, agentwire.Port),
			"-drain-timeout", drainTimeout,
		).
		WithEnv(corev1ac.EnvVar().WithName("POD_UID").WithValueFrom(corev1ac.EnvVarSource().WithFieldRef(
			corev1ac.ObjectFieldSelector().WithAPIVersion("v1").WithFieldPath("metadata.uid")))).
		WithPorts(port(portMemcached, agentwire.MemcachedPort), port(portAgent, agentwire.Port)).
		WithResources(resources).
		WithSecurityContext(containerSecurity()).
		WithReadinessProbe(get("/readyz").WithPeriodSeconds(1).WithTimeoutSeconds(2).WithFailureThreshold(2)).
		// a kill loses the shard's items, so it takes a minute without an answer
		WithLivenessProbe(get("/healthz").WithPeriodSeconds(10).WithTimeoutSeconds(5).WithFailureThreshold(6)).
		WithVolumeMounts(
			corev1ac.VolumeMount().WithName("data").WithMountPath(dataPath),
			corev1ac.VolumeMount().WithName("agent").WithMountPath(agentPath).WithReadOnly(true),
			corev1ac.VolumeMount().WithName("podinfo").WithMountPath(podInfoPath).WithReadOnly(true),
		)
	if revision.Spec.ImagePullPolicy != "" {
		container.WithImagePullPolicy(revision.Spec.ImagePullPolicy)
	}
	return container
}

// convert converts a value of an API type into the apply configuration with the same JSON.
func convert[T any](from any) (*T, error) {
	raw, err := json.Marshal(from)
	if err != nil {
		return nil, fmt.Errorf("converting %T: %w", from, err)
	}
	to := new(T)
	if err := json.Unmarshal(raw, to); err != nil {
		return nil, fmt.Errorf("converting %T to %T: %w", from, to, err)
	}
	return to, nil
}
