package memcached

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
)

// updates are changes of a spec.
var updates = map[string]struct {
	change           func(*v1alpha1.MemcachedSpec)
	rejectedArgument string
	// containers and starts are how many shard 0 has after it; it is updated first.
	containers, starts int
	pods               int
	progressing        string
	handsOver, kill    bool
}{
	"an argument": {change: func(s *v1alpha1.MemcachedSpec) { s.Threads = ptr.To[int32](2) }, containers: 1, starts: 2, pods: 2, progressing: v1alpha1.ReasonUpToDate, kill: true},
	"a version and an argument": {change: func(s *v1alpha1.MemcachedSpec) { s.Version, s.Threads = "1.6.45", ptr.To[int32](2) },
		containers: 2, starts: 2, pods: 2, progressing: v1alpha1.ReasonUpToDate},
	"a memory": {change: func(s *v1alpha1.MemcachedSpec) { s.Memory = ptr.To(resource.MustParse("80Mi")) }, containers: 1, starts: 1, pods: 4, progressing: v1alpha1.ReasonUpToDate},
	// The ReplicaSet creates a third pod of each shard for a moment.
	"a memory, with a handover": {change: func(s *v1alpha1.MemcachedSpec) { s.Memory = ptr.To(resource.MustParse("80Mi")) }, containers: 1, starts: 1, pods: 6,
		progressing: v1alpha1.ReasonUpToDate, handsOver: true},
	"an argument that memcached rejects": {change: func(s *v1alpha1.MemcachedSpec) { s.ExtraArgs = []string{"-R", "0"} }, rejectedArgument: `"-R"`,
		containers: 1, starts: 1, pods: 2, progressing: v1alpha1.ReasonUpdateFailed},
}

// The result is the same as without: the same state, with no additional start of a container
// or of memcached. The simulation's
// TestScenariosConvergeWhicheverWriteFails does for all kinds of changes.
func TestUpdateHasTheSameResultWhenTheOperatorIsKilledAfterAnyWrite(t *testing.T) {
	for name, update := range updates {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run := func(t *testing.T, writesLeft int64) (summary string, writes int64, killed bool) {
				cluster := newReadyCluster(t, "cache", "{size: 2, version: 1.6.38}")
				cluster.handsOver = update.handsOver
				if cluster.rejectedArgument = update.rejectedArgument; cluster.rejectedArgument != "" {
					cluster.idleRounds = 8 // the rejection is certain after some seconds
				}
				cluster.change("cache", func(m *v1alpha1.Memcached) { update.change(&m.Spec) })
				before := cluster.writes.Load()
				if writesLeft > 0 {
					cluster.writesLeft.Store(writesLeft)
				}
				m := cluster.converge()
				writes = cluster.writes.Load() - before
				c := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionProgressing)
				if c.Reason != update.progressing {
					t.Fatalf("Progressing is %s: %s", c.Reason, c.Message)
				}
				return cluster.summary(m), writes, cluster.killed
			}
			want, writes, _ := run(t, 0)
			for _, line := range []string{
				fmt.Sprintf("cache-0: containers %d, starts %d, unannounced 0", update.containers, update.starts),
				fmt.Sprintf("pods created: %d", update.pods),
			} {
				if !strings.Contains(want, line) {
					t.Fatalf("missing %q in:\n%s", line, want)
				}
			}
			if update.kill {
				killAfterEachWrite(t, want, writes, run)
			}
		})
	}
}

