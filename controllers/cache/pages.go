package cache

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
)

// pageSize is how many objects are read at once. An object has up to 1.5 MiB.
const pageSize = 20

// NewInformer returns an informer that trims a list of objects page by page. It lists objects
// from API servers before Kubernetes 1.34; others stream them one by one.
func NewInformer(from toolscache.ListerWatcher, kind runtime.Object, resync time.Duration, indexers toolscache.Indexers, trim toolscache.TransformFunc) toolscache.SharedIndexInformer {
	return toolscache.NewSharedIndexInformer(pages{from, toolscache.ToListerWatcherWithContext(from), trim}, kind, resync, indexers)
}

// pages reads lists in pages.
type pages struct {
	toolscache.ListerWatcher
	from toolscache.ListerWatcherWithContext
	trim toolscache.TransformFunc
}

// WatchWithContext implements toolscache.WatcherWithContext.
func (p pages) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	return p.from.WatchWithContext(ctx, options)
}

// ListWithContext implements toolscache.ListerWithContext. The API server ignores the limit of a
// list that names a version.
func (p pages) ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	options.ResourceVersion, options.ResourceVersionMatch, options.Limit = "", "", pageSize
	var items []runtime.Object
	for {
		page, err := p.from.ListWithContext(ctx, options)
		if err != nil {
			return nil, err
		}
		list, err := meta.ListAccessor(page)
		if err != nil {
			return nil, err
		}
		if err := meta.EachListItem(page, func(o runtime.Object) error {
			items = append(items, o)
			_, err := p.trim(o)
			return err
		}); err != nil {
			return nil, fmt.Errorf("trimming a list: %w", err)
		}
		if options.Continue = list.GetContinue(); options.Continue == "" {
			return page, meta.SetList(page, items)
		}
	}
}
