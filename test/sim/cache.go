package sim

import (
	"context"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	managercache "github.com/memcached-operator/memcached-operator/controllers/cache"
	"github.com/memcached-operator/memcached-operator/internal/simtest"
)

// cache is what the operator's informers hold: each kind as it was at some time, of
// the simtest.Kinds that the operator makes only what bears its label. It holds what the manager's cache keeps of an object.
type cache struct {
	server *simtest.Server
	// seen is how many changes of a kind the informer has received.
	seen map[simtest.Kind]int
	held map[simtest.Kind]map[string]client.Object
}

// newCache returns one that begins with lists of the changes up to seen.
func newCache(server *simtest.Server, seen map[simtest.Kind]int) *cache {
	c := &cache{server: server, seen: map[simtest.Kind]int{}, held: map[simtest.Kind]map[string]client.Object{}}
	for _, k := range simtest.Kinds {
		c.held[k], c.seen[k] = map[string]client.Object{}, seen[k]
		listed := map[string]client.Object{}
		for _, change := range server.Past[k][:seen[k]] {
			listed[change.Name] = change.Is
		}
		for name, is := range listed {
			c.hold(k, name, is)
		}
	}
	return c
}

// behind returns how many changes of a kind the informer has not received.
func (c *cache) behind(k simtest.Kind) int { return len(c.server.Past[k]) - c.seen[k] }

// next sends one change to the informer, and returns the object before and after it.
func (c *cache) next(k simtest.Kind) (was, is client.Object) {
	change := c.server.Past[k][c.seen[k]]
	c.seen[k]++
	was = c.held[k][change.Name]
	c.hold(k, change.Name, change.Is)
	return was, c.held[k][change.Name]
}

// hold replaces an object of that name, nil if it no longer exists.
func (c *cache) hold(k simtest.Kind, name string, is client.Object) {
	if is == nil || !isCached(k, is) {
		delete(c.held[k], name)
		return
	}
	kept, err := managercache.Transform(is.DeepCopyObject())
	must(err)
	c.held[k][name] = kept.(client.Object)
}

// isCached reports whether the informer of a kind receives an object.
func isCached(k simtest.Kind, o client.Object) bool {
	switch k {
	case simtest.KindMemcached, simtest.KindBackup, simtest.KindRestore:
		return true
	default:
		return o.GetLabels()[v1beta1.LabelManagedBy] == v1beta1.ManagedByValue
	}
}

// Get implements client.Reader.
func (c *cache) Get(_ context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	k := simtest.KindOf(o)
	have, ok := c.held[k][key.Name]
	if !ok || key.Namespace != c.server.Namespace {
		return apierrors.NewNotFound(schema.GroupResource{Resource: string(k)}, key.Name)
	}
	copyInto(have, o)
	return nil
}

// List implements client.Reader. It has no indexes, as the labels select the same objects.
func (c *cache) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	var how client.ListOptions
	how.ApplyOptions(options)
	k, set := simtest.KindOfList(list)
	var found []client.Object
	for _, name := range slices.Sorted(maps.Keys(c.held[k])) {
		o := c.held[k][name]
		if how.LabelSelector == nil || how.LabelSelector.Matches(labelsOf(o)) {
			found = append(found, o)
		}
	}
	set(found)
	return nil
}
