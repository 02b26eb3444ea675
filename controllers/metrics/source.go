// Package metrics exports what the statuses of Memcacheds contain.
package metrics

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// scrapeTimeout bounds a read of the cache, which blocks until the manager has started.
const scrapeTimeout = 5 * time.Second

// Source is where collectors read at each scrape, so that no metric outlives its objects.
type Source struct {
	// Cache contains the objects.
	Cache client.Reader
	// Elected is closed once this operator is the leader. Another one exports nothing.
	Elected <-chan struct{}
}

// List reads all objects of a kind, and reports whether there is something to export. The
// objects belong to the cache.
func (s Source) List(all client.ObjectList) bool {
	select {
	case <-s.Elected:
	default:
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	err := s.Cache.List(ctx, all, client.UnsafeDisableDeepCopy)
	if err != nil {
		log.Log.WithName("metrics").Error(err, "Listing objects for the metrics", "list", fmt.Sprintf("%T", all))
	}
	return err == nil
}
