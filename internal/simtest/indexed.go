package simtest

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/internal/index"
)

// Indexed returns a client that lists by the indexes of the manager's cache, and by no other field.
func Indexed(c client.Client) client.Client {
	i := indexed{c, indexes{}}
	if err := index.Setup(context.Background(), i.indexes); err != nil {
		panic(err)
	}
	return i
}

type indexed struct {
	client.Client
	indexes indexes
}

// indexes are the values of an object, by the name of its type and of the index.
type indexes map[string]client.IndexerFunc

// IndexField implements client.FieldIndexer.
func (i indexes) IndexField(_ context.Context, o client.Object, field string, values client.IndexerFunc) error {
	i[reflect.TypeOf(o).Elem().Name()+" "+field] = values
	return nil
}

// List implements client.Reader.
func (i indexed) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	how := (&client.ListOptions{}).ApplyOptions(options)
	fields := how.FieldSelector
	how.FieldSelector = nil
	if err := i.Client.List(ctx, list, how); err != nil || fields == nil {
		return err
	}
	items, err := meta.ExtractList(list)
	if err != nil {
		return err
	}
	kind := reflect.ValueOf(list).Elem().FieldByName("Items").Type().Elem().Name()
	for _, r := range fields.Requirements() {
		values := i.indexes[kind+" "+r.Field]
		if values == nil {
			return fmt.Errorf("the cache has no index %s of %s", r.Field, kind)
		}
		items = slices.DeleteFunc(items, func(o runtime.Object) bool { return !slices.Contains(values(o.(client.Object)), r.Value) })
	}
	return meta.SetList(list, items)
}
