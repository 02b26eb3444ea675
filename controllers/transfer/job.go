package transfer

import (
	"cmp"
	"encoding/json"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
	snapshotwire "github.com/memcached-operator/memcached-operator/internal/snapshot/wire"
)

const (
	// Container is the name of the container that does a Job's work.
	Container = "snapshot"
	// program is in the operator's image.
	program = "/snapshot"
	// user of the operator's image, which names it by number.
	user = 65532
	// retries of a Job that fails, about 10, 20 and 40 seconds later.
	retries = 3
	// deleteRetries of a Job that deletes: as many as DeleteDeadlineSeconds has time for.
	deleteRetries = 10
)

// DeleteDeadlineSeconds is how long a Job tries to delete a snapshot.
const DeleteDeadlineSeconds = 600

// JobName returns the name of the one Job that an object has for a purpose.
func JobName(prefix Prefix, uid types.UID) string { return string(prefix) + "-" + string(uid) }

// Options are the settings that all Jobs share.
type Options struct {
	// Image is the operator's own.
	Image string
	// OperatorNamespace is the namespace of the operator's pods, which read the progress of Jobs;
	// empty when the operator runs outside the cluster.
	OperatorNamespace string
	// OmitRunAsUser leaves the user of a pod to the platform, as OpenShift's security
	// context constraints require.
	OmitRunAsUser bool
	// Proxy are the environment variables of Jobs that use S3: see ProxyEnvironment.
	Proxy []corev1.EnvVar
	// Restrictions are what the operator's settings allow.
	Restrictions resources.Restrictions
	// AsShard gives a Job the amounts of a shard: what the platform accepts of one, it accepts of the other.
	AsShard bool
}

// JobSpec is what a Job is built from.
type JobSpec struct {
	Prefix Prefix
	// Owner is the MemcachedBackup or MemcachedRestore that the Job is deleted with.
	Owner client.Object
	// Store that is written or read, and the rest of the program's task.
	Store  v1beta1.SnapshotStore
	Action snapshotwire.Action
	Task   snapshotwire.Task
	// DeadlineSeconds is how long the Job may take; nil is the default.
	DeadlineSeconds *int32
	// Basis of the Memcached's pods; empty when it is not known any more.
	Basis resources.Basis
	// Memcached whose shards the Job connects to; nil if it connects to none.
	Memcached *v1beta1.Memcached
	// Resources that the user set, and what the defaults depend on.
	Resources v1beta1.JobResources
	Cache     CacheSize
}

// Labels returns the labels of the objects of one Job. They differ from those of the
// Memcached's own objects, whose Services would send clients to its pod.
func Labels(prefix Prefix, uid types.UID) map[string]string {
	return map[string]string{
		v1beta1.LabelName:      annotations.SnapshotName,
		v1beta1.LabelInstance:  JobName(prefix, uid),
		v1beta1.LabelManagedBy: v1beta1.ManagedByValue,
	}
}

// Job returns a Job. It stays until it gets a ttlSecondsAfterFinished.
func (o Options) Job(r JobSpec) *batchv1.Job {
	amounts := jobResources(r, o.AsShard)
	r.Task.ID, r.Task.Store = string(r.Owner.GetUID()), storeOf(r.Store)
	if r.Action == snapshotwire.ActionSave {
		r.Task.SpoolBytes = spoolBytes(amounts)
	}
	if m := r.Memcached; m != nil {
		r.Task.Login = m.Spec.Auth.IsRequired()
		if m.Spec.TLS.IsEnabled() {
			r.Task.TLS = taskTLS(m, r.Task.Servers)
		}
	}
	task, err := json.Marshal(r.Task)
	if err != nil {
		panic(err) // a task has nothing that JSON lacks
	}
	of := transferOf(r.Owner).kind + "/" + r.Owner.GetName()
	object := metav1.ObjectMeta{
		Namespace:       r.Owner.GetNamespace(),
		Name:            JobName(r.Prefix, r.Owner.GetUID()),
		Labels:          Labels(r.Prefix, r.Owner.GetUID()),
		Annotations:     map[string]string{annotations.TransferOf: of},
		OwnerReferences: []metav1.OwnerReference{OwnerReference(r.Owner)},
	}
	pod := resources.NewPod(&r.Basis.Pod, object.Labels, map[string]string{
		annotations.TransferOf: of,
		// an eviction would restart the copy
		"cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
	})
	object.Labels = pod.Labels // a policy may require them of Jobs, too
	o.complete(&pod.Spec, r, amounts, string(task))
	spec := batchv1.JobSpec{
		Parallelism:           ptr.To[int32](1),
		Completions:           ptr.To[int32](1),
		BackoffLimit:          ptr.To[int32](retries),
		ActiveDeadlineSeconds: ptr.To(int64(ptr.Deref(r.DeadlineSeconds, v1beta1.DefaultTransferDeadlineSeconds))),
		PodReplacementPolicy:  ptr.To(batchv1.Failed), // never two at the same snapshot
		PodFailurePolicy:      failurePolicy(),
		Template:              pod,
	}
	switch r.Action {
	case snapshotwire.ActionSave:
		spec.Template.Spec.TerminationGracePeriodSeconds = ptr.To(int64(snapshotwire.SaveGrace.Seconds()))
	case snapshotwire.ActionDelete:
		// You may fix what a deletion waits for, so no failure is final.
		spec.BackoffLimit = ptr.To[int32](deleteRetries)
		spec.PodFailurePolicy.Rules = spec.PodFailurePolicy.Rules[1:]
	}
	return &batchv1.Job{ObjectMeta: object, Spec: spec}
}

