package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memcached-operator/memcached-operator/test/internal/suite"
)

func TestMemcachedRecreatedUnderSameNameWorks(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.Apply("cache", suite.Small(2))
	m := s.Available("cache")
	before := s.Pods("cache")
	s.Written("cache", 0, 100)

	s.Must(k.Delete(s.Ctx, m))
	s.Apply("cache", suite.Small(2))
	began := time.Now()
	again := s.Available("cache")
	t.Logf("available %s after it was recreated", time.Since(began).Round(100*time.Millisecond))
	if again.UID == m.UID {
		t.Fatal("it is the same Memcached")
	}
	// A node's proxy may send to a pod that drains for a moment after its
	// replacement is ready.
	for shard, pod := range before {
		if s.Pods("cache")[shard].UID == pod.UID {
			t.Errorf("shard %s is still in the pod of the deleted Memcached", shard)
		}
		s.Gone(&pod, pod.Name)
	}
	if count, err := s.Items("cache", 0, 100).Count(); err != nil || count > 0 {
		t.Errorf("it has %d items of the deleted one: %v", count, err)
	}
	s.Holds(s.Written("cache", 1, 100))
	// what the garbage collector still had to do is done by now, and took nothing of the new one's
	time.Sleep(2 * time.Second)
	s.Available("cache")
}

func TestDeletedNamespaceCausesNoErrorLoop(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	for i := range 3 {
		s.Apply(fmt.Sprintf("cache-%c", 'a'+i), suite.Small(1))
	}
	s.Available("cache-a")
	s.Apply("cache-a", suite.Small(1).WithThreads(2)) // the operator logs its decisions
	log := ""
	s.Eventually("a line about the namespace in the operator's log", func(ctx context.Context) (err error) {
		log, err = k.OperatorLog(ctx, &corev1.PodLogOptions{SinceSeconds: new(int64(300))})
		if err == nil && !strings.Contains(log, s.Namespace) {
			err = errors.New("there is none, so errors would not be seen either")
		}
		return err
	})
	s.Apply("cache-d", suite.Small(2)) // is coming up
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.Namespace}}
	s.Must(k.Delete(s.Ctx, namespace))
	time.Sleep(15 * time.Second) // longer than a few retries that end in errors would take

	log, err := k.OperatorLog(s.Ctx, &corev1.PodLogOptions{SinceSeconds: new(int64(300))})
	s.Must(err)
	var failures []string
	for line := range strings.Lines(log) {
		if strings.Contains(line, s.Namespace) && strings.Contains(strings.ToLower(line), "error") {
			failures = append(failures, line)
		}
	}
	// one a Memcached may be a write that the deletion overtook
	if len(failures) > 4 {
		t.Errorf("the operator logged %d errors: %s", len(failures), strings.Join(failures, ""))
	}
}
