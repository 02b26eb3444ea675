package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
)

func TestAServiceOfSomebodyElseIsNeitherAdoptedNorDeleted(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	theirs := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "cache-1"},
		Spec:       corev1.ServiceSpec{Selector: map[string]string{"app": "theirs"}, Ports: []corev1.ServicePort{{Port: 11211}}},
	}
	s.must(k.Create(s.ctx, theirs))
	s.apply("cache", small(2))
	m, sentence := s.degraded("cache", v1alpha1.ReasonNameConflict)
	if !strings.Contains(sentence, "Service cache-1") {
		t.Errorf("the sentence does not name the Service: %s", sentence)
	}
	s.await("cache", "the other shard serves", func(m *v1alpha1.Memcached) error {
		shard, err := cluster.Shard(m, 0)
		if err == nil && !shard.Ready {
			err = fmt.Errorf("it does not: %s", shard.Message)
		}
		return err
	})
	s.holds(s.written("cache", 0, 100))
	for _, server := range m.Status.Servers {
		if strings.HasPrefix(server, "cache-1.") {
			t.Errorf("the address of somebody else's Service is given to clients: %v", m.Status.Servers)
		}
	}

	// neither a smaller size nor the end of the Memcached ends it
	s.apply("cache", small(1))
	s.available("cache")
	s.theirsStill(theirs)
	s.must(k.Delete(s.ctx, m))
	s.gone(&appsv1.ReplicaSet{}, "cache-0")
	s.theirsStill(theirs)

	s.apply("cache", small(2))
	s.degraded("cache", v1alpha1.ReasonNameConflict)
	s.must(k.Delete(s.ctx, theirs))
	began := time.Now()
	s.available("cache")
	t.Logf("the name was taken %s after it was free", time.Since(began).Round(100*time.Millisecond))
	s.holds(s.written("cache", 1, 100))
}

// theirsStill ends the test unless a Service is exactly as it was made.
func (s *space) theirsStill(theirs *corev1.Service) {
	s.Helper()
	now := &corev1.Service{}
	s.must(k.Get(s.ctx, client.ObjectKeyFromObject(theirs), now))
	if now.UID != theirs.UID || now.ResourceVersion != theirs.ResourceVersion {
		s.Fatalf("somebody else's Service was written to: it is now %+v", now)
	}
}

func TestAMemcachedMadeAgainAtOnceUnderTheSameNameWorks(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.apply("cache", small(2))
	m := s.available("cache")
	before := s.pods("cache")
	s.written("cache", 0, 100)

	s.must(k.Delete(s.ctx, m))
	s.apply("cache", small(2))
	began := time.Now()
	again := s.available("cache")
	t.Logf("available %s after it was made again", time.Since(began).Round(100*time.Millisecond))
	if again.UID == m.UID {
		t.Fatal("it is the same Memcached")
	}
	// A node's proxy may send to a pod that drains for a moment after its
	// replacement is ready.
	for shard, pod := range before {
		if s.pods("cache")[shard].UID == pod.UID {
			t.Errorf("shard %s is still in the pod of the deleted Memcached", shard)
		}
		s.gone(&pod, pod.Name)
	}
	if count, err := s.items("cache", 0, 100).Count(); err != nil || count > 0 {
		t.Errorf("it has %d items of the deleted one: %v", count, err)
	}
	s.holds(s.written("cache", 1, 100))
	// what the garbage collector still had to do is done by now, and took nothing of the new one's
	time.Sleep(2 * time.Second)
	s.available("cache")
}

func TestANamespaceThatIsDeletedLeavesNoStormOfErrors(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	for i := range 3 {
		s.apply(fmt.Sprintf("cache-%c", 'a'+i), small(1))
	}
	s.available("cache-a")
	s.apply("cache-d", small(2)) // is coming up
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}
	s.must(k.Delete(s.ctx, namespace))
	time.Sleep(15 * time.Second) // longer than a few retries that end in errors would take

	log, err := k.OperatorLog(s.ctx, &corev1.PodLogOptions{SinceSeconds: new(int64(300))})
	s.must(err)
	var errors []string
	for line := range strings.Lines(log) {
		if strings.Contains(line, s.namespace) && strings.Contains(strings.ToLower(line), "error") {
			errors = append(errors, line)
		}
	}
	// one a Memcached may be a write that the deletion overtook
	if len(errors) > 4 {
		t.Errorf("the operator logged %d errors: %s", len(errors), strings.Join(errors, ""))
	}
}
