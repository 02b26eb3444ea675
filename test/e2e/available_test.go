package e2e

import (
	"context"
	"encoding/json"
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

func TestThreeShardsServeAndTheStatusTellsOfThem(t *testing.T) {
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
		if !shard.Ready || !shard.Current || shard.Version != defaultVersion || shard.Node == "" || shard.Start != v1alpha1.StartCold ||
			shard.StartedAt == nil || shard.ContainerID == "" || shard.Message != "" {
			t.Errorf("status of a new shard is %+v", shard)
		}
	}

	scale, err := s.scale("cache")
	s.must(err)
	if scale.Spec.Replicas != 3 || scale.Status.Replicas != 3 {
		t.Errorf("the scale subresource tells %d shards asked for, %d there", scale.Spec.Replicas, scale.Status.Replicas)
	}
	selected, err := k.Set.CoreV1().Pods(s.namespace).List(s.ctx, metav1.ListOptions{LabelSelector: scale.Status.Selector})
	s.must(err)
	if len(selected.Items) != 3 || scale.Status.Selector == "" {
		t.Errorf("the scale subresource's selector %q selects %d pods", scale.Status.Selector, len(selected.Items))
	}
}

func TestAPersonSeesVersionReadinessAndStatusInAList(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.apply("cache", small(2))
	s.available("cache")

	raw, err := k.Set.CoreV1().RESTClient().Get().
		AbsPath("/apis/cache.memcached-operator.io/v1alpha1/namespaces/"+s.namespace+"/memcacheds").
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").
		DoRaw(s.ctx)
	s.must(err)
	var table metav1.Table
	s.must(json.Unmarshal(raw, &table))
	var columns []string
	for _, c := range table.ColumnDefinitions {
		if c.Priority == 0 {
			columns = append(columns, c.Name)
		}
	}
	if got := strings.Join(columns, " "); got != "Name Version Ready Status Age" {
		t.Errorf("columns are %q", got)
	}
	if got := fmt.Sprint(table.Rows[0].Cells[:4]...); got != fmt.Sprint("cache", defaultVersion, "2/2", "Running") {
		t.Errorf("the row tells %q", got)
	}
}

func TestPodsHoldNoTokenAndCannotWriteToTheirRoot(t *testing.T) {
	t.Parallel()
	s := newSpace(t) // which admits only pods that pass the restricted level
	s.apply("cache", small(1))
	s.available("cache")

	pod := s.pods("cache")["cache-0"]
	if pod.Spec.AutomountServiceAccountToken == nil || *pod.Spec.AutomountServiceAccountToken {
		t.Error("the pod asks for a token")
	}
	for _, v := range pod.Spec.Volumes {
		if v.Projected != nil || v.Secret != nil {
			t.Errorf("volume %s may hold a secret", v.Name)
		}
	}
	for _, c := range append(pod.Spec.InitContainers, pod.Spec.Containers...) {
		if c.SecurityContext == nil || c.SecurityContext.ReadOnlyRootFilesystem == nil || !*c.SecurityContext.ReadOnlyRootFilesystem {
			t.Errorf("container %s can write to its root", c.Name)
		}
	}
}

func TestPodsOfTheClusterReachShardsByTheNamesInTheStatus(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.apply("cache", small(2))
	m := s.available("cache")

	elsewhere := newSpace(t)
	var asks []string
	for ordinal, server := range m.Status.Servers {
		asks = append(asks,
			"ask "+strings.ReplaceAll(server, ":", " "),
			fmt.Sprintf("ask cache-%d.cache.%s.svc 11211", ordinal, s.namespace))
	}
	// The cluster's DNS learns of a pod a moment after it is ready.
	ask := "ask() { for i in 1 2 3 4 5 6 7 8 9 10; do printf 'version\\r\\nquit\\r\\n' | nc $1 $2 && return; sleep 1; done; return 1; }\n"
	elsewhere.must(k.Create(s.ctx, shellPod(elsewhere.namespace, ask+strings.Join(asks, " && "))))
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
	if got := strings.Count(string(answers), "VERSION "+defaultVersion); got != len(asks) {
		t.Errorf("%d of %d names answered: %s", got, len(asks), answers)
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
