package manifests

import (
	"encoding/json"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/internal/agentapi"
)

const (
	// gracePeriod, in seconds, is how long a pod that goes may take in all.
	gracePeriod = 90
	// drainTimeout is how long it serves on while it waits for its replacement;
	// what is left of the grace period is for saving the items.
	drainTimeout = "60s"
	// memcachedUser is the user id of the official image, whose image names the
	// user by name, which the kubelet cannot prove not to be root.
	memcachedUser = 11211

	agentPath   = "/opt/agent"
	dataPath    = "/var/lib/memcached"
	podInfoPath = "/etc/podinfo"
)

// shardService returns the Service whose address stays with a shard whichever pod
// holds it.
func shardService(m *v1alpha1.Memcached, ordinal int) *corev1ac.ServiceApplyConfiguration {
	return corev1ac.Service(ShardName(m.Name, ordinal), m.Namespace).
		WithLabels(shardLabels(m.Name, ordinal)).
		WithOwnerReferences(owner(m)).
		WithSpec(corev1ac.ServiceSpec().
			WithType(corev1.ServiceTypeClusterIP).
			WithSelector(shardLabels(m.Name, ordinal)).
			WithPorts(servicePorts()...))
}

// Shard is how one shard should be.
type Shard struct {
	// Asked is what its next pod is to be.
	Asked Asked
	// Surge has a second pod made.
	Surge bool
	// HoldUntil, as RFC 3339, has its next pod not serve until then; empty: it does.
	HoldUntil string
	// Annotations of its ReplicaSet.
	Annotations map[string]string
}

// replicaSet returns the ReplicaSet that keeps the pod of a shard.
func replicaSet(m *v1alpha1.Memcached, ordinal int, shard Shard, pod *corev1ac.PodTemplateSpecApplyConfiguration) *appsv1ac.ReplicaSetApplyConfiguration {
	replicas := int32(1)
	if shard.Surge {
		replicas = 2
	}
	if shard.HoldUntil != "" {
		pod.WithAnnotations(map[string]string{v1alpha1.AnnotationHoldUntil: shard.HoldUntil})
	}
	return appsv1ac.ReplicaSet(ShardName(m.Name, ordinal), m.Namespace).
		WithLabels(shardLabels(m.Name, ordinal)).
		WithAnnotations(shard.Annotations).
		WithOwnerReferences(owner(m)).
		WithSpec(appsv1ac.ReplicaSetSpec().
			WithReplicas(replicas).
			WithSelector(metav1ac.LabelSelector().WithMatchLabels(shardLabels(m.Name, ordinal))).
			WithTemplate(pod))
}

// podTemplate returns what makes the templates of the shards of which the same is
// asked. They differ in the shard's label and names only.
func podTemplate(m *v1alpha1.Memcached, asked Asked, options Options) (func(ordinal int) *corev1ac.PodTemplateSpecApplyConfiguration, error) {
	scheduling, err := schedulingOf(m.Name, &asked.Spec)
	if err != nil {
		return nil, err
	}
	resources, err := convert[corev1ac.ResourceRequirementsApplyConfiguration](Resources(&asked.Spec))
	if err != nil {
		return nil, err
	}
	annotations := PodAnnotations(asked)
	return func(ordinal int) *corev1ac.PodTemplateSpecApplyConfiguration {
		spec := *scheduling // each template its own copy of the top level
		labels := maps.Clone(asked.Spec.PodLabels)
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
				WithVolumes(volumes(&asked.Spec)...).
				WithInitContainers(agentInstaller(options)).
				WithContainers(memcachedContainer(m.Namespace, shard, asked, resources)))
	}, nil
}

// PodAnnotations returns the annotations of a pod of which that is asked.
func PodAnnotations(asked Asked) map[string]string {
	annotations := maps.Clone(asked.Spec.PodAnnotations)
	if annotations == nil {
		annotations = map[string]string{}
	}
	_, arguments := asked.Arguments()
	annotations[v1alpha1.AnnotationArguments] = arguments
	annotations[v1alpha1.AnnotationRevision] = asked.Revision()
	annotations[v1alpha1.AnnotationSpec] = asked.String()
	// an autoscaler may move the pod although it holds local volumes
	annotations["cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"] = "data,agent"
	annotations["kubectl.kubernetes.io/default-container"] = Container
	return annotations
}

// schedulingOf returns the part of a pod's spec that a person writes as
// Kubernetes has it: where the pod runs and how its images are pulled.
func schedulingOf(memcached string, asked *v1alpha1.MemcachedSpec) (*corev1ac.PodSpecApplyConfiguration, error) {
	affinity, spread := asked.Affinity, asked.TopologySpreadConstraints
	if spread == nil && (affinity == nil || affinity.PodAntiAffinity == nil) {
		if affinity = affinity.DeepCopy(); affinity == nil {
			affinity = &corev1.Affinity{}
		}
		affinity.PodAntiAffinity = apart(memcached)
	}
	return convert[corev1ac.PodSpecApplyConfiguration](struct {
		NodeSelector              map[string]string                 `json:"nodeSelector,omitempty"`
		Tolerations               []corev1.Toleration               `json:"tolerations,omitempty"`
		Affinity                  *corev1.Affinity                  `json:"affinity,omitempty"`
		TopologySpreadConstraints []corev1.TopologySpreadConstraint `json:"topologySpreadConstraints,omitempty"`
		PriorityClassName         string                            `json:"priorityClassName,omitempty"`
		ImagePullSecrets          []corev1.LocalObjectReference     `json:"imagePullSecrets,omitempty"`
	}{
		asked.NodeSelector, asked.Tolerations, affinity, spread, asked.PriorityClassName, asked.ImagePullSecrets,
	})
}

