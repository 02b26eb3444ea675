package snapshotjob

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/operator-framework/operator-lib/proxy"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/internal/snapshotapi"
)

const (
	// Container is the name of the container that does a Job's work.
	Container = "snapshot"
	// program is in the operator's image.
	program = "/snapshot"
	// user of the operator's image, which names it by number.
	user = 65532
	// retries of a Job that fails, about 10, 20 and 40 seconds after it did.
	retries = 3
	// eraseRetries of one that deletes: as many as eraseDeadline gives time for.
	eraseRetries = 10
	// defaultDeadline is that of the API server's default.
	defaultDeadline = 6 * time.Hour
)

// EraseDeadline is how long it is tried to delete a snapshot whose object goes.
const EraseDeadline = 10 * time.Minute

// Prefix begins a Job's name and says what it does.
type Prefix string

// The prefixes.
const (
	Backup  Prefix = "backup"
	Restore Prefix = "restore"
	Delete  Prefix = "delete"
)

// Name returns the name of the one Job that an object has for a purpose.
func Name(prefix Prefix, uid types.UID) string { return string(prefix) + "-" + string(uid) }

// Options are what the operator was started with.
type Options struct {
	// Image is the operator's own.
	Image string
	// AnyUser leaves the user of a pod to the platform, as OpenShift's security
	// context constraints demand.
	AnyUser bool
}

// Run is what a Job is made of.
type Run struct {
	Prefix Prefix
	// Owner that the Job goes with, and its kind.
	Owner client.Object
	Kind  string
	// Store that is written to or read, and the rest of what the program is told.
	Store  v1alpha1.SnapshotStore
	Action snapshotapi.Action
	Task   snapshotapi.Task
	// Deadline is how long it may take; nil is the default.
	Deadline *metav1.Duration
	// PullSecrets of the Memcached, which may be in need of them for all images.
	PullSecrets []corev1.LocalObjectReference
}

// Labels returns the labels of all that belongs to one Job. They are not those of
// the Memcached's own objects, whose Services would send clients to its pod.
func Labels(prefix Prefix, uid types.UID) map[string]string {
	return map[string]string{
		v1alpha1.LabelName:      v1alpha1.SnapshotNameValue,
		v1alpha1.LabelInstance:  Name(prefix, uid),
		v1alpha1.LabelManagedBy: v1alpha1.ManagedByValue,
	}
}

// Job returns the Job of a run. It stays until it is told to expire.
func (o Options) Job(r Run) (*batchv1.Job, error) {
	r.Task.ID, r.Task.Store = string(r.Owner.GetUID()), storeOf(r.Store)
	task, err := json.Marshal(r.Task)
	if err != nil {
		return nil, fmt.Errorf("writing the task of %s: %w", Name(r.Prefix, r.Owner.GetUID()), err)
	}
	object := metav1.ObjectMeta{
		Namespace:   r.Owner.GetNamespace(),
		Name:        Name(r.Prefix, r.Owner.GetUID()),
		Labels:      Labels(r.Prefix, r.Owner.GetUID()),
		Annotations: map[string]string{v1alpha1.AnnotationRunOf: RunOf(r.Kind, r.Owner.GetName())},
	}
	pod := metav1.ObjectMeta{Labels: object.Labels, Annotations: map[string]string{
		v1alpha1.AnnotationRunOf: RunOf(r.Kind, r.Owner.GetName()),
		// moving it would begin its work anew
		"cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
	}}
	object.OwnerReferences = []metav1.OwnerReference{OwnerReference(r.Owner, r.Kind)}
	spec := batchv1.JobSpec{
		Parallelism:           ptr.To[int32](1),
		Completions:           ptr.To[int32](1),
		BackoffLimit:          ptr.To[int32](retries),
		ActiveDeadlineSeconds: ptr.To(int64(math.Ceil(Deadline(r.Deadline).Seconds()))),
		PodReplacementPolicy:  ptr.To(batchv1.Failed), // never two at the same snapshot
		PodFailurePolicy:      failurePolicy(),
		Template:              corev1.PodTemplateSpec{ObjectMeta: pod, Spec: o.podSpec(r, string(task))},
	}
	if r.Action == snapshotapi.ActionDelete {
		// A person who sees that a deletion waits may mend what keeps it from ending.
		spec.BackoffLimit = ptr.To[int32](eraseRetries)
		spec.PodFailurePolicy.Rules = spec.PodFailurePolicy.Rules[1:]
	}
	return &batchv1.Job{ObjectMeta: object, Spec: spec}, nil
}

