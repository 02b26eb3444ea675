package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/test/internal/audit"
)

// shards of each Memcached.
const shards = 3

// parallelRequests of this bench about Memcacheds.
const parallelRequests = 32

// fleet is the Memcacheds of a run.
type fleet struct {
	client client.Client
	// size is the number of Memcacheds.
	size, namespaces int

	lock sync.Mutex
	seen map[string]*v1alpha1.Memcached
}

// nameOf returns the name of a Memcached. It has no dash, so that memcachedOf finds it in the names of its objects.
func nameOf(number int) string { return fmt.Sprintf("m%05d", number) }

// numberOf returns the number in a name of nameOf, and 0 for other names.
func numberOf(name string) int {
	number, err := strconv.Atoi(strings.TrimPrefix(name, "m"))
	if err != nil {
		return 0
	}
	return number
}

// memcachedOf returns the name of the Memcached to which the object of a request belongs. The name of an event begins
// with that of its object.
func memcachedOf(r audit.Request) string {
	name, _, _ := strings.Cut(r.Name, "-")
	name, _, _ = strings.Cut(name, ".")
	return name
}

func (f *fleet) namespaceOf(number int) string { return fmt.Sprintf("bench-%d", number%f.namespaces) }

// newFleet creates the namespaces and watches Memcacheds until ctx ends.
func newFleet(ctx context.Context, c client.Client, config *rest.Config, size, namespaces int) (*fleet, error) {
	f := &fleet{client: c, size: size, namespaces: namespaces, seen: map[string]*v1alpha1.Memcached{}}
	for i := range namespaces {
		if err := c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.namespaceOf(i)}}); err != nil {
			return nil, fmt.Errorf("creating a namespace: %w", err)
		}
	}
	watched, err := cache.New(config, cache.Options{Scheme: c.Scheme(), DefaultTransform: cache.TransformStripManagedFields()})
	if err != nil {
		return nil, err
	}
	informer, err := watched.GetInformer(ctx, &v1alpha1.Memcached{}, cache.BlockUntilSynced(false))
	if err != nil {
		return nil, fmt.Errorf("watching Memcacheds: %w", err)
	}
	see := func(o any) {
		m, ok := o.(*v1alpha1.Memcached)
		if !ok {
			return
		}
		f.lock.Lock()
		defer f.lock.Unlock()
		f.seen[m.Name] = m
	}
	if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{AddFunc: see, UpdateFunc: func(_, o any) { see(o) }}); err != nil {
		return nil, err
	}
	go func() { _ = watched.Start(ctx) }() // stops with ctx
	if !watched.WaitForCacheSync(ctx) {
		return nil, fmt.Errorf("watching Memcacheds: %w", ctx.Err())
	}
	return f, nil
}

// count returns for how many Memcacheds is returns true, and one for which it returns false, or nil.
func (f *fleet) count(is func(*v1alpha1.Memcached) bool) (n int, isNot *v1alpha1.Memcached) {
	f.lock.Lock()
	defer f.lock.Unlock()
	for _, m := range f.seen {
		if is(m) {
			n++
		} else {
			isNot = m
		}
	}
	return n, isNot
}

// isAvailable reports whether all shards serve.
func isAvailable(m *v1alpha1.Memcached) bool {
	return m.Status.ObservedGeneration == m.Generation && m.Status.ReadySize == shards &&
		meta.IsStatusConditionTrue(m.Status.Conditions, v1alpha1.ConditionAvailable)
}

// isUpToDate reports whether all shards serve with a version and the operator has nothing left to do.
func isUpToDate(version string) func(*v1alpha1.Memcached) bool {
	return func(m *v1alpha1.Memcached) bool {
		if !isAvailable(m) || m.Status.Update != nil || m.Status.Version != version || !meta.IsStatusConditionFalse(m.Status.Conditions, v1alpha1.ConditionProgressing) {
			return false
		}
		for _, s := range m.Status.Shards {
			if !s.Current || s.Version != version {
				return false
			}
		}
		return true
	}
}

func (f *fleet) create(ctx context.Context, version string) error {
	return f.each(ctx, func(ctx context.Context, number int) error {
		m := &v1alpha1.Memcached{
			ObjectMeta: metav1.ObjectMeta{Name: nameOf(number), Namespace: f.namespaceOf(number)},
			Spec:       v1alpha1.MemcachedSpec{Size: new(int32(shards)), Version: version},
		}
		return f.client.Create(ctx, m)
	})
}

// patch applies a merge patch to all Memcacheds.
func (f *fleet) patch(ctx context.Context, patch string) error {
	return f.each(ctx, func(ctx context.Context, number int) error {
		m := &v1alpha1.Memcached{ObjectMeta: metav1.ObjectMeta{Name: nameOf(number), Namespace: f.namespaceOf(number)}}
		return f.client.Patch(ctx, m, client.RawPatch(types.MergePatchType, []byte(patch)))
	})
}

func (f *fleet) each(ctx context.Context, do func(context.Context, int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallelRequests)
	for number := range f.size {
		group.Go(func() error { return do(ctx, number) })
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("writing Memcacheds: %w", err)
	}
	return nil
}

// stallTimeout is how long nothing may change until a run fails.
const stallTimeout = 5 * time.Minute
