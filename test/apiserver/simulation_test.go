package apiserver

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memcached-operator/memcached-operator/internal/simtest"
	"github.com/memcached-operator/memcached-operator/test/sim"
)

// TestScenariosConvergeEquallyWithRealAPIServer compares the API server in memory with a real one: in scenarios that
// differ in what the API server does.
func TestScenariosConvergeEquallyWithRealAPIServer(t *testing.T) {
	for _, name := range []string{"node1", "node2", "node3"} { // a resize needs the pod's node
		room := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("4Gi")}
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{Capacity: room, Allocatable: room}}
		must(t, admin.Create(t.Context(), node))
	}
	for i, name := range []string{
		"a version and threads",
		"resources, and back before the rest of the change",
		"labels",
		"memory, and back in the middle",
		"a node selector",
		"to size 0 and back",
		"a final backup",
		"recreated at once",
		"a bootstrap",
		"a set is deleted without its pod while shard 0 is replaced",
		"a Service is deleted and can't be recreated",
		"two constraints of one key",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now := time.Now()
			want, err := sim.PlayScenario(name, simtest.NewCluster(now, 1))
			must(t, err)
			got, err := sim.PlayScenario(name, realCluster(t, now, fmt.Sprintf("scenario-%d", i)))
			must(t, err)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("it ends otherwise (-in memory +real):\n%s", diff)
			}
		})
	}
}

// realCluster returns a cluster around the real API server, in a namespace of its own.
func realCluster(t *testing.T, now time.Time, namespace string) *simtest.Cluster {
	t.Helper()
	must(t, admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))
	cluster := simtest.NewCluster(now, 1)
	cluster.Server = simtest.Around(admin, namespace)
	cluster.Binds = func(pod *corev1.Pod, node string) error {
		return admin.SubResource("binding").Create(t.Context(), pod, &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: node}})
	}
	return cluster
}