// OwnerReference returns the reference by which the garbage collector deletes an object
// with its owner. It does not block the owner's deletion, which would take another
// permission of the operator.
func OwnerReference(owner client.Object) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: v1beta1.GroupVersion.String(), Kind: transferOf(owner).kind, Name: owner.GetName(), UID: owner.GetUID(), Controller: new(true),
	}
}

func failurePolicy() *batchv1.PodFailurePolicy {
	return &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{{
		Action: batchv1.PodFailurePolicyActionFailJob,
		OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{
			ContainerName: ptr.To(Container), Operator: batchv1.PodFailurePolicyOnExitCodesOpIn, Values: []int32{snapshotwire.ExitFinal}},
	}, {
		Action:          batchv1.PodFailurePolicyActionIgnore,
		OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue}},
	}}}
}

// complete adds to a pod what it needs for its Job. It meets the Pod Security level restricted.
func (o Options) complete(pod *corev1.PodSpec, r JobSpec, amounts corev1.ResourceRequirements, task string) {
	volumes, mounts := storeVolumes(r.Store, r.Action == snapshotwire.ActionLoad)
	if r.Action == snapshotwire.ActionSave {
		volumes = append(volumes, corev1.Volume{Name: spoolVolume, VolumeSource: corev1.VolumeSource{
			EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: spoolLimit(amounts)}}})
		mounts = append(mounts, corev1.VolumeMount{Name: spoolVolume, MountPath: snapshotwire.SpoolPath})
	}
	if r.Task.TLS != nil {
		volumes = append(volumes, o.tlsVolume(r.Memcached))
		mounts = append(mounts, corev1.VolumeMount{Name: tlsVolumeName, MountPath: snapshotwire.TLSPath, ReadOnly: true})
	}
	if r.Task.Login {
		volumes = append(volumes, o.usersVolume(r.Memcached))
		mounts = append(mounts, corev1.VolumeMount{Name: usersVolumeName, MountPath: snapshotwire.UsersPath, ReadOnly: true})
	}
	environment := append([]corev1.EnvVar{{Name: "GOMEMLIMIT", Value: goMemoryLimit(amounts)}}, storeEnvironment(r.Store)...)
	if s := r.Store.S3; s != nil {
		environment = append(environment, o.Proxy...)
		pod.ServiceAccountName = cmp.Or(s.ServiceAccountName, pod.ServiceAccountName)
	}
	pod.RestartPolicy, pod.SecurityContext, pod.Volumes = corev1.RestartPolicyNever, o.podSecurity(r), volumes
	pod.Containers = []corev1.Container{{
		Name:    Container,
		Image:   o.Image,
		Command: []string{program},
		// The kubelet replaces $(NAME) in arguments, and a path may contain it.
		Args:           []string{string(r.Action), "-task", strings.ReplaceAll(task, "$", `\u0024`)},
		Env:            environment,
		Ports:          []corev1.ContainerPort{{Name: "progress", ContainerPort: snapshotwire.Port, Protocol: corev1.ProtocolTCP}},
		Resources:      amounts,
		ReadinessProbe: resources.NeverReady(),
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: new(false),
			ReadOnlyRootFilesystem:   new(true),
			Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		},
		VolumeMounts:             mounts,
		TerminationMessagePolicy: corev1.TerminationMessageReadFile,
	}}
}

// podSecurity returns what the pod of a Job runs as.
func (o Options) podSecurity(r JobSpec) *corev1.PodSecurityContext {
	security := &corev1.PodSecurityContext{
		RunAsNonRoot:   new(true),
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
	if !o.OmitRunAsUser {
		security.RunAsUser, security.RunAsGroup = ptr.To[int64](user), ptr.To[int64](user)
	}
	// A restore doesn't change the files that it reads.
	if claim := r.Store.PersistentVolumeClaim; !o.OmitRunAsUser && claim != nil && claim.FSGroup != nil && r.Action != snapshotwire.ActionLoad {
		security.FSGroup = claim.FSGroup
		// a volume full of snapshots takes long to walk
		security.FSGroupChangePolicy = ptr.To(corev1.FSGroupChangeOnRootMismatch)
	}
	return security
}

// Limits returns the limits of each shard, in items and in bytes a second; 0 is no limit.
func Limits(l *v1beta1.RateLimit) (items int, bytes int64) {
	l = cmp.Or(l, &v1beta1.RateLimit{})
	quantity := ptr.Deref(l.BytesPerSecond, resource.MustParse(v1beta1.DefaultBytesPerSecond))
	return int(ptr.Deref(l.ItemsPerSecond, v1beta1.DefaultItemsPerSecond)), quantity.Value()
}
