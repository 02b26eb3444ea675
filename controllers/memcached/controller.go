package memcached

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/apiserver"
	"github.com/memcached-operator/memcached-operator/controllers/event"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/observation"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/plan"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/rollout"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/shard"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/status"
)

// Reconcile reads a Memcached and everything that belongs to it, plans, writes, and reports
// the status. It returns an error when a retry may help.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	m := &v1beta1.Memcached{}
	if err := r.Client.Get(ctx, request.NamespacedName, m); err != nil {
		r.memories.forget(request.NamespacedName)
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	remembered, known := r.memories.get(request.NamespacedName)
	if !known { // from then on, the cache contains nothing older
		if err := apiserver.EnsureFresh(ctx, r.APIReader, m); err != nil {
			return apiserver.Result(0, err)
		}
	}
	if remembered.replaced.isOf(m, r.Clock.Now()) {
		return ctrl.Result{RequeueAfter: apiserver.StaleRequeue}, nil
	}
	obs, err := r.observer().observe(ctx, m, remembered.Memory)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("observing: %w", err)
	}
	version := m.ResourceVersion

	p, err := r.rehearse(ctx, obs, plan.Make(obs, r.Options))
	logPlan(ctx, m, p)
	res := r.apply(ctx, m, p)
	if p.Rehearsal != nil {
		add(&res, resources.Key{Kind: resources.KindPod, Name: p.Rehearsal.Pod.Name}, client.IgnoreNotFound(err))
	}
	if res.Gone {
		r.record(m, res.Events)
		return ctrl.Result{}, nil
	}
	after, err := r.report(ctx, m, obs, p, res)
	if err != nil {
		return ctrl.Result{}, err
	}
	if res.BindingAnswered {
		p.Memory.BindingTriedAt = obs.Now
	}
	r.memories.set(request.NamespacedName, memory{p.Memory, remembered.replaced.next(version, m, r.Clock.Now())})
	if err := res.Retry(); err != nil {
		return ctrl.Result{}, err
	}
	if res.Conflict {
		after = plan.Soonest(after, apiserver.StaleRequeue)
	}
	if len(res.Rejections) > 0 {
		after = plan.Soonest(after, apiserver.RejectionRecheck)
	}
	return ctrl.Result{RequeueAfter: plan.Soonest(after, p.Actions.RequeueAfter)}, nil
}

// rehearse makes a patch of a plan as a dry run. Unless the pod would get the image that was checked, instead of the one that it has, it
// plans again with this knowledge.
func (r *Reconciler) rehearse(ctx context.Context, obs *observation.Observation, p plan.Plan) (plan.Plan, error) {
	if p.Rehearsal == nil {
		return p, nil
	}
	before, checked := p.Rehearsal.Pod, p.Rehearsal.Image
	pod, err := writer{r.Client}.patch(ctx, p.Rehearsal.PodPatch, client.DryRunAll)
	switch image := resources.ImageOf(pod); {
	case err != nil:
		obs.RehearsalFailed = true
	case image == checked && image != resources.ImageOf(before):
		return p, nil
	default:
		obs.NoteAdmitted(before.UID, shard.AdmittedImage{Revision: obs.UpdateRevision.Hash(), Image: image, Checked: checked})
	}
	return plan.Make(obs, r.Options), err
}

// apply makes a plan's writes if they are confirmed.
func (r *Reconciler) apply(ctx context.Context, m *v1beta1.Memcached, p plan.Plan) plan.Result {
	confirmed, err := r.confirm(ctx, m, p)
	switch {
	case err != nil:
		return plan.Result{Failures: []error{err}}
	case !confirmed:
		return plan.Result{Conflict: true}
	default:
		return writer{r.Client}.apply(ctx, m, p.Actions)
	}
}

// confirm reads from the API server what a disruptive plan depends on. Nothing that serves is changed for a spec that is not the
// latest, and no shard is replaced into which a restore writes. A restore says Running and then reads the status of the Memcached
// from the API server, so that neither misses the other.
func (r *Reconciler) confirm(ctx context.Context, m *v1beta1.Memcached, p plan.Plan) (bool, error) {
	if !p.IsDisruptive() {
		return true, nil
	}
	current, err := r.observer().specIsCurrent(ctx, m)
	if err != nil || !current || !p.BeginsReplacement() {
		return current, err
	}
	restoring, err := r.observer().restoreIsActive(ctx, m)
	return !restoring, err
}

// report writes the status and then records the events. It returns when to reconcile again
// because another writer has changed the status; 0 is never.
func (r *Reconciler) report(ctx context.Context, m *v1beta1.Memcached, obs *observation.Observation, p plan.Plan, res plan.Result) (time.Duration, error) {
	previous, next := m.Status, status.Make(obs, p, res, r.Clock.Now())
	written, err := apiserver.WriteStatus(ctx, r.Client, m, previous, next, func() { m.Status = next })
	switch {
	case errors.Is(err, apiserver.ErrStale):
		return apiserver.StaleRequeue, nil // a watch triggers earlier, mostly
	case err != nil:
		return 0, err
	case written:
		r.record(m, status.Events(previous, next, obs, p, res))
	}
	return 0, nil
}

// record records events, those of shards with their pods: of events that differ only in
// their message, Kubernetes keeps the first.
func (r *Reconciler) record(m *v1beta1.Memcached, events []event.Event) {
	for _, e := range events {
		var related runtime.Object
		if e.Pod != "" {
			related = &corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: m.Namespace, Name: e.Pod}
		}
		r.Recorder.Eventf(m, related, e.Type, e.Reason, "Reconcile", "%s", e.Message)
	}
}

// logPlan logs each decision of the rollout once: its steps, and a gate when the status
// doesn't contain it yet.
func logPlan(ctx context.Context, m *v1beta1.Memcached, p plan.Plan) {
	d, was := p.Decision, m.Status.Update
	isKnown := d.Gate != "" && was != nil && was.Shard == d.Shard && string(was.Gate) == string(d.Gate)
	if d.Done() || d.Step == rollout.StepAwait || isKnown {
		return
	}
	ctrl.LoggerFrom(ctx).Info("Rollout decision", "shard", d.Shard, "step", d.Step, "gate", d.Gate,
		"method", d.Change.Method.String(), "rollingBack", d.RollingBack, "message", d.Message)
}

func (r *Reconciler) observer() observer {
	return observer{cache: r.Client, api: r.APIReader, agents: r.AgentClient, agentWait: r.AgentWait, clock: r.Clock,
		options: r.Options, defaultImageUpdates: r.DefaultImageUpdates}
}
