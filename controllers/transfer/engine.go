package transfer

import (
	"context"
	"fmt"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlevent "sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/apiserver"
	"github.com/memcached-operator/memcached-operator/controllers/enqueue"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
	"github.com/memcached-operator/memcached-operator/internal/index"
)

// concurrency is how many transfers of a kind are reconciled at once. A reconcile waits
// for the API server.
const concurrency = 16

// Engine reconciles one kind of transfer.
type Engine struct {
	Client    client.Client // reads from the cache
	APIReader client.Reader
	// Progress reads the progress of a Job from its pod.
	Progress ProgressClient
	Recorder events.EventRecorder
	Options  Options
	Clock    clock.PassiveClock
}

// NewController returns a builder of a controller for the kind of the object.
func (e *Engine) NewController(mgr ctrl.Manager, object client.Object, list client.ObjectList) *builder.Builder {
	t := transferOf(object)
	byAnnotation := enqueue.Named(func(o client.Object) string {
		kind, name, _ := strings.Cut(o.GetAnnotations()[annotations.TransferOf], "/")
		if kind != t.kind {
			return ""
		}
		return name
	})
	return ctrl.NewControllerManagedBy(mgr).
		Named(string(t.prefix)).
		WithOptions(apiserver.ControllerOptions(concurrency)).
		Watches(object, &handler.EnqueueRequestForObject{}, Announced).
		Watches(&batchv1.Job{}, byAnnotation).
		Watches(&corev1.Pod{}, byAnnotation).
		Watches(&v1beta1.Memcached{}, e.EnqueueWaiting(list, index.Memcached, client.Object.GetName), builder.WithPredicates(enqueue.SaysMore)).
		Watches(&corev1.Service{}, e.EnqueueWaiting(list, index.Memcached, func(o client.Object) string { return o.GetLabels()[v1beta1.LabelInstance] }))
}

// Announced selects the updates of transfers with something to do.
var Announced = builder.WithPredicates(predicate.Funcs{UpdateFunc: isAnnounced})

// isAnnounced reports whether a transfer has changed so that there is something to do: what was written to its phase or its
// finalizers announces the next step, and others can wait for the reason of its phase. Its progress changes all the time.
func isAnnounced(e ctrlevent.UpdateEvent) bool {
	was, is := transferOf(e.ObjectOld).status, transferOf(e.ObjectNew).status
	return e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() ||
		!slices.Equal(e.ObjectOld.GetFinalizers(), e.ObjectNew.GetFinalizers()) ||
		was.Phase != is.Phase || was.Reason() != is.Reason()
}

// EnqueueWaiting enqueues the transfers of the list's kind that have no Job yet and that
// an index has under a name that the changed object contains.
func (e *Engine) EnqueueWaiting(list client.ObjectList, field string, nameOf func(client.Object) string) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, changed client.Object) (requests []reconcile.Request) {
		all := list.DeepCopyObject().(client.ObjectList)
		if err := e.Client.List(ctx, all, client.InNamespace(changed.GetNamespace()),
			client.MatchingFields{field: nameOf(changed)}, client.UnsafeDisableDeepCopy); err != nil {
			return nil // from the cache, which does not fail
		}
		_ = meta.EachListItem(all, func(item runtime.Object) error {
			o := item.(client.Object)
			if transferOf(o).isWaiting() {
				requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(o)})
			}
			return nil
		})
		return requests
	})
}

// Reconcile reconciles one transfer. observe reads what only its kind needs. What the API server rejects is planned once
// more, with the reason.
func Reconcile[T Transfer](ctx context.Context, e *Engine, request ctrl.Request, object client.Object, observe func(context.Context, Observer, Observation) (T, error)) (ctrl.Result, error) {
	if err := e.Client.Get(ctx, request.NamespacedName, object); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if status, ok := recorded(object, e.Clock.Now()); ok {
		_, err := e.writeStatus(ctx, object, status)
		return apiserver.Result(0, err)
	}
	observer := e.observer()
	common, err := observer.observe(ctx, object, e.Options)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("observing: %w", err)
	}
	t, err := observe(ctx, observer, common)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("observing: %w", err)
	}
	p := t.Plan(nil)
	if job := p.Actions.Create; job != nil && (writer{e.Client}).rehearse(ctx, job) != nil {
		// A policy may treat the Job controller otherwise, so that the Job is created in any case.
		common.Options.AsShard = true
		if t, err = observe(ctx, observer, common); err != nil {
			return ctrl.Result{}, fmt.Errorf("observing: %w", err)
		}
		p = t.Plan(nil)
	}
	err = e.write(ctx, t.Common(), p)
	if apiserver.IsRejected(err) {
		p = t.Plan(err)
		err = e.write(ctx, t.Common(), p)
	}
	return apiserver.Result(p.Actions.RequeueAfter, err)
}

func (e *Engine) observer() Observer {
	return Observer{Cache: e.Client, API: e.APIReader, Progress: e.Progress, Clock: e.Clock, rehearse: writer{e.Client}.rehearse}
}

// write writes the metadata, then the status, which announces the actions, then records the events, and then makes the
// writes of the actions.
func (e *Engine) write(ctx context.Context, obs Observation, p Plan) error {
	was := obs.LastStatus()
	if err := (writer{e.Client}).changeMetadata(ctx, obs, p); err != nil {
		return err
	}
	announced, err := e.writeStatus(ctx, obs.Object, p.Status)
	if err != nil {
		return err
	}
	if announced || p.Actions.Finalizer != KeepFinalizer {
		e.record(ctx, obs, was, p)
	}
	if p.Actions.Create != nil {
		// A status from the cache may be older than the one that says how the transfer finished.
		if err := apiserver.EnsureFresh(ctx, e.APIReader, obs.Object); err != nil {
			return err
		}
	}
	return writer{e.Client}.apply(ctx, obs, p.Actions)
}

func (e *Engine) writeStatus(ctx context.Context, o client.Object, s Status) (bool, error) {
	return apiserver.WriteStatus(ctx, e.Client, o, transferOf(o).status, s, func() { setStatus(o, s) })
}

// record logs the decision and records its events, also on the Memcached.
func (e *Engine) record(ctx context.Context, obs Observation, was Status, p Plan) {
	o, prefix := obs.Object, transferOf(obs.Object).prefix
	if was.Phase != p.Status.Phase || was.Reason() != p.Status.Reason() || p.Actions.Finalizer != KeepFinalizer || len(p.Events) > 0 {
		log.FromContext(ctx).Info("Updated the "+string(prefix), "phase", p.Status.Phase, "reason", p.Status.Reason(),
			"message", p.Status.Message(), "finalizers", o.GetFinalizers())
	}
	for _, event := range p.Events {
		e.Recorder.Eventf(o, nil, event.Type, event.Reason, "Reconcile", "%s", event.Message)
		if obs.Memcached != nil {
			e.Recorder.Eventf(obs.Memcached, o, event.Type, event.Reason, "Reconcile", "%s %s: %s", prefix, o.GetName(), event.Message)
		}
	}
}
