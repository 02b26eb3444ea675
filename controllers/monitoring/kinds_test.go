package monitoring

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
)

// stream is an API server that streams one object of the namespace team.
type stream struct {
	metadata.Getter
	t      *testing.T
	object metav1.PartialObjectMetadata
}

func (s stream) Resource(schema.GroupVersionResource) metadata.Getter { return s }

func (s stream) Namespace(name string) metadata.ResourceInterface {
	if name != "team" {
		s.t.Errorf("it watches the namespace %q", name)
	}
	return s
}

func (s stream) Watch(_ context.Context, o metav1.ListOptions) (watch.Interface, error) {
	if o.LabelSelector != v1beta1.LabelManagedBy+"="+v1beta1.ManagedByValue {
		s.t.Errorf("it watches the objects with the labels %q", o.LabelSelector)
	}
	events := watch.NewFakeWithChanSize(2, false)
	events.Add(s.object.DeepCopy())
	events.Action(watch.Bookmark, &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "9", Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"}}})
	return events, nil
}

// Users can set our label on theirs.
func TestWatchStoresTheIdentityOfObjectsOnly(t *testing.T) {
	large := strings.Repeat("x", 250<<10)
	s := stream{t: t, object: metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: "team", Name: "theirs", UID: "1", ResourceVersion: "8",
		Labels: map[string]string{v1beta1.LabelManagedBy: v1beta1.ManagedByValue, "other": "x"}, Annotations: map[string]string{"example.com/large": large},
		Finalizers: []string{"example.com/" + large}, OwnerReferences: []metav1.OwnerReference{{Name: large}},
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: large}},
	}}}
	informer := newInformer(s, podMonitor, "team")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		informer.RunWithContext(ctx)
		close(done)
	}()
	if !toolscache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		t.Fatal("the objects were not listed")
	}
	cancel()
	<-done
	want := []any{&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "theirs", UID: "1", ResourceVersion: "8"}}}
	if diff := cmp.Diff(want, informer.GetStore().List()); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}
}
