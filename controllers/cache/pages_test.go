package cache

import (
	"context"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"
)

// An API server before Kubernetes 1.34 doesn't stream a list. Read at once, the objects of one
// tenant would fill the operator's memory.
func TestListIsReadAndTrimmedInPages(t *testing.T) {
	const services = 3*pageSize + 7
	requests := 0
	from := &toolscache.ListWatch{ListWithContextFunc: func(_ context.Context, options metav1.ListOptions) (runtime.Object, error) {
		requests++
		if options.Limit != pageSize || options.ResourceVersion != "" {
			t.Errorf("list with %+v", options)
		}
		first, _ := strconv.Atoi(options.Continue)
		list := &corev1.ServiceList{ListMeta: metav1.ListMeta{ResourceVersion: "9"}}
		for i := first; i < min(first+pageSize, services); i++ {
			list.Items = append(list.Items, corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: strconv.Itoa(i), Labels: managed,
				Annotations: map[string]string{"example.com/large": strings.Repeat("x", 1000)}}})
		}
		if next := first + pageSize; next < services {
			list.Continue = strconv.Itoa(next)
		}
		return list, nil
	}}
	got, err := pages{from, from, Transform}.ListWithContext(t.Context(), metav1.ListOptions{ResourceVersion: "0", Limit: 500})
	if err != nil {
		t.Fatal(err)
	}
	list := got.(*corev1.ServiceList)
	if requests != 4 || len(list.Items) != services || list.ResourceVersion != "9" || list.Continue != "" {
		t.Errorf("%d requests, %d objects, %+v", requests, len(list.Items), list.ListMeta)
	}
	for i, s := range list.Items {
		if s.Name != strconv.Itoa(i) || len(s.Annotations) > 0 {
			t.Fatalf("object %d is %+v", i, s.ObjectMeta)
		}
	}
}