// RunOf returns the value of the annotation that leads from a Job's pod to the
// object that it works for.
func RunOf(kind, name string) string { return kind + "/" + name }

// OwnerReference returns the reference that has the garbage collector end an object
// with the one that it works for. The owner need not wait for it: that would take
// a right of the operator's more.
func OwnerReference(owner client.Object, kind string) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: v1alpha1.GroupVersion.String(), Kind: kind, Name: owner.GetName(), UID: owner.GetUID(), Controller: new(true),
	}
}

// Deadline returns how long something may take that runs once.
func Deadline(d *metav1.Duration) time.Duration {
	if d == nil {
		return defaultDeadline
	}
	return d.Duration
}

// failurePolicy returns which failures of a pod end the Job, and which do not count.
func failurePolicy() *batchv1.PodFailurePolicy {
	return &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{{
		Action: batchv1.PodFailurePolicyActionFailJob,
		OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{
			ContainerName: ptr.To(Container), Operator: batchv1.PodFailurePolicyOnExitCodesOpIn, Values: []int32{snapshotapi.ExitFinal}},
	}, {
		Action:          batchv1.PodFailurePolicyActionIgnore,
		OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue}},
	}}}
}

// podSpec returns the pod of a Job. It passes the Pod Security level restricted.
func (o Options) podSpec(r Run, task string) corev1.PodSpec {
	volumes, mounts := storeVolumes(r.Store, r.Action == snapshotapi.ActionLoad)
	volumes = append(volumes, corev1.Volume{Name: spoolVolume, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
	mounts = append(mounts, corev1.VolumeMount{Name: spoolVolume, MountPath: snapshotapi.SpoolPath})
	environment := append([]corev1.EnvVar{{Name: "GOMEMLIMIT", Value: "96MiB"}}, storeEnvironment(r.Store)...)
	if r.Store.S3 != nil {
		environment = append(environment, proxy.ReadProxyVarsFromEnv()...)
	}
	security := &corev1.PodSecurityContext{
		RunAsNonRoot:   new(true),
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
	if !o.AnyUser {
		security.RunAsUser, security.RunAsGroup, security.FSGroup = ptr.To[int64](user), ptr.To[int64](user), ptr.To[int64](user)
		// a volume full of snapshots is not walked each time
		security.FSGroupChangePolicy = ptr.To(corev1.FSGroupChangeOnRootMismatch)
	}
	return corev1.PodSpec{
		RestartPolicy:                corev1.RestartPolicyNever,
		AutomountServiceAccountToken: new(false),
		EnableServiceLinks:           new(false),
		ImagePullSecrets:             r.PullSecrets,
		SecurityContext:              security,
		Volumes:                      volumes,
		Containers: []corev1.Container{{
			Name:    Container,
			Image:   o.Image,
			Command: []string{program},
			// The kubelet replaces $(NAME) in arguments, and a path may hold that.
			Args:  []string{string(r.Action), "-task", strings.ReplaceAll(task, "$", `\u0024`)},
			Env:   environment,
			Ports: []corev1.ContainerPort{{Name: "progress", ContainerPort: snapshotapi.Port, Protocol: corev1.ProtocolTCP}},
			Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("64Mi")},
				Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("128Mi")},
			},
			SecurityContext: &corev1.SecurityContext{
				AllowPrivilegeEscalation: new(false),
				ReadOnlyRootFilesystem:   new(true),
				Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			},
			VolumeMounts:             mounts,
			TerminationMessagePolicy: corev1.TerminationMessageReadFile,
		}},
	}
}
