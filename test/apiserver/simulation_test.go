package apiserver

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

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
		"a version, and new pods get another image",
		"a version, and all pods get another image",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now := time.Now()
			want, err := sim.PlayScenario(name, simtest.NewCluster(now, 1))
			must(t, err)
			namespace := fmt.Sprintf("scenario-%d", i)
			cluster := realCluster(t, now, namespace)
			if operations := mirroring[name]; operations != nil {
				mirrors(t, namespace, operations)
			}
			got, err := sim.PlayScenario(name, cluster)
			must(t, err)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("it ends otherwise (-in memory +real):\n%s", diff)
			}
		})
	}
}

// mirroring are the operations that the policy of a scenario matches.
var mirroring = map[string][]admissionv1.OperationType{
	"a version, and new pods get another image": {admissionv1.Create},
	"a version, and all pods get another image": {admissionv1.Create, admissionv1.Update},
}

// mirrors creates a policy that has the pods of a namespace use a mirror of the registry that no node reaches, and waits until it applies.
func mirrors(t *testing.T, namespace string, operations []admissionv1.OperationType) {
	t.Helper()
	expression := fmt.Sprintf(`Object{spec: Object.spec{containers: object.spec.containers.map(c,
		Object.spec.containers{name: c.name, image: c.image.replace(%q, "docker.io/library/")})}}`, simtest.Upstream)
	name := metav1.ObjectMeta{Name: "mirrors-" + namespace}
	policy := &admissionv1.MutatingAdmissionPolicy{ObjectMeta: name, Spec: admissionv1.MutatingAdmissionPolicySpec{
		FailurePolicy: new(admissionv1.Fail), ReinvocationPolicy: admissionv1.NeverReinvocationPolicy,
		MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
			Operations: operations, Rule: admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}}}}}},
		Mutations: []admissionv1.Mutation{{PatchType: admissionv1.PatchTypeApplyConfiguration, ApplyConfiguration: &admissionv1.ApplyConfiguration{Expression: expression}}},
	}}
	binding := &admissionv1.MutatingAdmissionPolicyBinding{ObjectMeta: name, Spec: admissionv1.MutatingAdmissionPolicyBindingSpec{PolicyName: name.Name,
		MatchResources: &admissionv1.MatchResources{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}}}}}
	for _, o := range []client.Object{policy, binding} {
		must(t, admin.Create(t.Context(), o))
	}
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 5*time.Minute, true, func(ctx context.Context) (bool, error) {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "probe"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "memcached", Image: simtest.Upstream + "memcached"}}}}
		err := admin.Create(ctx, pod, client.DryRunAll)
		return pod.Spec.Containers[0].Image == "docker.io/library/memcached", err
	})
	if err != nil {
		t.Fatalf("waiting until the policy is applied: %v", err)
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
