package host

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/shard"
	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
	"github.com/memcached-operator/memcached-operator/test/internal/items"
	"github.com/memcached-operator/memcached-operator/test/internal/suite"
)

// A kill leaves the lease, which the operator's next start waits for.
func TestKilledOperatorFinishesUpdate(t *testing.T) {
	const size, killedAt = 6, 3
	s := newSpace(t)
	s.Serve("cache", suite.Small(1))
	first, pod, began := s.Lives("cache"), s.operatorPod(), time.Now()
	s.Apply("cache", suite.Small(size))
	s.Eventually(fmt.Sprintf("%d ReplicaSets on the way to %d", killedAt, size), func(ctx context.Context) error {
		var sets appsv1.ReplicaSetList
		err := k.List(ctx, &sets, client.InNamespace(s.Namespace))
		if n := len(sets.Items); err == nil && n < killedAt {
			err = fmt.Errorf("there are %d", n)
		}
		return err
	})
	s.Must(syscall.Kill(s.process(pod, "/manager\x00"), syscall.SIGKILL))
	m := s.Available("cache")
	t.Logf("operator killed at %d of %d shards: done after %s", killedAt, size, time.Since(began).Round(100*time.Millisecond))
	if m.Status.Size != size || len(s.Pods("cache")) != size {
		t.Errorf("the status has %d shards, there are %d pods, want %d", m.Status.Size, len(s.Pods("cache")), size)
	}
	s.Untouched("cache", first)
	s.Must(k.OperatorReady(s.Ctx))
}

// operatorPod waits until one operator runs and none of before is left, and returns its pod. The Deployment's status may not
// know yet of a pod that was deleted.
func (s *space) operatorPod() corev1.Pod {
	s.Helper()
	var pods []corev1.Pod
	s.Eventually("one operator", func(ctx context.Context) error {
		var err error
		if pods, err = k.OperatorPods(ctx); err != nil {
			return err
		}
		if len(pods) != 1 || pods[0].DeletionTimestamp != nil || !shard.IsReady(&pods[0]) {
			return fmt.Errorf("%d pods are there, one of them may end or start", len(pods))
		}
		return nil
	})
	return pods[0]
}

// process returns the identifier of the pod's process that has a name, or whose command begins with it. The nodes of the
// local cluster are namespaces of this machine, so it is one of this machine's too; its control group is named after the pod.
func (s *space) process(pod corev1.Pod, begins string) int {
	s.Helper()
	processes, err := filepath.Glob("/proc/[0-9]*")
	s.Must(err)
	for _, process := range processes {
		groups, _ := os.ReadFile(filepath.Join(process, "cgroup")) // a process may have exited
		command, _ := os.ReadFile(filepath.Join(process, "cmdline"))
		name, _ := os.ReadFile(filepath.Join(process, "comm"))
		if strings.Contains(string(groups), string(pod.UID)) && (strings.HasPrefix(string(command), begins) || strings.TrimSpace(string(name)) == begins) {
			pid, err := strconv.Atoi(filepath.Base(process))
			s.Must(err)
			return pid
		}
	}
	s.Fatalf("no process of pod %s is on this machine: this test is for the local cluster, run as root", pod.Name)
	return 0
}

func TestShardsServeWithoutOperatorAndAreUnchangedByItsReturn(t *testing.T) {
	s := newSpace(t)
	s.Serve("cache", suite.Small(2))
	kept := s.Written("cache", 1, 1000)
	before := s.Lives("cache")
	moved := newSpace(t) // their pods are deleted while there is no operator
	moved.Apply("strict", suite.Small(1))
	moved.Apply("available", suite.Small(1, suite.Handover(v1beta1.HandoverAvailable)))
	handed, pods := map[string]*items.Set{}, map[string]corev1.Pod{}
	for _, name := range []string{"strict", "available"} {
		moved.Available(name)
		handed[name], pods[name] = moved.Written(name, 0, 1000), moved.Pods(name)[cluster.ShardName(name, 0)]
	}
	since := time.Now()
	stop := s.Probes("cache", 2)
	image, err := k.OperatorImage(s.Ctx)
	s.Must(err)
	s.ReturnsOperator(image, func(context.Context) error { return nil })

	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: cluster.OperatorNamespace}}
	s.Must(k.Delete(s.Ctx, namespace))
	s.Must(k.Gone(s.Ctx, namespace))
	s.Holds(kept)
	served := moved.Probes("available", 1)
	for _, pod := range pods {
		s.Must(k.Delete(s.Ctx, &pod))
	}
	for name, pod := range pods {
		moved.Gone(&pod, pod.Name)
		moved.Eventually("the new pod is behind the Service", func(context.Context) error {
			_, err := handed[name].Keep(1)
			return err
		})
	}
	served()

	s.Must(k.Install(s.Ctx, image))
	s.Must(k.UseNewest(s.Ctx))
	s.ScaleTo("cache", 3) // it acts again
	s.Available("cache")
	stop()
	s.Untouched("cache", before)
	s.Holds(kept)
	for name, pod := range pods {
		if shard := moved.Shard(moved.Available(name), 0); shard.StartResult != v1beta1.StartHandedOver || shard.PodName == pod.Name {
			t.Errorf("%s: the status of the shard that moved without an operator is %+v", name, shard)
		}
	}
	writes, err := cluster.OperatorWrites(s.Ctx, s.Namespace, since)
	s.Must(err)
	if len(writes) == 0 {
		t.Error("the audit log has no write, not even for the third shard")
	}
	for _, w := range writes {
		if strings.HasPrefix(w.Resource, "pods") {
			t.Errorf("a pod was written to: %s", w)
		}
	}
}

// operatorMemory is what the operator may take, in bytes, while the idle Memcacheds are there.
const operatorMemory = 64 << 20

func TestOperatorUsesAtMost64MiB(t *testing.T) {
	s := atRest(t)
	// Garbage is collected and returned to the system within minutes, and an operator that has just started has little.
	s.Eventually(fmt.Sprintf("the operator takes at most %.0f MiB", float64(operatorMemory)/(1<<20)), func(context.Context) error {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.process(s.operatorPod(), "/manager\x00")))
		s.Must(err)
		var resident float64
		_, rss, _ := strings.Cut(string(status), "\nVmRSS:")
		_, err = fmt.Sscan(rss, &resident)
		s.Must(err)
		resident *= 1 << 10
		s.Logf("the operator's resident memory: %.1f MiB", resident/(1<<20))
		if resident > operatorMemory {
			return fmt.Errorf("it takes %.1f MiB", resident/(1<<20))
		}
		return nil
	})
}
