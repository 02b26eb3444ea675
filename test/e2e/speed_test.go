package e2e

import (
	"fmt"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/test/internal/suite"
)

const (
	speedRuns   = 3
	speedShards = 3
	// tooSlow is the ratio that fails the test. 1.5 to 3.3 were measured on machines with two
	// cores: a bare Deployment takes a second more if its first probes come too early.
	tooSlow = 6.0
)

// The alternative without the operator is a Deployment of the same image,
// with the readiness probe that charts give it, or with none.
func TestAvailableSecondsAfterABareDeployment(t *testing.T) {
	s := newSpace(t)
	took := map[string][]time.Duration{}
	kinds := []struct {
		name string
		run  func(name string) time.Duration
	}{
		{"Memcached", s.timeMemcached},
		{"Deployment with a probe", func(name string) time.Duration { return s.timeDeployment(name, true) }},
		{"Deployment without a probe", func(name string) time.Duration { return s.timeDeployment(name, false) }},
	}
	for run := range speedRuns {
		for i, kind := range kinds {
			took[kind.name] = append(took[kind.name], kind.run(fmt.Sprintf("run-%d-%d", run, i)))
		}
	}
	bare := median(took["Deployment with a probe"])
	for _, kind := range kinds {
		t.Logf("%-27s %4d ms, %.2f × the Deployment with a probe; runs: %v", kind.name,
			median(took[kind.name]).Milliseconds(), ratio(median(took[kind.name]), bare), rounded(took[kind.name]))
	}
	if r := ratio(median(took["Memcached"]), bare); r > tooSlow {
		t.Errorf("a Memcached of %d shards takes %.2f × as long as a Deployment", speedShards, r)
	}
}

// timeMemcached returns how long a Memcached takes from its being applied until
// it says that it is available.
func (s *space) timeMemcached(name string) time.Duration {
	s.Helper()
	began := time.Now()
	s.Apply(name, suite.Small(speedShards))
	m := &v1alpha1.Memcached{}
	took := s.until(began, func() bool {
		s.Must(k.Get(s.Ctx, s.Key(name), m))
		return meta.IsStatusConditionTrue(m.Status.Conditions, v1alpha1.ConditionAvailable)
	})
	s.deleteNow(m, map[string]string{v1alpha1.LabelInstance: name})
	return took
}

// timeDeployment returns how long a Deployment of as many pods of the same image
// takes until Kubernetes says that all are available.
func (s *space) timeDeployment(name string, probe bool) time.Duration {
	s.Helper()
	labels := map[string]string{"app": name}
	container := corev1.Container{
		Name: "memcached", Image: "docker.io/library/memcached:" + defaultVersion,
		Args:  []string{"-m", "16", "-U", "0"},
		Ports: []corev1.ContainerPort{{Name: "memcached", ContainerPort: 11211}},
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
			Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		},
	}
	if probe {
		container.ReadinessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromString("memcached")}}}
	}
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(speedShards)),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					Containers: []corev1.Container{container},
					SecurityContext: &corev1.PodSecurityContext{
						RunAsNonRoot: new(true), RunAsUser: new(int64(11211)),
						SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
					},
				},
			},
		},
	}
	began := time.Now()
	s.Must(k.Create(s.Ctx, d))
	took := s.until(began, func() bool {
		s.Must(k.Get(s.Ctx, s.Key(name), d))
		return d.Status.AvailableReplicas == speedShards
	})
	s.deleteNow(d, labels)
	return took
}

// until checks every few milliseconds and returns how long it took.
func (s *space) until(began time.Time, done func() bool) time.Duration {
	s.Helper()
	for !done() {
		if time.Since(began) > suite.Soon {
			s.Fatalf("not within %s", suite.Soon)
		}
		time.Sleep(10 * time.Millisecond)
	}
	return time.Since(began)
}

// deleteNow deletes an object and its pods without waiting for them to drain, so that
// they do not run beside the next measurement.
func (s *space) deleteNow(o client.Object, labels map[string]string) {
	s.Helper()
	s.Must(k.Delete(s.Ctx, o, client.PropagationPolicy(metav1.DeletePropagationForeground)))
	s.Gone(o, o.GetName())
	s.Must(k.DeleteAllOf(s.Ctx, &corev1.Pod{}, client.InNamespace(s.Namespace), client.MatchingLabels(labels), client.GracePeriodSeconds(0)))
}

func median(durations []time.Duration) time.Duration {
	return slices.Sorted(slices.Values(durations))[len(durations)/2]
}

func ratio(a, b time.Duration) float64 { return float64(a) / float64(b) }

func rounded(durations []time.Duration) []time.Duration {
	var out []time.Duration
	for _, d := range durations {
		out = append(out, d.Round(10*time.Millisecond))
	}
	return out
}
