package e2e

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	memcachedac "github.com/memcached-operator/memcached-operator/api/v1alpha1/applyconfiguration/api/v1alpha1"
)

func TestThreeShardsServeAndAreInTheStatus(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.apply("cache", memcachedac.MemcachedSpec().WithSize(3).WithMemory(resource.MustParse("64Mi")))
	m := s.available("cache")

	for ordinal := range 3 {
		s.holds(s.written("cache", ordinal, 1000))
	}

	status := m.Status
	pods := s.pods("cache")
	for _, field := range []struct{ name, is, want string }{
		{"phase", string(status.Phase), "Running"},
		{"version", status.Version, defaultVersion},
		{"image", status.Image, "docker.io/library/memcached:" + defaultVersion},
		{"ready", status.Ready, "3/3"},
		{"size", fmt.Sprint(status.Size, status.ReadySize), "3 3"},
		{"nodes", fmt.Sprint(status.Nodes), fmt.Sprint([]string{pods["cache-0"].Name, pods["cache-1"].Name, pods["cache-2"].Name})},
		{"servers", fmt.Sprint(status.Servers), strings.ReplaceAll("[cache-0.NS.svc:11211 cache-1.NS.svc:11211 cache-2.NS.svc:11211]", "NS", s.namespace)},
	} {
		if field.is != field.want {
			t.Errorf("status.%s is %q, want %q", field.name, field.is, field.want)
		}
	}
	for ordinal := range 3 {
		shard := s.shard(m, ordinal)
		if !shard.Ready || !shard.Current || shard.Version != defaultVersion || shard.NodeName == "" || shard.Start != v1alpha1.StartCold ||
			shard.StartedAt == nil || shard.ContainerID == "" || shard.Message != "" {
			t.Errorf("status of a new shard is %+v", shard)
		}
	}

	for _, pod := range pods {
		for _, v := range pod.Spec.Volumes {
			if v.Projected != nil || v.Secret != nil {
				t.Errorf("volume %s of pod %s may hold a token", v.Name, pod.Name)
			}
		}
	}

	scale, err := s.scale("cache")
	s.must(err)
	if scale.Spec.Replicas != 3 || scale.Status.Replicas != 3 {
		t.Errorf("the scale subresource has %d desired shards and %d shards", scale.Spec.Replicas, scale.Status.Replicas)
	}
	selected, err := k.Set.CoreV1().Pods(s.namespace).List(s.ctx, metav1.ListOptions{LabelSelector: scale.Status.Selector})
	s.must(err)
	if len(selected.Items) != 3 || scale.Status.Selector == "" {
		t.Errorf("the scale subresource's selector %q selects %d pods", scale.Status.Selector, len(selected.Items))
	}
}

func TestPodsReachShardsByTheServersInTheStatus(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.apply("cache", small(2))
	m := s.available("cache")

	elsewhere := newSpace(t)
	var requests []string
	for ordinal, server := range m.Status.Servers {
		requests = append(requests,
			"ask "+strings.ReplaceAll(server, ":", " "),
			fmt.Sprintf("ask cache-%d.cache.%s.svc 11211", ordinal, s.namespace))
	}
	// The cluster's DNS learns of a pod a moment after it is ready.
	ask := "ask() { for i in 1 2 3 4 5 6 7 8 9 10; do printf 'version\\r\\nquit\\r\\n' | nc $1 $2 && return; sleep 1; done; return 1; }\n"
	elsewhere.must(k.Create(s.ctx, shellPod(elsewhere.namespace, ask+strings.Join(requests, " && "))))
	elsewhere.eventually("answers to a pod of another namespace", func(ctx context.Context) error {
		pod, err := k.Set.CoreV1().Pods(elsewhere.namespace).Get(ctx, "client", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
			return fmt.Errorf("the pod is %s", pod.Status.Phase)
		}
		return nil
	})
	stream, err := k.Set.CoreV1().Pods(elsewhere.namespace).GetLogs("client", &corev1.PodLogOptions{}).Stream(s.ctx)
	s.must(err)
	defer stream.Close()
	answers, err := io.ReadAll(stream)
	s.must(err)
	if got := strings.Count(string(answers), "VERSION "+defaultVersion); got != len(requests) {
		t.Errorf("%d of %d names answered: %s", got, len(requests), answers)
	}
}

// shellPod returns a pod that runs a line of shell and ends.
func shellPod(namespace, line string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "client"},
		Spec: corev1.PodSpec{
			RestartPolicy:                 corev1.RestartPolicyNever,
			AutomountServiceAccountToken:  new(false),
			TerminationGracePeriodSeconds: new(int64(0)),
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: new(true), RunAsUser: new(int64(65532)),
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Containers: []corev1.Container{{
				Name: "client", Image: "docker.io/library/busybox:1", Command: []string{"sh", "-c", line},
				SecurityContext: &corev1.SecurityContext{
					AllowPrivilegeEscalation: new(false),
					Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				},
			}},
		},
	}
}
