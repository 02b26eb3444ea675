package memcached

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
)

func TestResizingFollowsTheVersionOfKubernetes(t *testing.T) {
	for version, c := range map[string]struct {
		resource string
		want     resources.Resizing
	}{
		"v1.32.13":            {"pods/log", resources.ResizeNothing},
		"v1.33.5-gke.1030000": {"pods/resize", resources.ResizeExceptLessMemory},
		"v1.34.0":             {"pods/resize", resources.ResizeAll},
		"v1.37.1":             {"pods/resize", resources.ResizeAll},
		"of a fork":           {"pods/resize", resources.ResizeAll},
	} {
		mux := http.NewServeMux()
		mux.HandleFunc("/version", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintf(w, `{"gitVersion":%q}`, version) })
		mux.HandleFunc("/api/v1", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":%q}]}`, c.resource)
		})
		server := httptest.NewServer(mux)
		api := discovery.NewDiscoveryClientForConfigOrDie(&rest.Config{Host: server.URL})
		if got, err := Resizing(api); err != nil || got != c.want {
			t.Errorf("Kubernetes %s: %d, %v; want %d", version, got, err, c.want)
		}
		server.Close()
	}
}

// Thousands of new Memcacheds, or of changed ones, can wait when a pod is lost.
func TestMemcachedOfALostPodIsReconciledFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := priorityqueue.New[reconcile.Request]("memcached")
		defer q.ShutDown()
		q.Add(reconcile.Request{NamespacedName: types.NamespacedName{Name: "new"}})
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{v1beta1.LabelManagedBy: v1beta1.ManagedByValue, v1beta1.LabelInstance: "cache"}}}
		podEvents().Delete(t.Context(), event.DeleteEvent{Object: pod}, q)
		time.Sleep(podEventDelay) //nolint:forbidigo // the fake time of a bubble
		synctest.Wait()
		if first, _ := q.Get(); first.Name != "cache" {
			t.Errorf("%s comes first", first.Name)
		}
	})
}

// Each pod that becomes ready changes the status of the budgets that select it.
func TestBudgetRequestsTheMemcachedsWhenItSelectsOtherPods(t *testing.T) {
	was := &policyv1.PodDisruptionBudget{Spec: policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{}}}
	for name, c := range map[string]struct {
		change func(*policyv1.PodDisruptionBudget)
		want   bool
	}{
		"its status":       {func(b *policyv1.PodDisruptionBudget) { b.ResourceVersion, b.Status.DisruptionsAllowed = "2", 1 }, false},
		"its minAvailable": {func(b *policyv1.PodDisruptionBudget) { b.Generation, b.Spec.MinAvailable = 2, new(intstr.FromInt32(1)) }, false},
		"its selector":     {func(b *policyv1.PodDisruptionBudget) { b.Spec.Selector.MatchLabels = map[string]string{"app": "shop"} }, true},
		"no selector":      {func(b *policyv1.PodDisruptionBudget) { b.Spec.Selector = nil }, true},
	} {
		is := was.DeepCopy()
		c.change(is)
		if got := selectsOthers(event.UpdateEvent{ObjectOld: was, ObjectNew: is}); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