func TestCreationHasTheSameResultWhenTheOperatorIsKilledAfterAnyWrite(t *testing.T) {
	created := int64(len(keysOf("cache", 2)) + 1) // with the Secret
	for spec, c := range map[string]struct {
		writes int64 // without the objects
		line   string
	}{
		"size: 2":     {2, "status of cache-1: current true, version 1.6.45, start Cold"},
		withBootstrap: {6, "bootstrap: Complete, the shards got 2,000 restored items"},
	} {
		run := func(t *testing.T, writesLeft int64) (summary string, writes int64, killed bool) {
			cluster := newCluster(t, "cache", spec)
			cluster.finishRestore = completeRestore
			if writesLeft > 0 {
				cluster.writesLeft.Store(writesLeft)
			}
			m := cluster.converge()
			return cluster.summary(m), cluster.writes.Load(), cluster.killed
		}
		want, writes, _ := run(t, 0)
		if writes != created+c.writes {
			t.Errorf("%s: %d writes, want %d", spec, writes, created+c.writes)
		}
		if !strings.Contains(want, c.line) {
			t.Fatalf("%s: missing %q in:\n%s", spec, c.line, want)
		}
		killAfterEachWrite(t, want, writes, run)
	}
}

// killAfterEachWrite runs a test once for each of its writes, with an operator that is killed
// after that write, and compares the results.
func killAfterEachWrite(t *testing.T, want string, writes int64, run func(t *testing.T, writesLeft int64) (summary string, writes int64, killed bool)) {
	t.Helper()
	for writesLeft := int64(1); writesLeft <= writes; writesLeft++ {
		got, _, killed := run(t, writesLeft)
		if !killed {
			t.Errorf("%d writes without being killed, but write %d was never made", writes, writesLeft)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("killed after write %d of %d (-want +got):\n%s", writesLeft, writes, diff)
		}
	}
	t.Logf("killed after each of %d writes", writes)
}

// summary describes the state of everything, without what differs from run to run.
func (cluster *fakeCluster) summary(m *v1alpha1.Memcached) string {
	cluster.Helper()
	var lines []string
	for _, pod := range cluster.list() {
		p := cluster.pods[pod.UID]
		lines = append(lines, fmt.Sprintf("%s: containers %d, starts %d, unannounced %d, %s, %s, labels %v, ready %t",
			p.shard, p.containers, p.starts, p.unannounced, p.image, p.arguments, pod.Labels, p.ready))
	}
	var sets appsv1.ReplicaSetList
	cluster.must(cluster.admin.List(cluster.ctx, &sets, client.InNamespace(cluster.namespace)))
	for _, set := range sets.Items {
		lines = append(lines, fmt.Sprintf("%s: replicas %d, template %s, failed %s", set.Name, *set.Spec.Replicas,
			set.Spec.Template.Annotations[annotations.Spec], set.Annotations[annotations.Failed]))
	}
	var preflightPods corev1.PodList
	cluster.must(cluster.admin.List(cluster.ctx, &preflightPods, client.InNamespace(cluster.namespace), client.MatchingLabels(resources.PreflightLabels(cluster.memcached))))
	slices.Sort(lines)
	lines = append(lines, fmt.Sprintf("pods created: %d", cluster.podsCreated), fmt.Sprintf("preflight pods: %d", len(preflightPods.Items)))
	for _, restore := range cluster.listRestores() {
		name, shards := restore.Name, restore.Spec.Shards
		if len(shards) > 0 {
			name = name[:strings.LastIndex(name, "-")] // the suffix depends on the pod
		}
		lines = append(lines, fmt.Sprintf("%s of shards %v: %s", name, shards, restore.Status.Phase))
	}
	if b := m.Status.Bootstrap; b != nil {
		lines = append(lines, fmt.Sprintf("bootstrap: %s, %s", b.Phase, b.Message))
	}
	for _, c := range m.Status.Conditions {
		lines = append(lines, fmt.Sprintf("%s %s %s", c.Type, c.Status, c.Reason))
	}
	for _, s := range m.Status.Shards {
		lines = append(lines, fmt.Sprintf("status of %s: current %t, version %s, start %s, %d of %d items", s.Name, s.Current, s.Version, s.Start, s.Items, s.ItemsBefore))
	}
	return strings.Join(lines, "\n")
}
