package cluster

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	toolswatch "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Changes watches objects from what is there now, as Added. The API server closes the watch of a client that is late: another one continues
// where that was. If it can't, an Error is the last event.
func (c *Cluster) Changes(ctx context.Context, list client.ObjectList, of ...client.ListOption) (watch.Interface, error) {
	first, err := c.Watch(ctx, list, of...)
	if err != nil {
		return nil, err
	}
	const beginning = "1" // a RetryWatcher must have a version
	return toolswatch.NewRetryWatcherWithContext(ctx, beginning, &cache.ListWatch{WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
		if w := first; w != nil {
			first = nil
			return w, nil
		}
		if options.ResourceVersion == beginning {
			options.ResourceVersion = ""
		}
		return c.Watch(ctx, list, append(slices.Clone(of), &client.ListOptions{Raw: &options})...)
	}})
}
