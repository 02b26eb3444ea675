package transfer

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net"
	"slices"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/apiserver"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
	"github.com/memcached-operator/memcached-operator/internal/index"
	"github.com/memcached-operator/memcached-operator/internal/podhttp"
	"github.com/memcached-operator/memcached-operator/internal/podresult"
	snapshotwire "github.com/memcached-operator/memcached-operator/internal/snapshot/wire"
)

// Observation is what the engine reads of one transfer.
type Observation struct {
	// Object is the MemcachedBackup or MemcachedRestore.
	Object client.Object
	// Memcached whose items are copied or restored, as Observer.Memcached returns it; nil when there is none of that name.
	Memcached *v1beta1.Memcached
	// Services with the labels of the Memcached. They are read until the transfer has a Job.
	Services []corev1.Service
	// Job that copies or restores.
	Job JobObservation
	// Options for Jobs.
	Options Options
	// Now is when it was read.
	Now time.Time
}

// JobObservation is what was read of the one Job that an object has for a purpose.
type JobObservation struct {
	// Name that the Job has or will have.
	Name string
	// Job, or nil.
	Job *batchv1.Job
	// Foreign is true when a Job of that name has another owner.
	Foreign bool
	// Pods of it, the newest first.
	Pods []corev1.Pod
	// Progress that its pod reported, or nil.
	Progress *snapshotwire.Progress
	// Rejection is why the API server rejects the pod of a Job that has none, or nil.
	Rejection error
	// Now is when it was read.
	Now time.Time
}

// Common implements Transfer for observations that embed this one.
func (obs Observation) Common() Observation { return obs }

// LastStatus returns the status that was read.
func (obs Observation) LastStatus() Status { return transferOf(obs.Object).status }

// Observer makes all reads.
type Observer struct {
	// Cache contains the operator's own objects; API is the API server.
	Cache, API client.Reader
	Progress   ProgressClient
	Clock      clock.PassiveClock
	rehearse   func(context.Context, *batchv1.Job) error
}

// observe reads what every kind of transfer needs. The cache may not contain a new
// Memcached yet, nor the Job of a transfer that has started.
func (r Observer) observe(ctx context.Context, o client.Object, options Options) (Observation, error) {
	obs := Observation{Object: o, Options: options, Now: r.Clock.Now()}
	t := transferOf(o)
	var err error
	expected := t.status.Phase == v1beta1.TransferRunning || o.GetDeletionTimestamp() != nil
	if obs.Job, err = r.ObserveJob(ctx, t.prefix, o, expected, obs.Now); err != nil {
		return obs, err
	}
	readers := []client.Reader{r.Cache}
	if !t.status.IsFinished() {
		readers = append(readers, r.API)
	}
	obs.Memcached, err = r.Memcached(ctx, o, readers...)
	if err == nil && t.isWaiting() {
		obs.Services, err = servicesOf(ctx, r.Cache, o.GetNamespace(), t.memcached)
	}
	return obs, err
}

// Memcached reads that of a transfer; nil when there is none of that name. Until the transfer has a Job, its TLS and its users are those
// that all of its pods have: a spec that is paused, rejected, or waits for a window, has others. While the pods differ, as during an
// update or after one that was paused, they are those of the spec, and a shard with others can be unreachable.
func (r Observer) Memcached(ctx context.Context, o client.Object, readers ...client.Reader) (*v1beta1.Memcached, error) {
	t, m := transferOf(o), &v1beta1.Memcached{}
	found, err := apiserver.Find(ctx, client.ObjectKey{Namespace: o.GetNamespace(), Name: t.memcached}, m, readers...)
	switch {
	case err != nil || !found:
		return nil, err
	case !t.isWaiting():
		return m, nil
	}
	var pods corev1.PodList
	if err := r.Cache.List(ctx, &pods, client.InNamespace(m.Namespace), client.MatchingLabels(resources.Labels(m.Name)),
		client.MatchingFields{index.Instance: m.Name}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the pods of Memcached %s: %w", m.Name, err)
	}
	var has *v1beta1.MemcachedSpec
	for i := range pods.Items {
		if podresult.IsFinished(&pods.Items[i]) { // Kubernetes keeps an evicted one, with the revision of that time
			continue
		}
		pod, err := resources.ParsePodRevision(pods.Items[i].Annotations[annotations.Spec])
		if err != nil || has != nil && (has.TLS != pod.Spec.TLS || has.Auth != pod.Spec.Auth) {
			return m, nil //nolint:nilerr // it isn't a pod of the operator
		}
		has = &pod.Spec
	}
	if has != nil {
		m.Spec.TLS, m.Spec.Auth = has.TLS, has.Auth
	}
	return m, nil
}

// servicesOf reads the Services with the labels of a Memcached. They are the cache's own.
func servicesOf(ctx context.Context, cache client.Reader, namespace, memcached string) ([]corev1.Service, error) {
	var services corev1.ServiceList
	err := cache.List(ctx, &services, client.InNamespace(namespace), client.MatchingLabels(resources.Labels(memcached)),
		client.MatchingFields{index.Instance: memcached}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("listing the Services of Memcached %s: %w", memcached, err)
	}
	return services.Items, nil
}

