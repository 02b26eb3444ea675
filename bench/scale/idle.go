package scale

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/test/bench/internal/scale"
	"github.com/memcached-operator/memcached-operator/test/bench/report"
	"github.com/memcached-operator/memcached-operator/test/bench/usage"
	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
)

// The objects of a cluster that the operator does not manage.
const (
	foreignPods    = 8000
	foreignSecrets = 1000
	// size of a Secret in bytes
	secretLeast, secretMost = 1000, 4000
)

// idleFor is how long the operator runs until its memory is measured.
const idleFor = 30 * time.Second

// idle is the memory of an operator without Memcacheds.
type idle struct {
	// Alone is measured on an empty cluster, Beside on one with foreign objects.
	Alone, Beside usage.Memory
}

func (b *bench) measureIdle(ctx context.Context) (*idle, error) {
	b.say("no Memcached:")
	i := &idle{}
	return i, b.withScene(ctx, 0, func(ctx context.Context, s *scene) (err error) {
		if i.Alone, err = s.idleMemory(ctx); err != nil {
			return err
		}
		b.say("alone: RSS %s, peak %s", report.Mebibytes(i.Alone.Now), report.Mebibytes(i.Alone.Peak))
		if err := createForeign(ctx, s.Client); err != nil {
			return err
		}
		if i.Beside, err = s.idleMemory(ctx); err != nil {
			return err
		}
		b.say("with %s pods and %s Secrets: RSS %s, peak %s", report.Number(foreignPods), report.Number(foreignSecrets), report.Mebibytes(i.Beside.Now), report.Mebibytes(i.Beside.Peak))
		return nil
	})
}

// idleMemory starts an operator, waits, and returns its memory.
func (s *scene) idleMemory(ctx context.Context) (memory usage.Memory, err error) {
	if err := s.Operator.Start(ctx); err != nil {
		return memory, err
	}
	defer s.stopOperator()
	if err := cluster.Sleep(ctx, idleFor); err != nil {
		return memory, err
	}
	return usage.MemoryOf(s.Operator.Process.Pid)
}

// createForeign creates pods and Secrets that the operator does not manage.
func createForeign(ctx context.Context, c client.Client) error {
	const namespace = "foreign"
	if err := c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		return fmt.Errorf("creating a namespace: %w", err)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(scale.ParallelRequests)
	for i := range foreignPods {
		group.Go(func() error { return c.Create(ctx, foreignPod(namespace, i)) })
	}
	for i := range foreignSecrets {
		group.Go(func() error { return c.Create(ctx, foreignSecret(namespace, i)) })
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("creating foreign objects: %w", err)
	}
	return nil
}

func foreignPod(namespace string, i int) *corev1.Pod {
	name := fmt.Sprintf("shop-%05d", i)
	container := corev1.Container{Name: "app", Image: "registry.example.com/shop/app:1.2.3", Command: []string{"/app", "--listen=:8080", "--verbose"}}
	for n := range 12 {
		container.Env = append(container.Env, corev1.EnvVar{Name: fmt.Sprintf("SETTING_%d", n), Value: fmt.Sprintf("a value of the setting %d of %s", n, name)})
	}
	sidecar := *container.DeepCopy()
	sidecar.Name = "sidecar"
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: map[string]string{"app.kubernetes.io/name": "shop", "app.kubernetes.io/instance": name},
			Annotations: map[string]string{"example.com/checksum": fmt.Sprintf("%064d", i)}},
		Spec: corev1.PodSpec{NodeName: fmt.Sprintf("node-%03d", i%80), Containers: []corev1.Container{container, sidecar}},
	}
}

func foreignSecret(namespace string, i int) *corev1.Secret {
	source := rand.New(rand.NewPCG(1, uint64(i))) //nolint:gosec // no secret
	value := make([]byte, secretLeast+source.IntN(secretMost-secretLeast+1))
	for n := range value {
		value[n] = byte(source.UintN(256)) //nolint:gosec // a byte
	}
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("shop-%05d", i), Namespace: namespace}, Data: map[string][]byte{"value": value}}
}
