// Package workload has what users run without this operator: memcached in a StatefulSet and in Deployments, each shard with a
// stable address.
package workload

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
)

// Name of the objects and prefix of the shards' names.
const Name = "cache"

const appLabel = "app"

// Space is a namespace for shards.
type Space struct {
	*cluster.Cluster
	Namespace string
	// Mebibytes for the items of a shard.
	Mebibytes int
	// Shards is their number.
	Shards int
}

// Memory for the items of a shard.
func (s Space) Memory() resource.Quantity {
	return *resource.NewQuantity(int64(s.Mebibytes)<<20, resource.BinarySI)
}

// arguments of memcached are those of the operator's defaults.
func (s Space) arguments() []string {
	return []string{"-p", "11211", "-U", "0", "-m", strconv.Itoa(s.Mebibytes), "-c", "1024", "-t", "4", "-I", "1048576"}
}

// limit is the container's memory limit, as the operator derives it.
func (s Space) limit() resource.Quantity {
	return resources.MemoryLimit(&v1beta1.MemcachedSpec{Memory: new(s.Memory()), Config: v1beta1.MemcachedConfig{MaxConnections: new(int32(1024))}})
}

func image(version string) string { return "docker.io/library/memcached:" + version }

// podTemplate returns a pod that runs the official image as charts do, with a TCP probe. The probe starts at once and
// repeats each second, where charts wait 5 s: the benchmark does not compare initial delays.
func (s Space) podTemplate(labels map[string]string, version string) corev1.PodTemplateSpec {
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

func (s Space) service(name string, selector map[string]string, headless bool) *corev1.Service {
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: name},
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

func (s Space) create(ctx context.Context, objects ...client.Object) error {
	for _, o := range objects {
		if err := s.Create(ctx, o); err != nil {
			return fmt.Errorf("creating %T %s: %w", o, o.GetName(), err)
		}
	}
	return nil
}

// CreateStatefulSet creates a StatefulSet with its headless Service, and a Service for each pod. Without the latter a
// client would first have to resolve a new pod's address.
func CreateStatefulSet(ctx context.Context, in Space, version string) error {
	labels := map[string]string{appLabel: Name}
	objects := []client.Object{
		in.budget(),
		in.service(Name, labels, true),
		&appsv1.StatefulSet{
			ObjectMeta: metav1.ObjectMeta{Namespace: in.Namespace, Name: Name},
			Spec: appsv1.StatefulSetSpec{
				Replicas:    new(int32(in.Shards)),
				ServiceName: Name,
				Selector:    &metav1.LabelSelector{MatchLabels: labels},
				Template:    in.podTemplate(labels, version),
			},
		},
	}
	for ordinal := range in.Shards {
		objects = append(objects, in.podService(ordinal))
	}
	return in.create(ctx, objects...)
}

// podService returns the Service of a pod of the StatefulSet.
func (s Space) podService(ordinal int) *corev1.Service {
	pod := cluster.ShardName(Name, ordinal)
	return s.service(pod, map[string]string{appsv1.StatefulSetPodNameLabel: pod}, false)
}

// budget returns a disruption budget as that of a Memcached: one pod may be unavailable.
func (s Space) budget() *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: Name},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MaxUnavailable: new(intstr.FromInt32(1)),
			Selector:       &metav1.LabelSelector{MatchLabels: map[string]string{appLabel: Name}},
		},
	}
}

func imagePatch(version string) client.Patch {
	patch := fmt.Appendf(nil, `{"spec":{"template":{"spec":{"containers":[{"name":"memcached","image":%q}]}}}}`, image(version))
	return client.RawPatch("application/strategic-merge-patch+json", patch)
}

// UpgradeStatefulSet changes the image.
func UpgradeStatefulSet(ctx context.Context, in Space, version string) error {
	o := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: in.Namespace, Name: Name}}
	if err := in.Patch(ctx, o, imagePatch(version)); err != nil {
		return fmt.Errorf("changing the image of StatefulSet %s: %w", Name, err)
	}
	return nil
}

// ScaleStatefulSet changes the number of replicas to that of the shards, with a Service for each.
func ScaleStatefulSet(ctx context.Context, in Space) error {
	for ordinal := range in.Shards {
		if err := in.create(ctx, in.podService(ordinal)); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	o := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: in.Namespace, Name: Name}}
	if err := in.Patch(ctx, o, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, in.Shards))); err != nil {
		return fmt.Errorf("scaling StatefulSet %s: %w", Name, err)
	}
	return nil
}

// CreateDeployments creates a Deployment and a Service for each shard, as the pods of one Deployment have no identity by
// which a client could distribute keys.
func CreateDeployments(ctx context.Context, in Space, version string) error {
	if err := in.create(ctx, in.budget()); err != nil {
		return err
	}
	for ordinal := range in.Shards {
		shard := cluster.ShardName(Name, ordinal)
		labels := map[string]string{appLabel: Name, "shard": strconv.Itoa(ordinal)}
		err := in.create(ctx, in.service(shard, labels, false), &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: in.Namespace, Name: shard},
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

// UpgradeDeployments changes the image of all Deployments at once.
func UpgradeDeployments(ctx context.Context, in Space, version string) error {
	for ordinal := range in.Shards {
		o := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: in.Namespace, Name: cluster.ShardName(Name, ordinal)}}
		if err := in.Patch(ctx, o, imagePatch(version)); err != nil {
			return fmt.Errorf("changing the image of Deployment %s: %w", o.Name, err)
		}
	}
	return nil
}

// PodsUpToDate returns an error unless there are as many pods as shards, each ready and of the version. The status of a
// Deployment does not say so: it is complete while its old pods still terminate.
func PodsUpToDate(ctx context.Context, in Space, version string) error {
	var pods corev1.PodList
	if err := in.List(ctx, &pods, client.InNamespace(in.Namespace), client.MatchingLabels{appLabel: Name}); err != nil {
		return fmt.Errorf("listing pods: %w", err)
	}
	ready := 0
	for _, pod := range pods.Items {
		if pod.DeletionTimestamp == nil && pod.Spec.Containers[0].Image == image(version) && isReady(&pod) {
			ready++
		}
	}
	if ready != in.Shards || len(pods.Items) != in.Shards {
		return fmt.Errorf("%d pods of %s are ready, there are %d pods", ready, version, len(pods.Items))
	}
	return nil
}

func isReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// Pull pulls the image of a version on every node, so that no variant waits for a registry.
func (s Space) Pull(ctx context.Context, version string) error {
	var nodes corev1.NodeList
	if err := s.List(ctx, &nodes); err != nil {
		return fmt.Errorf("listing nodes: %w", err)
	}
	for _, node := range nodes.Items {
		if node.Spec.Unschedulable {
			continue
		}
		spec := s.podTemplate(nil, version).Spec
		spec.NodeName = node.Name
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, GenerateName: "pull-"}, Spec: spec}
		if err := s.create(ctx, pod); err != nil {
			return err
		}
		err := cluster.Eventually(ctx, fmt.Sprintf("memcached %s on %s", version, node.Name), func(ctx context.Context) error {
			if err := s.Get(ctx, client.ObjectKeyFromObject(pod), pod); err != nil {
				return err
			}
			if !isReady(pod) {
				return fmt.Errorf("pod %s is %s", pod.Name, pod.Status.Phase)
			}
			return nil
		})
		if err != nil {
			return err
		}
		if err := s.Delete(ctx, pod); err != nil {
			return fmt.Errorf("deleting pod %s: %w", pod.Name, err)
		}
	}
	return nil
}
