package memcached

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	networkingv1ac "k8s.io/client-go/applyconfigurations/networking/v1"
	policyv1ac "k8s.io/client-go/applyconfigurations/policy/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/manifests"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/rollout"
)

// applied is what came of the writes.
type applied struct {
	// made are the objects that were written, and are there now.
	made map[manifests.Key]bool
	// refusals are answers of the API server that no further try will change.
	refusals []error
	// failures are errors that a further try may mend.
	failures []error
	// unmade are the names of what other controllers are to do and could not be made
	// yet; another try may.
	unmade map[string]bool
	// outrun: something changed while it was looked at, so it was not written to.
	outrun bool
	// isOver: the Memcached goes, with its namespace or now that nothing holds it, and
	// there is nothing left to do or to tell.
	isOver bool
}

// retry returns the error for which to reconcile again, if any.
func (a applied) retry() error { return errors.Join(a.failures...) }

// apply makes the plan's writes, in its order. One write that fails does not keep
// the others from being tried: a shard does not wait for another's trouble. What
// disturbs a shard is not done for a spec that is not the newest.
func (r *Reconciler) apply(ctx context.Context, p plan) applied {
	a := applied{made: map[manifests.Key]bool{}, unmade: map[string]bool{}}
	if p.disturbs() {
		switch isNewest, err := r.isNewest(ctx, p.deletion.memcached); {
		case err != nil:
			a.failures = append(a.failures, err)
			return a
		case !isNewest:
			a.outrun = true
			return a
		}
	}
	if r.settleDeletion(ctx, p.deletion, &a) {
		return applied{isOver: true}
	}
	for _, o := range p.applies {
		err := r.Client.Apply(ctx, onlyTo(o.Apply, p.uids[o.Key], p.versions[o.Key]), client.FieldOwner(v1alpha1.ManagedByValue), client.ForceOwnership)
		if apierrors.IsConflict(err) || isAnother(err) {
			a.outrun = true
			continue
		}
		if a.add(o.Key, err); apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
			return applied{isOver: true}
		}
		a.made[o.Key] = err == nil
	}
	for _, patch := range p.patches {
		err := r.patch(ctx, patch)
		if apierrors.IsConflict(err) {
			a.outrun = true
			continue
		}
		a.add(manifests.Key{Kind: manifests.KindPod, Name: patch.pod.Name}, client.IgnoreNotFound(err))
	}
	r.create(ctx, p, &a)
	for _, o := range p.deletes {
		uid, version := o.GetUID(), o.GetResourceVersion()
		only := client.Preconditions{UID: &uid}
		if key := kindOf(o); key == manifests.KindPod || key == kindRestore {
			only.ResourceVersion = &version // a pod may have come up meanwhile
		}
		err := r.Client.Delete(ctx, o, only, client.PropagationPolicy(metav1.DeletePropagationBackground))
		if apierrors.IsConflict(err) {
			a.outrun = true
			continue
		}
		a.add(manifests.Key{Kind: kindOf(o), Name: o.GetName()}, client.IgnoreNotFound(err))
	}
	return a
}

// disturbs says whether the plan restarts or ends what serves.
func (p plan) disturbs() bool {
	switch p.decision.Step {
	case rollout.StepChange, rollout.StepSurge, rollout.StepRetire, rollout.StepRemake:
		return true
	}
	return slices.ContainsFunc(p.deletes, func(o client.Object) bool {
		return kindOf(o) == manifests.KindReplicaSet || kindOf(o) == manifests.KindService
	})
}

// isNewest says whether the spec that was read is the API server's still. An operator
// that has just started may read what an API server that lags behind has for it: an
// older spec, of fewer shards.
func (r *Reconciler) isNewest(ctx context.Context, m *v1alpha1.Memcached) (bool, error) {
	newest := &v1alpha1.Memcached{}
	err := r.Live.Get(ctx, client.ObjectKeyFromObject(m), newest)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("looking up the Memcached again: %w", err)
	}
	return err == nil && newest.UID == m.UID && newest.Generation == m.Generation, nil
}

// patch writes one change of a pod.
func (r *Reconciler) patch(ctx context.Context, p podPatch) error {
	pod, raw := p.pod.DeepCopy(), client.RawPatch(types.StrategicMergePatchType, p.bytes())
	if p.subresource != "" {
		return r.Client.SubResource(p.subresource).Patch(ctx, pod, raw, client.FieldOwner(v1alpha1.ManagedByValue))
	}
	return r.Client.Patch(ctx, pod, raw, client.FieldOwner(v1alpha1.ManagedByValue))
}

// add notes what came of a write.
func (a *applied) add(key manifests.Key, err error) {
	switch {
	case err == nil:
	case isRefusal(err):
		a.refusals = append(a.refusals, fmt.Errorf("%s: %w", key, err))
	default:
		a.failures = append(a.failures, fmt.Errorf("writing %s: %w", key, err))
	}
}

// isRefusal says whether no further try will change an answer. Of a list that has two
// entries of one key, such as two topologySpreadConstraints, the API server says so in
// words alone.
func isRefusal(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || err != nil && strings.Contains(err.Error(), "failed to create typed patch object")
}

// isAnother says whether a write was refused because another object has taken the
// name since it was looked up: the next look finds it.
func isAnother(err error) bool {
	cause, ok := apierrors.StatusCause(err, metav1.CauseTypeFieldValueInvalid)
	return ok && cause.Field == "metadata.uid"
}

// onlyTo has the API server refuse the write unless the object is still the one that
// was seen and, with a version, as it was seen. Without a uid it is for a name that
// was free.
func onlyTo(o runtime.ApplyConfiguration, uid types.UID, version string) runtime.ApplyConfiguration {
	if uid == "" {
		return o
	}
	switch o := o.(type) {
	case *appsv1ac.ReplicaSetApplyConfiguration:
		return o.WithUID(uid).WithResourceVersion(version)
	case *corev1ac.ServiceApplyConfiguration:
		return o.WithUID(uid)
	case *policyv1ac.PodDisruptionBudgetApplyConfiguration:
		return o.WithUID(uid)
	case *networkingv1ac.NetworkPolicyApplyConfiguration:
		return o.WithUID(uid)
	default:
		return o
	}
}

// kindOf returns the kind of an object that a plan makes or ends.
func kindOf(o client.Object) manifests.Kind {
	switch o.(type) {
	case *corev1.Service:
		return manifests.KindService
	case *corev1.Pod:
		return manifests.KindPod
	case *v1alpha1.MemcachedRestore:
		return kindRestore
	case *v1alpha1.MemcachedBackup:
		return kindBackup
	default:
		return manifests.KindReplicaSet
	}
}
