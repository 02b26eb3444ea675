package transfer

import (
	"context"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/apiserver"
)

// finishedJobTTL is how long, in seconds, a Job and its log stay after the status
// contains its result.
const finishedJobTTL = 600

// endPodGrace is how long, in seconds, a container may take to stop that keeps the pod of one which has failed: that of a save has time to
// delete what it wrote, and it did.
const endPodGrace = 30

// writer makes all writes but that of the status.
type writer struct{ client client.Writer }

// changeMetadata adds or removes the finalizer, and records what the operator must remember.
func (w writer) changeMetadata(ctx context.Context, obs Observation, p Plan) error {
	o, was := obs.Object, obs.LastStatus()
	before, change := o.DeepCopyObject().(client.Object), p.Actions.Finalizer
	finishes := p.Status.IsFinished() && !was.IsFinished()
	switch change {
	case AddFinalizer:
		controllerutil.AddFinalizer(o, v1beta1.FinalizerSnapshot)
	case RemoveFinalizer:
		controllerutil.RemoveFinalizer(o, v1beta1.FinalizerSnapshot)
	}
	switch {
	case finishes || change == AddFinalizer:
		setRecord(o, obs.Memcached, p.Status)
	case change == KeepFinalizer:
		return nil
	}
	return apiserver.WriteMetadata(ctx, w.client, before, o)
}

// apply makes the writes about Jobs.
func (w writer) apply(ctx context.Context, obs Observation, a Actions) error {
	if a.Create != nil {
		if err := w.create(ctx, obs, a.Create); err != nil {
			return err
		}
	}
	if a.EndPod != nil {
		log.FromContext(ctx).Info("Deleting the pod whose container has failed", "pod", a.EndPod.Name)
		if err := apiserver.Delete(ctx, w.client, a.EndPod, client.GracePeriodSeconds(endPodGrace)); err != nil {
			return err
		}
	}
	job := obs.Job.Job
	switch a.Job {
	case DeleteJob:
		log.FromContext(ctx).Info("Deleting the Job", "job", job.Name)
		return apiserver.Delete(ctx, w.client, job, client.PropagationPolicy(metav1.DeletePropagationForeground))
	case ExpireJob:
		patch := fmt.Appendf(nil, `{"metadata":{"uid":%q},"spec":{"ttlSecondsAfterFinished":%d}}`, job.UID, finishedJobTTL)
		err := w.client.Patch(ctx, job.DeepCopy(), client.RawPatch(types.MergePatchType, patch), client.FieldOwner(v1beta1.ManagedByValue))
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return fmt.Errorf("letting Job %s expire: %w", job.Name, err)
		}
	}
	return nil
}

// rehearse returns why the API server rejects the pod of a Job, which it says only to the Job controller.
func (w writer) rehearse(ctx context.Context, job *batchv1.Job) error {
	pod := &corev1.Pod{ObjectMeta: *job.Spec.Template.ObjectMeta.DeepCopy(), Spec: *job.Spec.Template.Spec.DeepCopy()}
	pod.Namespace, pod.GenerateName = job.Namespace, job.Name+"-"
	if err := w.client.Create(ctx, pod, client.DryRunAll); apiserver.IsRejected(err) && !apiserver.IsTerminating(err) {
		return err
	}
	return nil
}

// create creates a Job and its network policy, which the Job doesn't need to do its work.
func (w writer) create(ctx context.Context, obs Observation, job *batchv1.Job) error {
	if err := apiserver.Create(ctx, w.client, job); err != nil {
		return err
	}
	if job.UID == "" || !obs.hasNetworkPolicy() { // without a UID, it existed already
		return nil
	}
	if err := apiserver.Create(ctx, w.client, obs.Options.networkPolicy(job)); err != nil {
		log.FromContext(ctx).Error(err, "The Job has no NetworkPolicy", "job", job.Name)
	}
	return nil
}