// apart returns the wish that shards be in different zones, and on different nodes.
// Topology spread constraints cannot say it for every cluster: the scheduler
// leaves a node that lacks the label of one of them out of its scores for all, so
// that without zones none would count.
func apart(memcached string) *corev1.PodAntiAffinity {
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

// Resources returns the resources of the memcached container: what the spec
// says and, where it is silent, enough memory for a full cache, promised and not
// overcommitted, and no CPU limit.
func Resources(spec *v1alpha1.MemcachedSpec) corev1.ResourceRequirements {
	r := corev1.ResourceRequirements{}
	if spec.Resources != nil {
		r = *spec.Resources.DeepCopy()
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
		if limit, limited := r.Limits[corev1.ResourceCPU]; limited { // as the API server has it
			r.Requests[corev1.ResourceCPU] = limit
		}
	}
	return r
}

// podSecurity returns what Pod Security's restricted level demands of a pod.
func podSecurity(options Options) *corev1ac.PodSecurityContextApplyConfiguration {
	security := corev1ac.PodSecurityContext().
		WithRunAsNonRoot(true).
		WithSeccompProfile(corev1ac.SeccompProfile().WithType(corev1.SeccompProfileTypeRuntimeDefault))
	if !options.AnyUser {
		security.WithRunAsUser(memcachedUser).WithRunAsGroup(memcachedUser)
	}
	return security
}

// containerSecurity returns what it demands of a container, and a root file
// system that nobody can write to.
func containerSecurity() *corev1ac.SecurityContextApplyConfiguration {
	return corev1ac.SecurityContext().
		WithAllowPrivilegeEscalation(false).
		WithReadOnlyRootFilesystem(true).
		WithCapabilities(corev1ac.Capabilities().WithDrop("ALL"))
}

// volumes returns the pod's volumes: memory for the items, which outlives the
// container and not the pod; the agent; and the annotations that tell it what to do.
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
			file(agentapi.ArgumentsFile, v1alpha1.AnnotationArguments),
			file(agentapi.RestartFile, v1alpha1.AnnotationRestart),
			file(agentapi.StopFile, v1alpha1.AnnotationStop),
			file(agentapi.HoldFile, v1alpha1.AnnotationHoldUntil),
		)),
	}
}

// agentInstaller returns the init container that copies the agent into the pod,
// so that any image of memcached will do.
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
func memcachedContainer(namespace, shard string, asked Asked, resources *corev1ac.ResourceRequirementsApplyConfiguration) *corev1ac.ContainerApplyConfiguration {
	port := func(name string, number int32) *corev1ac.ContainerPortApplyConfiguration {
		return corev1ac.ContainerPort().WithName(name).WithContainerPort(number).WithProtocol(corev1.ProtocolTCP)
	}
	get := func(path string) *corev1ac.ProbeApplyConfiguration {
		return corev1ac.Probe().WithHTTPGet(corev1ac.HTTPGetAction().WithPath(path).WithPort(intstr.FromString(portAgent)))
	}
	container := corev1ac.Container().
		WithName(Container).
		WithImage(asked.Image.Reference).
		WithCommand(agentPath+"/agent", "run").
		WithArgs(
			"-data", dataPath,
			"-podinfo", podInfoPath,
			// with the namespace: the bare name is also the pod's host name, by which it
			// would ask itself
			"-service", fmt.Sprintf("%s.%s.svc:%d", shard, namespace, agentapi.Port),
			"-drain-timeout", drainTimeout,
		).
		WithEnv(corev1ac.EnvVar().WithName("POD_UID").WithValueFrom(corev1ac.EnvVarSource().WithFieldRef(
			corev1ac.ObjectFieldSelector().WithAPIVersion("v1").WithFieldPath("metadata.uid")))).
		WithPorts(port(portMemcached, agentapi.MemcachedPort), port(portAgent, agentapi.Port)).
		WithResources(resources).
		WithSecurityContext(containerSecurity()).
		WithReadinessProbe(get("/readyz").WithPeriodSeconds(1).WithTimeoutSeconds(2).WithFailureThreshold(2)).
		// a kill without a save costs the shard its items, so only a minute of
		// silence earns one
		WithLivenessProbe(get("/healthz").WithPeriodSeconds(10).WithTimeoutSeconds(5).WithFailureThreshold(6)).
		WithVolumeMounts(
			corev1ac.VolumeMount().WithName("data").WithMountPath(dataPath),
			corev1ac.VolumeMount().WithName("agent").WithMountPath(agentPath).WithReadOnly(true),
			corev1ac.VolumeMount().WithName("podinfo").WithMountPath(podInfoPath).WithReadOnly(true),
		)
	if asked.Spec.ImagePullPolicy != "" {
		container.WithImagePullPolicy(asked.Spec.ImagePullPolicy)
	}
	return container
}

// convert turns a value of the API's own types into the apply configuration that
// has the same JSON.
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