// ObserveJob reads an object's Job. Where one is expected, it reads from the API server
// what the cache, which may lag behind, lacks.
func (r Observer) ObserveJob(ctx context.Context, prefix Prefix, owner client.Object, expected bool, now time.Time) (JobObservation, error) {
	obs := JobObservation{Name: JobName(prefix, owner.GetUID()), Now: now}
	readers := []client.Reader{r.Cache}
	if expected {
		readers = append(readers, r.API)
	}
	job := &batchv1.Job{}
	switch found, err := apiserver.Find(ctx, client.ObjectKey{Namespace: owner.GetNamespace(), Name: obs.Name}, job, readers...); {
	case err != nil || !found:
		return obs, err
	case !metav1.IsControlledBy(job, owner):
		obs.Foreign = true
		return obs, nil
	}
	obs.Job = job
	if !expected {
		return obs, nil
	}
	var err error
	if obs.Pods, err = podsOf(ctx, r.Cache, job, client.MatchingFields{index.Instance: job.Name}); err != nil {
		return obs, err
	}
	if len(obs.Pods) == 0 && !isFinished(job) && job.DeletionTimestamp == nil {
		complete := &batchv1.Job{} // the cache omits the pod's template
		if found, err := apiserver.Find(ctx, client.ObjectKeyFromObject(job), complete, r.API); err != nil || !found {
			return obs, err
		}
		obs.Rejection = r.rehearse(ctx, complete)
	}
	if isFinished(job) && outcomeOf(obs.Pods) == nil {
		obs.Pods, err = podsOf(ctx, r.API, job)
		return obs, err
	}
	if pod := obs.newestPod(); pod != nil && !isFinished(job) && podresult.Of(pod, Container) == podresult.Running && pod.Status.PodIP != "" {
		ctx, cancel := context.WithTimeout(ctx, podhttp.ReconcileWait)
		defer cancel()
		// A pod that does not answer, as behind a NetworkPolicy, has no progress to report.
		if progress, err := r.Progress.Progress(ctx, pod.Status.PodIP); err == nil && progress.TaskID == string(owner.GetUID()) {
			obs.Progress = new(boundedProgress(progress))
		}
	}
	return obs, nil
}

func podsOf(ctx context.Context, from client.Reader, job *batchv1.Job, options ...client.ListOption) ([]corev1.Pod, error) {
	var pods corev1.PodList
	options = append(options, client.InNamespace(job.Namespace), client.MatchingLabels{batchv1.JobNameLabel: job.Name})
	if err := from.List(ctx, &pods, options...); err != nil {
		return nil, fmt.Errorf("listing the pods of Job %s: %w", job.Name, err)
	}
	own := slices.DeleteFunc(pods.Items, func(p corev1.Pod) bool { return !metav1.IsControlledBy(&p, job) })
	slices.SortFunc(own, func(a, b corev1.Pod) int {
		return cmp.Or(b.CreationTimestamp.Compare(a.CreationTimestamp.Time), finishedAt(&b).Compare(finishedAt(&a)), cmp.Compare(a.Name, b.Name))
	})
	return own, nil
}

// finishedAt returns when a pod's container terminated; one that has not is the newest.
func finishedAt(pod *corev1.Pod) time.Time {
	if t := podresult.Terminated(pod, Container); t != nil {
		return t.FinishedAt.Time
	}
	return time.Unix(1<<40, 0)
}

func (obs JobObservation) newestPod() *corev1.Pod {
	if len(obs.Pods) == 0 {
		return nil
	}
	return &obs.Pods[0]
}

// outcomeOf returns what the newest pod reported when it terminated, or nil.
func outcomeOf(pods []corev1.Pod) *snapshotwire.Outcome {
	if len(pods) == 0 {
		return nil
	}
	var o snapshotwire.Outcome
	if t := podresult.Terminated(&pods[0], Container); t == nil || json.Unmarshal([]byte(t.Message), &o) != nil || o.Reason == "" {
		return nil
	}
	return new(boundedOutcome(o))
}

// maxCount bounds what a Job's pod reports, which may run any program.
const maxCount = 1 << 53

func bounded[T int | int64](n, limit T) T { return min(max(n, 0), limit) }

func boundedProgress(p snapshotwire.Progress) snapshotwire.Progress {
	for _, n := range []*int64{&p.Items, &p.TotalItems, &p.Bytes, &p.ItemsPerSecond} {
		*n = bounded(*n, maxCount)
	}
	return p
}

func boundedOutcome(o snapshotwire.Outcome) snapshotwire.Outcome {
	all := []*int64{&o.Items, &o.TotalItems, &o.Bytes, &o.ItemsPerSecond, &o.Restored, &o.Kept, &o.Expired, &o.Rejected}
	if s := o.Snapshot; s != nil {
		s.Shards, s.FormatVersion = bounded(s.Shards, math.MaxInt32), bounded(s.FormatVersion, math.MaxInt32)
		all = append(all, &s.Items, &s.Bytes, &s.StoredBytes)
	}
	for _, n := range all {
		*n = bounded(*n, maxCount)
	}
	return o
}

func jobCondition(job *batchv1.Job, kind batchv1.JobConditionType) (batchv1.JobCondition, bool) {
	for _, c := range job.Status.Conditions {
		if c.Type == kind && c.Status == corev1.ConditionTrue {
			return c, true
		}
	}
	return batchv1.JobCondition{}, false
}

func isFinished(job *batchv1.Job) bool {
	_, complete := jobCondition(job, batchv1.JobComplete)
	_, failed := jobCondition(job, batchv1.JobFailed)
	return complete || failed
}

// ProgressClient reads the progress of a Job from its pod.
type ProgressClient interface {
	Progress(ctx context.Context, podIP string) (snapshotwire.Progress, error)
}

// HTTPProgress is a ProgressClient over the network.
type HTTPProgress struct{}

// Progress returns what a Job's pod reports.
func (HTTPProgress) Progress(ctx context.Context, podIP string) (snapshotwire.Progress, error) {
	return podhttp.Get[snapshotwire.Progress](ctx, net.JoinHostPort(podIP, strconv.Itoa(snapshotwire.Port)), snapshotwire.ProgressPath)
}
