package upgrade

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
)

const appLabel = "app"

// memory for the items of a shard.
func (s space) memory() resource.Quantity {
	return *resource.NewQuantity(int64(s.mebibytes)<<20, resource.BinarySI)
}

// arguments of memcached are those of the operator's defaults.
func (s space) arguments() []string {
	return []string{"-p", "11211", "-U", "0", "-m", strconv.Itoa(s.mebibytes), "-c", "1024", "-t", "4", "-I", "1048576"}
}

// limit is the container's memory limit, as the operator derives it.
func (s space) limit() resource.Quantity {
	return resources.MemoryLimit(&v1beta1.MemcachedSpec{Memory: new(s.memory()), Config: v1beta1.MemcachedConfig{MaxConnections: new(int32(1024))}})
}

func image(version string) string { return "docker.io/library/memcached:" + version }

// podTemplate returns a pod that runs the official image as charts do, with a TCP probe. The probe starts at once and
// repeats each second, where charts wait 5 s: the benchmark does not compare initial delays.
func (s space) podTemplate(labels map[string]string, version string) corev1.PodTemplateSpec {
	port := intstr.FromString("memcached")
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels},
		Spec: corev1.PodSpec{
			AutomountServiceAccountToken: new(false),
			EnableServiceLinks:           new(false),
			Containers: []corev1.Container{{
				Name:  "memcached",
				Image: image(version),
				Args:  s.arguments(),
				Ports: []corev1.ContainerPort{{Name: "memcached", ContainerPort: agentwire.MemcachedPort}},
				ReadinessProbe: &corev1.Probe{
					ProbeHandler:  corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: port}},
					PeriodSeconds: 1,
				},
				LivenessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: port}}},
				Resources: corev1.ResourceRequirements{
					Limits:   corev1.ResourceList{corev1.ResourceMemory: s.limit()},
					Requests: corev1.ResourceList{corev1.ResourceMemory: s.limit(), corev1.ResourceCPU: resource.MustParse("100m")},
				},
				SecurityContext: &corev1.SecurityContext{
					AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
					Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				},
			}},
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: new(true), RunAsUser: new(int64(11211)),
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
		},
	}
}

func (s space) service(name string, selector map[string]string, headless bool) *corev1.Service {
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name},
		Spec: corev1.ServiceSpec{
			Selector: selector,
			Ports:    []corev1.ServicePort{{Name: "memcached", Port: agentwire.MemcachedPort, TargetPort: intstr.FromString("memcached")}},
		},
	}
	if headless {
		service.Spec.ClusterIP = corev1.ClusterIPNone
	}
	return service
}

func (s space) create(ctx context.Context, objects ...client.Object) error {
	for _, o := range objects {
		if err := s.Create(ctx, o); err != nil {
			return fmt.Errorf("creating %T %s: %w", o, o.GetName(), err)
		}
	}
	return nil
}

// createStatefulSet creates a StatefulSet with its headless Service, and a Service for each pod. Without the latter a
// client would first have to resolve a new pod's address.
func createStatefulSet(ctx context.Context, in space, version string) error {
	labels := map[string]string{appLabel: name}
	objects := []client.Object{
		in.budget(),
		in.service(name, labels, true),
		&appsv1.StatefulSet{
			ObjectMeta: metav1.ObjectMeta{Namespace: in.namespace, Name: name},
			Spec: appsv1.StatefulSetSpec{
				Replicas:    new(int32(shards)),
				ServiceName: name,
				Selector:    &metav1.LabelSelector{MatchLabels: labels},
				Template:    in.podTemplate(labels, version),
			},
		},
	}
	for ordinal := range shards {
		pod := cluster.ShardName(name, ordinal)
		objects = append(objects, in.service(pod, map[string]string{appsv1.StatefulSetPodNameLabel: pod}, false))
	}
	return in.create(ctx, objects...)
}

// budget returns a disruption budget as that of a Memcached: one pod may be unavailable.
func (s space) budget() *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MaxUnavailable: new(intstr.FromInt32(1)),
			Selector:       &metav1.LabelSelector{MatchLabels: map[string]string{appLabel: name}},
		},
	}
}

func imagePatch(version string) client.Patch {
	patch := fmt.Appendf(nil, `{"spec":{"template":{"spec":{"containers":[{"name":"memcached","image":%q}]}}}}`, image(version))
	return client.RawPatch("application/strategic-merge-patch+json", patch)
}

func upgradeStatefulSet(ctx context.Context, in space, version string) error {
	o := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: in.namespace, Name: name}}
	if err := in.Patch(ctx, o, imagePatch(version)); err != nil {
		return fmt.Errorf("changing the image of StatefulSet %s: %w", name, err)
	}
	return nil
}

