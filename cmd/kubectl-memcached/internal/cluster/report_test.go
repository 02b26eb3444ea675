package cluster

import (
	"context"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
)

// paging is an API server whose answers have one event each, of which the last one is about cache.
type paging struct{ client.Client }

func (paging) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	const pages = 3
	var o client.ListOptions
	o.ApplyOptions(options)
	page, _ := strconv.Atoi(o.Continue)
	events := list.(*corev1.EventList)
	events.Items = make([]corev1.Event, 1)
	if page++; page < pages {
		events.Continue = strconv.Itoa(page)
	} else {
		events.Items[0].InvolvedObject.Name = "cache-0"
	}
	return nil
}

func TestEventsOfALargeNamespaceAreComplete(t *testing.T) {
	m := &v1beta1.Memcached{}
	m.Name = "cache"
	events, err := (&Cluster{Client: paging{}}).Events(t.Context(), m)
	if err != nil || len(events) != 1 {
		t.Errorf("got %d events, %v", len(events), err)
	}
}
