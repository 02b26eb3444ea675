package memcached

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/applycache"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/rollout"
)

// staleRequeue is when to reconcile again after an object has changed since it was read.
const staleRequeue = 100 * time.Millisecond

// Reconcile reads a Memcached and everything that belongs to it, plans, writes, and reports
// the status. It returns an error when a retry may help.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	m := &v1alpha1.Memcached{}
	if err := r.Client.Get(ctx, request.NamespacedName, m); err != nil {
		r.cache.Forget(request.NamespacedName)
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	entry := r.cache.Get(request.NamespacedName)
	if entry.IsStale(m, r.Clock.Now()) {
		return ctrl.Result{RequeueAfter: staleRequeue}, nil
	}
	observer := r.observer()
	observer.failed, observer.secrets = entry.Failed, entry.Secrets
	obs, err := observer.observe(ctx, m)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("observing: %w", err)
	}
	obs.cached = entry.Applied
	version := m.ResourceVersion

	p := makePlan(obs, r.Options)
	logPlan(ctx, m, p)
	res := r.write(ctx, m, p)
	if res.gone {
		r.record(m, res.events)
		return ctrl.Result{}, nil
	}
	after, err := r.report(ctx, m, obs, p, res)
	if err != nil {
		return ctrl.Result{}, err
	}
	if secret := p.actions.Secret; secret != nil && res.applied[keyOf(secret)] {
		p.resources.cached[keyOf(secret)] = applycache.Object{} // it can't be read
	}
	entry.Applied, entry.Failed, entry.Secrets = p.resources.cached, obs.failed, obs.secrets
	for _, key := range res.failed {
		entry.Failed[key] = applycache.Attempt{At: obs.now}
	}
	if m.ResourceVersion != version {
		entry.WrittenVersion, entry.WrittenAt = version, r.Clock.Now()
	}
	r.cache.Set(request.NamespacedName, entry)
	if batchContinues(p.actions.Postponed, res.succeeded, entry.Failed) {
		return ctrl.Result{RequeueAfter: staleRequeue, Priority: new(0)}, nil
	}
	if err := res.retry(); err != nil {
		return ctrl.Result{}, err
	}
	if len(p.actions.Postponed) > 0 {
		after = soonest(after, conflictRecheck)
	}
	if res.conflict {
		after = soonest(after, staleRequeue)
	}
	return ctrl.Result{RequeueAfter: soonest(after, p.actions.RequeueAfter)}, nil
}

// write makes a plan's writes. It changes nothing that serves for a spec that is not the
// latest, and replaces no shard into which a restore writes. A restore says Running and then
// reads the status of the Memcached from the API server, so that neither misses the other.
func (r *Reconciler) write(ctx context.Context, m *v1alpha1.Memcached, p plan) result {
	if p.isDisruptive() {
		current, err := r.observer().specIsCurrent(ctx, m)
		if err != nil {
			return result{failures: []error{err}}
		}
		restoring := false
		if current && p.beginsReplacement() {
			if restoring, err = r.observer().restoreIsActive(ctx, m); err != nil {
				return result{failures: []error{err}}
			}
		}
		if !current || restoring {
			return result{conflict: true}
		}
	}
	return writer{r.Client}.apply(ctx, m, p.actions)
}

// report writes the status and then records the events. It returns when to reconcile again
// to write a status that was deferred, or that another writer has changed; 0 is never.
func (r *Reconciler) report(ctx context.Context, m *v1alpha1.Memcached, obs *observation, p plan, res result) (time.Duration, error) {
	next := makeStatus(obs, p, res, r.Clock.Now())
	if wait := deferStatusUpdate(obs, p, res, next); wait > 0 {
		return wait, nil
	}
	previous, conflict, err := statusWriter{r.Client}.write(ctx, m, next)
	switch {
	case err != nil:
		return 0, err
	case conflict:
		return agentRetryMin, nil // a watch triggers earlier, mostly
	case previous != nil:
		r.record(m, makeEvents(*previous, next, obs, p, res))
	}
	return 0, nil
}

// record records events, those of shards with their pods: of events that differ only in
// their message, Kubernetes keeps the first.
func (r *Reconciler) record(m *v1alpha1.Memcached, events []event) {
	for _, e := range events {
		var related runtime.Object
		if e.pod != "" {
			related = &corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: m.Namespace, Name: e.pod}
		}
		r.Recorder.Eventf(m, related, e.kind, e.reason, "Reconcile", "%s", e.message)
	}
}

// logPlan logs each decision of the rollout once: its steps, and a gate when the status
// doesn't contain it yet.
func logPlan(ctx context.Context, m *v1alpha1.Memcached, p plan) {
	d, was := p.decision, m.Status.Update
	isKnown := d.Gate != "" && was != nil && was.Shard == d.Shard && string(was.Gate) == string(d.Gate)
	if d.Done() || d.Step == rollout.StepAwait || isKnown {
		return
	}
	ctrl.LoggerFrom(ctx).Info("Rollout decision", "shard", d.Shard, "step", d.Step, "gate", d.Gate,
		"method", d.Change.Method.String(), "rollingBack", d.RollingBack, "message", d.Message)
}

func (r *Reconciler) observer() observer {
	return observer{cache: r.Client, api: r.APIReader, agents: r.AgentClient, queries: r.AgentQueries, clock: r.Clock,
		defaultImage: r.Options.DefaultImage, defaultImageUpdates: r.DefaultImageUpdates}
}