// createDeployments creates a Deployment and a Service for each shard, as the pods of one Deployment have no identity by
// which a client could distribute keys.
func createDeployments(ctx context.Context, in space, version string) error {
	if err := in.create(ctx, in.budget()); err != nil {
		return err
	}
	for ordinal := range shards {
		shard := cluster.ShardName(name, ordinal)
		labels := map[string]string{appLabel: name, "shard": strconv.Itoa(ordinal)}
		err := in.create(ctx, in.service(shard, labels, false), &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: in.namespace, Name: shard},
			Spec: appsv1.DeploymentSpec{
				Replicas: new(int32(1)),
				Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: in.podTemplate(labels, version),
			},
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func upgradeDeployments(ctx context.Context, in space, version string) error {
	for ordinal := range shards {
		o := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: in.namespace, Name: cluster.ShardName(name, ordinal)}}
		if err := in.Patch(ctx, o, imagePatch(version)); err != nil {
			return fmt.Errorf("changing the image of Deployment %s: %w", o.Name, err)
		}
	}
	return nil
}

// podsUpToDate returns an error unless there are as many pods as shards, each ready and of the version. The status of a
// Deployment does not say so: it is complete while its old pods still terminate.
func podsUpToDate(ctx context.Context, in space, version string) error {
	var pods corev1.PodList
	if err := in.List(ctx, &pods, client.InNamespace(in.namespace), client.MatchingLabels{appLabel: name}); err != nil {
		return fmt.Errorf("listing pods: %w", err)
	}
	ready := 0
	for _, pod := range pods.Items {
		if pod.DeletionTimestamp == nil && pod.Spec.Containers[0].Image == image(version) && isReady(&pod) {
			ready++
		}
	}
	if ready != shards || len(pods.Items) != shards {
		return fmt.Errorf("%d pods of %s are ready, there are %d pods", ready, version, len(pods.Items))
	}
	return nil
}

func isReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

const owner = client.FieldOwner("bench")

// applyMemcached creates a Memcached or changes its version. The other variants copy what the operator defaults here.
func applyMemcached(ctx context.Context, in space, version string) error {
	return applyWith(ctx, in, version, v1beta1.HandoverStrict, v1beta1.UpdateInPlace)
}

func applyAvailable(ctx context.Context, in space, version string) error {
	return applyWith(ctx, in, version, v1beta1.HandoverAvailable, v1beta1.UpdateHandover)
}

func applyWithoutHandover(ctx context.Context, in space, version string) error {
	return applyWith(ctx, in, version, v1beta1.HandoverDisabled, v1beta1.UpdateInPlace)
}

func applyWith(ctx context.Context, in space, version string, mode v1beta1.HandoverMode, updates v1beta1.UpdateType) error {
	return in.ApplyMemcached(ctx, client.ObjectKey{Namespace: in.namespace, Name: name}, v1beta1.MemcachedSpec{
		Size:           new(int32(shards)),
		Version:        version,
		Memory:         new(in.memory()),
		UpdateStrategy: v1beta1.UpdateStrategy{Type: updates, Handover: v1beta1.HandoverSpec{Mode: mode}},
	}, owner)
}

func memcachedUpToDate(ctx context.Context, in space, version string) error {
	m, err := in.Memcached(ctx, client.ObjectKey{Namespace: in.namespace, Name: name})
	if err != nil {
		return err
	}
	return checkMemcached(m, version)
}

// checkMemcached returns an error unless a Memcached is available and all of its shards run the version.
func checkMemcached(m *v1beta1.Memcached, version string) error {
	if m.Status.ObservedGeneration != m.Generation {
		return errors.New("the change is not observed yet")
	}
	if err := cluster.Available(m); err != nil {
		return err
	}
	for ordinal := range shards {
		s, err := cluster.Shard(m, ordinal)
		if err != nil {
			return err
		}
		if s.Version != version || !s.UpToDate || !s.Ready {
			return fmt.Errorf("shard %s: version %s, current %t, ready %t", s.Name, s.Version, s.UpToDate, s.Ready)
		}
	}
	return nil
}

// evictInterval is how long evict waits after a disruption budget rejected an eviction. kubectl waits 5 s.
const evictInterval = 500 * time.Millisecond

// evict evicts all pods as the drain of a node with all of them does, and waits until they no longer exist.
func evict(ctx context.Context, in space, _ string) error {
	var pods corev1.PodList
	if err := in.List(ctx, &pods, client.InNamespace(in.namespace)); err != nil {
		return fmt.Errorf("listing pods: %w", err)
	}
	left := map[string]bool{}
	for _, pod := range pods.Items {
		left[string(pod.UID)] = true
	}
	waiting := pods.Items
	return cluster.Eventually(ctx, "evicting the pods", func(ctx context.Context) error {
		var rejected []corev1.Pod
		for _, pod := range waiting {
			err := in.Set.PolicyV1().Evictions(pod.Namespace).Evict(ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}})
			switch {
			case apierrors.IsTooManyRequests(err):
				rejected = append(rejected, pod)
			case client.IgnoreNotFound(err) != nil:
				return fmt.Errorf("evicting pod %s: %w", pod.Name, err)
			}
		}
		if waiting = rejected; len(waiting) > 0 {
			time.Sleep(evictInterval)
			return fmt.Errorf("%d evictions were rejected", len(waiting))
		}
		var now corev1.PodList
		if err := in.List(ctx, &now, client.InNamespace(in.namespace)); err != nil {
			return err
		}
		for _, pod := range now.Items {
			if left[string(pod.UID)] {
				return fmt.Errorf("pod %s is still there", pod.Name)
			}
		}
		return nil
	})
}
