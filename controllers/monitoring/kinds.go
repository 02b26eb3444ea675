package monitoring

import (
	"context"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/cache"
)

// kinds knows which of the kinds exist, and watches the objects in the namespaces of Memcacheds.
type kinds struct {
	api        discovery.DiscoveryInterface
	watches    metadata.Interface
	namespaces []string
	every      time.Duration
	// used returns the namespaces that have a Memcached.
	used func(context.Context) (sets.Set[string], error)
	// changes are what the controller reconciles: a namespace, or the operator's objects.
	changes chan event.GenericEvent
	// missing receives when the API server didn't know a kind that was found.
	missing chan struct{}

	lock  sync.Mutex
	found map[kind]context.CancelFunc
}

func newKinds(api discovery.DiscoveryInterface, watches metadata.Interface, namespaces []string, every time.Duration, used func(context.Context) (sets.Set[string], error)) *kinds {
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	return &kinds{api: api, watches: watches, namespaces: namespaces, every: every, used: used, changes: make(chan event.GenericEvent), missing: make(chan struct{}, 1), found: map[kind]context.CancelFunc{}}
}

func (k *kinds) has(of kind) bool {
	k.lock.Lock()
	defer k.lock.Unlock()
	return of == configMap && len(k.found) > 0 || k.found[of] != nil
}

// notify has a namespace reconciled; none are the operator's objects.
func (k *kinds) notify(ctx context.Context, namespace string) {
	select {
	case k.changes <- event.GenericEvent{Object: &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: namespace}}}:
	case <-ctx.Done():
	}
}

// notifyUsed has each namespace with a Memcached reconciled, of this one or of all.
func (k *kinds) notifyUsed(ctx context.Context, of string) {
	namespaces, err := k.used(ctx)
	if err != nil {
		log.FromContext(ctx).Error(err, "Finding the namespaces that need monitoring objects failed")
	}
	for namespace := range namespaces {
		if of == metav1.NamespaceAll || of == namespace {
			k.notify(ctx, namespace)
		}
	}
}

// discoverSoon asks again which kinds exist.
func (k *kinds) discoverSoon() {
	select {
	case k.missing <- struct{}{}:
	default:
	}
}

// run asks which kinds exist, at once, from time to time, and when one is missing, until the context is
// done. The objects of the operator have no watch: they are compared from time to time.
func (k *kinds) run(ctx context.Context) error {
	ticker := time.NewTicker(k.every)
	defer ticker.Stop()
	compare := true
	for {
		if err := k.check(ctx, compare); err != nil {
			log.FromContext(ctx).Error(err, "Checking which CRDs of prometheus-operator exist failed. The operator retries", "after", k.every.String())
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			compare = true
		case <-k.missing:
			compare = false
		}
	}
}

// check has the operator's objects reconciled if there is a new kind, or if compare is set.
func (k *kinds) check(ctx context.Context, compare bool) error {
	found, err := k.discover(ctx)
	if err == nil && (found || compare) {
		k.notify(ctx, "")
	}
	return err
}

// discover starts watches of kinds that are new and stops those of deleted kinds. It reports
// whether there is a new one.
func (k *kinds) discover(ctx context.Context) (found bool, _ error) {
	resources, err := k.api.ServerResourcesForGroupVersion(prometheusGroup.String())
	if apierrors.IsNotFound(err) {
		resources, err = &metav1.APIResourceList{}, nil
	}
	if err != nil {
		return false, err
	}
	k.lock.Lock()
	defer k.lock.Unlock()
	for _, of := range []kind{podMonitor, prometheusRule, serviceMonitor} {
		exists := slices.ContainsFunc(resources.APIResources, func(r metav1.APIResource) bool { return r.Name == of.resource.Resource })
		stop := k.found[of]
		switch {
		case exists && stop == nil:
			log.FromContext(ctx).Info("The cluster has a CRD of prometheus-operator", "kind", of.name)
			watching, stop := context.WithCancel(ctx)
			k.found[of], found = stop, true
			if slices.Contains(shardKinds, of) {
				k.watch(watching, of)
			}
		case !exists && stop != nil:
			log.FromContext(ctx).Info("The cluster no longer has a CRD of prometheus-operator", "kind", of.name)
			stop()
			delete(k.found, of)
		}
	}
	return found, nil
}

// watch has the namespaces of our objects of a kind reconciled when these change, until the context
// is done. The first list contains the objects of namespaces without a Memcached, too, and after it those with one are
// reconciled: an object that was deleted before has no event.
func (k *kinds) watch(ctx context.Context, of kind) {
	for _, namespace := range k.namespaces {
		informer := newInformer(k.watches, of, namespace)
		changed := func(o any) {
			if tombstone, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
				o = tombstone.Obj
			}
			if object, ok := o.(metav1.Object); ok {
				k.notify(ctx, object.GetNamespace())
			}
		}
		registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc:    changed,
			UpdateFunc: func(_, o any) { changed(o) },
			DeleteFunc: changed,
		})
		if err != nil {
			return // an informer that hasn't started rejects no handler
		}
		go informer.RunWithContext(ctx)
		go func() {
			select {
			case <-ctx.Done():
			case <-registration.HasSyncedChecker().Done():
				k.notifyUsed(ctx, namespace)
			}
		}()
	}
}

// newInformer returns an informer of the objects of a kind that have our label. Users can set it on
// theirs, which can be large.
func newInformer(watches metadata.Interface, of kind, namespace string) toolscache.SharedIndexInformer {
	objects := watches.Resource(of.resource).Namespace(namespace)
	ours := func(o metav1.ListOptions) metav1.ListOptions {
		o.LabelSelector = v1beta1.LabelManagedBy + "=" + v1beta1.ManagedByValue
		return o
	}
	informer := cache.NewInformer(&toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return objects.List(ctx, ours(o))
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return objects.Watch(ctx, ours(o))
		},
	}, &metav1.PartialObjectMetadata{}, 0, toolscache.Indexers{}, identity)
	_ = informer.SetTransform(identity) // it hasn't started
	return informer
}

// identity keeps of an object what a watch of it needs.
func identity(from any) (any, error) {
	if o, ok := from.(*metav1.PartialObjectMetadata); ok {
		o.ObjectMeta = metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name, UID: o.UID, ResourceVersion: o.ResourceVersion}
	}
	return from, nil
}
