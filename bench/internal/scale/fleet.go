package scale

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/test/internal/audit"
	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
)

// Shards of each Memcached.
const Shards = 3

// ParallelRequests about Memcacheds.
const ParallelRequests = 32

// Fleet is the Memcacheds of a run.
type Fleet struct {
	client client.Client
	// Size is the number of Memcacheds.
	Size, namespaces int

	lock sync.Mutex
	seen map[string]*v1beta1.Memcached
}

// NameOf returns the name of a Memcached. It has no dash, so that MemcachedOf finds it in the names of its objects.
func NameOf(number int) string { return fmt.Sprintf("m%05d", number) }

// MemcachedOf returns the name of the Memcached to which the object of a request belongs. The name of an event begins
// with that of its object.
func MemcachedOf(r audit.Request) string {
	name, _, _ := strings.Cut(r.Name, "-")
	name, _, _ = strings.Cut(name, ".")
	return name
}

// NamespaceOf returns the namespace of a Memcached by its number.
func (f *Fleet) NamespaceOf(number int) string { return fmt.Sprintf("bench-%d", number%f.namespaces) }

// NewFleet creates the namespaces and watches Memcacheds until ctx ends.
func NewFleet(ctx context.Context, c client.Client, config *rest.Config, size, namespaces int) (*Fleet, error) {
	f := &Fleet{client: c, Size: size, namespaces: namespaces, seen: map[string]*v1beta1.Memcached{}}
	for i := range namespaces {
		if err := c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.NamespaceOf(i)}}); err != nil {
			return nil, fmt.Errorf("creating a namespace: %w", err)
		}
	}
	watched, err := cache.New(config, cache.Options{Scheme: c.Scheme(), DefaultTransform: cache.TransformStripManagedFields()})
	if err != nil {
		return nil, err
	}
	var informer cache.Informer
	// The discovery of the API server can lack a new kind again for a moment after it had it.
	err = cluster.Eventually(ctx, "watching Memcacheds", func(ctx context.Context) error {
		informer, err = watched.GetInformer(ctx, &v1beta1.Memcached{}, cache.BlockUntilSynced(false))
		return err
	})
	if err != nil {
		return nil, err
	}
	see := func(o any) {
		m, ok := o.(*v1beta1.Memcached)
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

// Count returns for how many Memcacheds is returns true, and one for which it returns false, or nil.
func (f *Fleet) Count(is func(*v1beta1.Memcached) bool) (n int, isNot *v1beta1.Memcached) {
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

// IsAvailable reports whether all shards serve.
func IsAvailable(m *v1beta1.Memcached) bool {
	return m.Status.ObservedGeneration == m.Generation && m.Status.ReadyShards == Shards &&
		meta.IsStatusConditionTrue(m.Status.Conditions, v1beta1.ConditionAvailable)
}

// IsUpToDate reports whether all shards serve with a version and the operator has nothing left to do.
func IsUpToDate(version string) func(*v1beta1.Memcached) bool {
	return func(m *v1beta1.Memcached) bool {
		if !IsAvailable(m) || m.Status.Update != nil || m.Status.Version != version || !meta.IsStatusConditionFalse(m.Status.Conditions, v1beta1.ConditionProgressing) {
			return false
		}
		for _, s := range m.Status.Shards {
			if !s.UpToDate || s.Version != version {
				return false
			}
		}
		return true
	}
}

// Create creates all Memcacheds.
func (f *Fleet) Create(ctx context.Context, version string) error {
	return f.each(ctx, func(ctx context.Context, number int) error {
		m := &v1beta1.Memcached{
			ObjectMeta: metav1.ObjectMeta{Name: NameOf(number), Namespace: f.NamespaceOf(number)},
			Spec:       v1beta1.MemcachedSpec{Size: new(int32(Shards)), Version: version},
		}
		return f.client.Create(ctx, m)
	})
}

// Patch applies a merge patch to all Memcacheds.
func (f *Fleet) Patch(ctx context.Context, patch string) error {
	return f.each(ctx, func(ctx context.Context, number int) error {
		m := &v1beta1.Memcached{ObjectMeta: metav1.ObjectMeta{Name: NameOf(number), Namespace: f.NamespaceOf(number)}}
		return f.client.Patch(ctx, m, client.RawPatch(types.MergePatchType, []byte(patch)))
	})
}

func (f *Fleet) each(ctx context.Context, do func(context.Context, int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(ParallelRequests)
	for number := range f.Size {
		group.Go(func() error { return do(ctx, number) })
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("writing Memcacheds: %w", err)
	}
	return nil
}
