package controllers

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
)

// The API server rejects a message of more than 1,024 bytes, and nothing retries it.
func TestEventWithALongMessageArrives(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mgr, err := ctrl.NewManager(rest.CopyConfig(asSelf), ctrl.Options{Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}})
	w.must(err)
	m := &v1alpha1.Memcached{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "cache", UID: "1"}}
	long := strings.Repeat("€", 2000)
	boundedRecorder{mgr.GetEventRecorder("memcached-operator")}.
		Eventf(m, nil, corev1.EventTypeWarning, v1alpha1.ReasonUpdateFailed, "Reconcile", "shard %s: %s", "cache-0", long)
	var events eventsv1.EventList
	if err := wait.PollUntilContextTimeout(w.ctx, 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		err := admin.List(ctx, &events, client.InNamespace(w.namespace))
		return len(events.Items) > 0, err
	}); err != nil {
		t.Fatalf("no event arrived: %v", err)
	}
	if note := events.Items[0].Note; !strings.HasPrefix(note, "shard cache-0: €€€") || !strings.HasSuffix(note, "€…") {
		t.Errorf("the message is %q", note)
	}
}
