package machine

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func TestDescriptionOmitsTheDistributor(t *testing.T) {
	node := corev1.Node{Status: corev1.NodeStatus{
		Capacity: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourceMemory: resource.MustParse("24600000Ki")},
		NodeInfo: corev1.NodeSystemInfo{KernelVersion: "6.18.44-cloud-amd64", ContainerRuntimeVersion: "containerd://1.6.20"},
	}}
	want := "Kubernetes v1.36.3 on 1 node of 2 cores and 23 GiB of memory, Linux 6.18.44, containerd 1.6.20."
	if got := textOf("v1.36.3", []corev1.Node{node}, 4, true); !strings.HasPrefix(got, want) || !strings.Contains(got, "that one machine") {
		t.Errorf("%q does not begin with %q", got, want)
	}
	if got := textOf("v1.36.3", []corev1.Node{node, node}, 4, false); !strings.Contains(got, "2 nodes") || !strings.Contains(got, "a machine of 4 cores") {
		t.Error(got)
	}
}
