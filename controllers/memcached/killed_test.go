package memcached

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/manifests"
)

// The ways in which a spec is changed, each with how often a shard's container
// and its memcached are to start for it.
var updates = map[string]struct {
	change  func(*v1alpha1.MemcachedSpec)
	refuses string
	// on shard 0, on which a change is tried first.
	containers, starts int
	pods               int
	progressing        string
}{
	"an argument": {change: func(s *v1alpha1.MemcachedSpec) { s.Threads = ptr.To[int32](2) }, containers: 1, starts: 2, pods: 2, progressing: v1alpha1.ReasonSettled},
	"a version and an argument": {change: func(s *v1alpha1.MemcachedSpec) { s.Version, s.Threads = "1.6.45", ptr.To[int32](2) },
		containers: 2, starts: 2, pods: 2, progressing: v1alpha1.ReasonSettled},
	"a memory": {change: func(s *v1alpha1.MemcachedSpec) { s.Memory = ptr.To(resource.MustParse("80Mi")) }, containers: 1, starts: 1, pods: 4, progressing: v1alpha1.ReasonSettled},
	"an argument that memcached refuses": {change: func(s *v1alpha1.MemcachedSpec) { s.ExtraArgs = []string{"-R", "0"} }, refuses: `"-R"`,
		containers: 1, starts: 1, pods: 2, progressing: v1alpha1.GateUpdateFailed},
}

// TestAnUpdateEndsTheSameWhereverTheOperatorIsKilled kills the operator after each
// write of an update in turn. It must end as one that was not: in the same state,
// with no start of a container or of memcached more.
func TestAnUpdateEndsTheSameWhereverTheOperatorIsKilled(t *testing.T) {
	for name, update := range updates {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run := func(t *testing.T, lives int64) (end string, writes int64, killed bool) {
				k := newSettledKubelet(t, "cache", "{size: 2, version: 1.6.38}")
				if k.refuses = update.refuses; k.refuses != "" {
					k.patience = 8 // it takes its time to be sure
				}
				k.change("cache", func(m *v1alpha1.Memcached) { update.change(&m.Spec) })
				before := k.writes.Load()
				if lives > 0 {
					k.lives.Store(lives)
				}
				m := k.settle()
				writes = k.writes.Load() - before
				c := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionProgressing)
				if c.Reason != update.progressing {
					t.Fatalf("Progressing is %s: %s", c.Reason, c.Message)
				}
				return k.end(m), writes, k.killed
			}
			want, writes, _ := run(t, 0)
			for _, line := range []string{
				fmt.Sprintf("cache-0: containers %d, starts %d, unannounced 0", update.containers, update.starts),
				fmt.Sprintf("pods made: %d", update.pods),
			} {
				if !strings.Contains(want, line) {
					t.Fatalf("no %q in:\n%s", line, want)
				}
			}
			killedAfterEach(t, want, writes, run)
		})
	}
}

// TestAMemcachedIsMadeTheSameWhereverTheOperatorIsKilled kills the operator after each
// write of a creation in turn. News of shards wait for others meanwhile.
func TestAMemcachedIsMadeTheSameWhereverTheOperatorIsKilled(t *testing.T) {
	t.Parallel()
	run := func(t *testing.T, lives int64) (end string, writes int64, killed bool) {
		k := newKubelet(t, "cache", "size: 2")
		k.patience = int(gathers/time.Second) + 2
		if lives > 0 {
			k.lives.Store(lives)
		}
		m := k.settle()
		return k.end(m), k.writes.Load(), k.killed
	}
	want, writes, _ := run(t, 0)
	if made := int64(len(manifests.Keys("cache", 2)) + 2); writes != made {
		t.Errorf("%d writes, want %d", writes, made)
	}
	if line := "status of cache-1: current true, version 1.6.45, start Cold"; !strings.Contains(want, line) {
		t.Fatalf("no %q in:\n%s", line, want)
	}
	killedAfterEach(t, want, writes, run)
}

// killedAfterEach runs something with an operator that is killed after each of its
// writes in turn, which must end as it did without.
func killedAfterEach(t *testing.T, want string, writes int64, run func(t *testing.T, lives int64) (end string, writes int64, killed bool)) {
	t.Helper()
	for lives := int64(1); lives <= writes; lives++ {
		got, _, killed := run(t, lives)
		if !killed {
			t.Errorf("there were %d writes, and no %d. now", writes, lives)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("killed after write %d of %d it ends otherwise (-want +got):\n%s", lives, writes, diff)
		}
	}
	t.Logf("killed after each of %d writes", writes)
}

// end tells how everything stands, without what differs from run to run.
func (k *kubelet) end(m *v1alpha1.Memcached) string {
	k.Helper()
	var lines []string
	for _, pod := range k.list() {
		p := k.pods[pod.UID]
		lines = append(lines, fmt.Sprintf("%s: containers %d, starts %d, unannounced %d, %s, %s, labels %v, ready %t, held until %q",
			p.shard, p.containers, p.starts, p.unannounced, p.image, p.arguments, pod.Labels, p.ready, pod.Annotations[v1alpha1.AnnotationHoldUntil]))
	}
	var sets appsv1.ReplicaSetList
	k.must(admin.List(k.ctx, &sets, client.InNamespace(k.namespace)))
	for _, set := range sets.Items {
		lines = append(lines, fmt.Sprintf("%s: replicas %d, template %s, failed %s, held until %q", set.Name, *set.Spec.Replicas,
			set.Spec.Template.Annotations[v1alpha1.AnnotationSpec], set.Annotations[v1alpha1.AnnotationFailed], set.Spec.Template.Annotations[v1alpha1.AnnotationHoldUntil]))
	}
	var proofs corev1.PodList
	k.must(admin.List(k.ctx, &proofs, client.InNamespace(k.namespace), client.MatchingLabels(manifests.ProofLabels(k.memcached))))
	slices.Sort(lines)
	lines = append(lines, fmt.Sprintf("pods made: %d", k.made), fmt.Sprintf("proofs left: %d", len(proofs.Items)))
	for _, restore := range k.listRestores() {
		name, shards := restore.Name, restore.Spec.Shards
		if len(shards) > 0 {
			name = name[:strings.LastIndex(name, "-")] // what follows is of the pod
		}
		lines = append(lines, fmt.Sprintf("%s of shards %v: %s", name, shards, restore.Status.Phase))
	}
	if b := m.Status.Bootstrap; b != nil {
		lines = append(lines, fmt.Sprintf("bootstrap: %s, %s; served: %s", b.Phase, b.Message, strings.Join(k.served, "; ")))
	}
	for _, c := range m.Status.Conditions {
		lines = append(lines, fmt.Sprintf("%s %s %s", c.Type, c.Status, c.Reason))
	}
	for _, s := range m.Status.Shards {
		lines = append(lines, fmt.Sprintf("status of %s: current %t, version %s, start %s, %d of %d items", s.Name, s.Current, s.Version, s.Start, s.Items, s.ItemsBefore))
	}
	return strings.Join(lines, "\n")
}
