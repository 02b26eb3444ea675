package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/internal/apiservertest"
)

// newRealWorld returns a world around a real API server, in a namespace of its own.
func newRealWorld(t *testing.T, server client.Client, namespace string) *World {
	t.Helper()
	ctx := context.Background()
	if err := server.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		t.Fatal(err)
	}
	w := &World{seed: 1, rng: rand.New(rand.NewPCG(1, 0))}
	w.binds = func(pod *corev1.Pod, node string) error {
		return server.SubResource("binding").Create(ctx, pod, &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: node}})
	}
	w.begin(time.Now(), server, namespace)
	return w
}

// TestScenariosConvergeEquallyWithRealAPIServer keeps what the world takes for an API
// server to the truth.
func TestScenariosConvergeEquallyWithRealAPIServer(t *testing.T) {
	ctrl.SetLogger(logr.Discard())
	server, err := client.New(apiservertest.StartForTest(t).Admin, client.Options{Scheme: ourScheme()})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"node1", "node2", "node3"} { // a resize needs the pod's node
		room := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("4Gi")}
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{Capacity: room, Allocatable: room}}
		if err := server.Create(t.Context(), node); err != nil {
			t.Fatal(err)
		}
	}
	n := 0
	for name, s := range scenarios {
		n++
		namespace := fmt.Sprintf("world-%d", n)
		t.Run(name, func(t *testing.T) {
			want := s.play(newWorld(1, faults{}), nil)
			got := s.play(newRealWorld(t, server, namespace), nil)
			if got.broken != "" {
				t.Fatalf("%s\n%s", got.broken, got.tail(80))
			}
			if diff := cmp.Diff(want.End()+"\n"+want.Starts(), got.End()+"\n"+got.Starts()); diff != "" {
				t.Fatalf("it ends otherwise (-in memory +real):\n%s\n%s", diff, got.tail(80))
			}
		})
	}
}
