package snapshotjob

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/internal/index"
	"github.com/memcached-operator/memcached-operator/internal/snapshotapi"
)

// Observer reads what there is of a Job.
type Observer struct {
	// Cache holds the Jobs and pods that bear the operator's label.
	Cache client.Reader
	// Live reads from the API server.
	Live client.Reader
	// Progress is asked of the Job's pod.
	Progress Asker
}

// Observed is what was seen of the one Job that an object has for a purpose.
type Observed struct {
	// Name that the Job has or will have.
	Name string
	// Job, or nil.
	Job *batchv1.Job
	// Foreign says that a Job of that name is not the object's.
	Foreign bool
	// Pods of it, the newest first.
	Pods []corev1.Pod
	// Progress that the pod told, or nil.
	Progress *snapshotapi.Progress
	// Now is when it was seen.
	Now time.Time
}

// Observe reads an object's Job. Where one is expected, and where its end is to be
// read, the API server's word counts, and not the cache's, which may lag behind.
func (o Observer) Observe(ctx context.Context, prefix Prefix, owner client.Object, expected bool, now time.Time) (Observed, error) {
	seen := Observed{Name: Name(prefix, owner.GetUID()), Now: now}
	key := client.ObjectKey{Namespace: owner.GetNamespace(), Name: seen.Name}
	job := &batchv1.Job{}
	err := o.Cache.Get(ctx, key, job)
	if apierrors.IsNotFound(err) && expected {
		err = o.Live.Get(ctx, key, job)
	}
	switch {
	case apierrors.IsNotFound(err):
		return seen, nil
	case err != nil:
		return seen, fmt.Errorf("looking up Job %s: %w", key.Name, err)
	case !metav1.IsControlledBy(job, owner):
		seen.Foreign = true
		return seen, nil
	}
	seen.Job = job
	if !expected {
		return seen, nil
	}
	if seen.Pods, err = podsOf(ctx, o.Cache, job); err != nil {
		return seen, err
	}
	if isFinished(job) && outcomeOf(seen.Pods) == nil {
		if seen.Pods, err = podsOf(ctx, o.Live, job); err != nil {
			return seen, err
		}
	}
	if pod := seen.newest(); pod != nil && !isFinished(job) && pod.Status.Phase == corev1.PodRunning && pod.Status.PodIP != "" {
		// A pod that does not answer, as behind a network policy, is one without progress.
		if progress, err := o.Progress.Progress(ctx, pod.Status.PodIP); err == nil && progress.TaskID == string(owner.GetUID()) {
			seen.Progress = &progress
		}
	}
	return seen, nil
}

// Trim leaves out of a Job what is not read: what its pod is made of.
func Trim(o client.Object) {
	if job, ok := o.(*batchv1.Job); ok {
		job.Spec.Template = corev1.PodTemplateSpec{}
	}
}

// podsOf returns the pods of a Job, the newest first.
func podsOf(ctx context.Context, from client.Reader, job *batchv1.Job) ([]corev1.Pod, error) {
	var pods corev1.PodList
	if err := from.List(ctx, &pods, client.InNamespace(job.Namespace), client.MatchingLabels{batchv1.JobNameLabel: job.Name}, index.By(index.Instance, job.Name)); err != nil {
		return nil, fmt.Errorf("listing the pods of Job %s: %w", job.Name, err)
	}
	own := slices.DeleteFunc(pods.Items, func(p corev1.Pod) bool { return !metav1.IsControlledBy(&p, job) })
	slices.SortFunc(own, func(a, b corev1.Pod) int {
		if d := b.CreationTimestamp.Compare(a.CreationTimestamp.Time); d != 0 {
			return d
		}
		if d := endOf(&b).Compare(endOf(&a)); d != 0 {
			return d
		}
		return strings.Compare(a.Name, b.Name)
	})
	return own, nil
}

// endOf returns when a pod's container ended; one that has not is the newest.
func endOf(pod *corev1.Pod) time.Time {
	if t := terminated(pod); t != nil {
		return t.FinishedAt.Time
	}
	return time.Unix(1<<40, 0)
}

// newest returns the pod that was made last, or nil.
func (s Observed) newest() *corev1.Pod {
	if len(s.Pods) == 0 {
		return nil
	}
	return &s.Pods[0]
}

// terminated returns how the container of a pod ended, or nil.
func terminated(pod *corev1.Pod) *corev1.ContainerStateTerminated {
	for _, c := range pod.Status.ContainerStatuses {
		if c.Name == Container {
			return c.State.Terminated
		}
	}
	return nil
}

// outcomeOf returns what the newest pod told when it ended, or nil.
func outcomeOf(pods []corev1.Pod) *snapshotapi.Outcome {
	if len(pods) == 0 {
		return nil
	}
	var o snapshotapi.Outcome
	if t := terminated(&pods[0]); t == nil || json.Unmarshal([]byte(t.Message), &o) != nil || o.Reason == "" {
		return nil
	}
	return &o
}

// jobCondition returns whether a Job has a condition, and the condition.
func jobCondition(job *batchv1.Job, kind batchv1.JobConditionType) (batchv1.JobCondition, bool) {
	for _, c := range job.Status.Conditions {
		if c.Type == kind && c.Status == corev1.ConditionTrue {
			return c, true
		}
	}
	return batchv1.JobCondition{}, false
}

// isFinished says whether a Job has come to its end.
func isFinished(job *batchv1.Job) bool {
	_, complete := jobCondition(job, batchv1.JobComplete)
	_, failed := jobCondition(job, batchv1.JobFailed)
	return complete || failed
}

// Asker asks the pod of a Job how far it is.
type Asker interface {
	Progress(ctx context.Context, podIP string) (snapshotapi.Progress, error)
}

// askTimeout bounds a question: a pod that does not answer holds nothing up.
const askTimeout = 2 * time.Second

// HTTP asks over the network.
type HTTP struct {
	client *http.Client
	port   string
}

// NewHTTP returns an Asker over the network.
func NewHTTP() HTTP {
	// Pods are asked directly, also where the way to the outside is a proxy.
	return HTTP{&http.Client{Timeout: askTimeout, Transport: &http.Transport{DisableKeepAlives: true}}, strconv.Itoa(snapshotapi.Port)}
}

// Progress returns the answer of a Job's pod.
func (h HTTP) Progress(ctx context.Context, podIP string) (snapshotapi.Progress, error) {
	var progress snapshotapi.Progress
	url := "http://" + net.JoinHostPort(podIP, h.port) + "/progress"
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return progress, err
	}
	response, err := h.client.Do(request)
	if err != nil {
		return progress, fmt.Errorf("asking for the progress: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return progress, fmt.Errorf("asking for the progress: %s answered %s", url, response.Status)
	}
	if err := json.NewDecoder(io.LimitReader(response.Body, 64<<10)).Decode(&progress); err != nil {
		return progress, fmt.Errorf("reading the progress: %w", err)
	}
	return progress, nil
}
