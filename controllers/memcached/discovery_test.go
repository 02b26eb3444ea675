package memcached

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/plan"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
)

// lists returns the different lists of the shards that pods have.
func (cluster *fakeCluster) lists() (all []string) {
	for _, pod := range cluster.list() {
		all = append(all, pod.Annotations[annotations.Discovery])
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// wantList checks that all pods have the same list, that of the status, and returns it.
func (cluster *fakeCluster) wantList(size int) plan.ShardList {
	cluster.Helper()
	lists := cluster.lists()
	if len(lists) != 1 {
		cluster.Fatalf("the pods have the lists %q", lists)
	}
	l := plan.ParseShardList(lists[0])
	want := plan.ShardList{Version: l.Version}
	for ordinal := range size {
		service := &corev1.Service{}
		cluster.read(resources.ShardName(cluster.memcached, ordinal), service)
		want.Servers = append(want.Servers, fmt.Sprintf("%s-%d.%s.svc|%s|11211", cluster.memcached, ordinal, cluster.namespace, service.Spec.ClusterIP))
	}
	if lists[0] != want.String() {
		cluster.Errorf("the pods have the list\n%s, want\n%s", lists[0], want)
	}
	if d := cluster.get(cluster.memcached).Status.Discovery; d == nil || d.Version != l.Version || int(d.Size) != size ||
		d.Endpoint != cluster.memcached+"-discovery."+cluster.namespace+".svc:11211" {
		cluster.Errorf("the status is %+v, and the list %q", d, lists[0])
	}
	return l
}

// reconcileAndTick is one round of converge.
func (cluster *fakeCluster) reconcileAndTick() ctrl.Result {
	cluster.Helper()
	result, err := cluster.reconciler.Reconcile(cluster.ctx, ctrl.Request{NamespacedName: client.ObjectKey{Namespace: cluster.namespace, Name: cluster.memcached}})
	cluster.must(err)
	cluster.tick()
	cluster.clock.Step(time.Second)
	return result
}

func TestDiscoveryListsTheShardsWithoutARestart(t *testing.T) {
	cluster := newReadyCluster(t, "cache", "size: 2")
	if lists := cluster.lists(); !slices.Equal(lists, []string{""}) {
		t.Errorf("without discovery, pods have the lists %q", lists)
	}
	names := func() (all []string) {
		for _, pod := range cluster.list() {
			all = append(all, pod.Name)
		}
		return all
	}
	pods := names()
	cluster.change("cache", func(m *v1alpha1.Memcached) { m.Spec.Discovery.Enabled = true })
	m := cluster.converge()
	cluster.wantList(2)
	service := &corev1.Service{}
	cluster.read("cache-discovery", service)
	if p := service.Spec.Ports; len(p) != 1 || p[0].Port != 11211 || p[0].TargetPort.String() != "discovery" || service.Spec.Type != corev1.ServiceTypeClusterIP {
		t.Errorf("the ports of the endpoint are %+v", p)
	}
	set := &appsv1.ReplicaSet{}
	cluster.read("cache-1", set)
	if got := set.Spec.Template.Annotations[annotations.Discovery]; got != cluster.lists()[0] {
		t.Errorf("a pod that replaces another one while the operator is down has the list %q", got)
	}
	if m.Status.Update != nil || !slices.Equal(names(), pods) {
		t.Errorf("enabling it changed shards: %+v, pods %s", m.Status.Update, names())
	}
	writes := cluster.writes.Load()
	cluster.reconcileAndTick()
	if n := cluster.writes.Load() - writes; n != 0 {
		t.Errorf("%d writes although nothing changed", n)
	}

	cluster.change("cache", func(m *v1alpha1.Memcached) { m.Spec.Discovery.Enabled = false })
	m = cluster.converge()
	if lists := cluster.lists(); !slices.Equal(lists, []string{""}) || m.Status.Discovery != nil || cluster.exists("cache-discovery", service) {
		t.Errorf("after it was disabled, pods have the lists %q, the status %+v", lists, m.Status.Discovery)
	}
	if !slices.Equal(names(), pods) {
		t.Errorf("disabling it replaced pods: %s", names())
	}
}

func TestDiscoveryAddsAShardWhenItIsReady(t *testing.T) {
	cluster := newReadyCluster(t, "cache", "{size: 2, discovery: {enabled: true}}")
	first := cluster.wantList(2)
	cluster.change("cache", func(m *v1alpha1.Memcached) { m.Spec.Size = new(int32(3)) })
	unready := 0
	for range 100 {
		cluster.reconcileAndTick()
		pods := cluster.list()
		if len(plan.PublishedList(cluster.observe("cache")).Servers) == 3 {
			break
		}
		if len(pods) == 3 && !cluster.get("cache").Status.Shards[2].Ready {
			unready++
		}
	}
	if unready == 0 || !cluster.get("cache").Status.Shards[2].Ready {
		t.Errorf("the third shard was listed before it was ready, after %d rounds", unready)
	}
	cluster.converge()
	set := &appsv1.ReplicaSet{}
	if cluster.read("cache-0", set); set.Spec.Template.Annotations[annotations.Discovery] != cluster.lists()[0] {
		t.Errorf("the next pod of the first shard has the list %q", set.Spec.Template.Annotations[annotations.Discovery])
	}
	if second := cluster.wantList(3); second.Version <= first.Version {
		t.Errorf("version %d follows %d", second.Version, first.Version)
	}

	cluster.losePod("cache-2")
	cluster.reconcileAndTick()
	if list := plan.PublishedList(cluster.observe("cache")); len(list.Servers) != 3 {
		t.Errorf("while a shard has no pod, the list is %s", list)
	}
	cluster.converge()
	third := cluster.wantList(3)
	service := &corev1.Service{}
	cluster.read("cache-0", service)
	cluster.must(cluster.admin.Delete(cluster.ctx, service))
	if cluster.converge(); cluster.wantList(3).Version <= third.Version {
		t.Errorf("after a shard got another address, the version is still %d", third.Version)
	}
}

func TestDiscoveryRemovesAShardBeforeItIsDeleted(t *testing.T) {
	cluster := newReadyCluster(t, "cache", "{size: 3, discovery: {enabled: true}}")
	first := cluster.wantList(3)
	cluster.change("cache", func(m *v1alpha1.Memcached) { m.Spec.Size = new(int32(2)) })
	m := cluster.converge()
	second := cluster.wantList(2) // in the pod of the third shard, too, which some clients ask
	if second.Version <= first.Version {
		t.Errorf("version %d follows %d", second.Version, first.Version)
	}
	until := m.Status.Discovery.ChangedAt.Add(plan.ScaleInDelay).UTC().Format(time.RFC3339)
	for _, c := range m.Status.Conditions {
		if c.Type == v1alpha1.ConditionProgressing && (c.Reason != v1alpha1.ReasonScalingIn || !strings.Contains(c.Message, until)) {
			t.Errorf("in the meantime the condition is %+v", c)
		}
	}
	cluster.clock.SetTime(m.Status.Discovery.ChangedAt.Add(plan.ScaleInDelay - 3*time.Second))
	if result := cluster.reconcileAndTick(); result.RequeueAfter != 3*time.Second || !cluster.exists("cache-2", &appsv1.ReplicaSet{}) {
		t.Errorf("the shard was deleted before its time, and the next look is in %s", result.RequeueAfter)
	}
	cluster.clock.Step(3 * time.Second)
	if m = cluster.converge(); cluster.exists("cache-2", &appsv1.ReplicaSet{}) || m.Status.Size != 2 {
		t.Error("the shard was not deleted")
	}
	cluster.wantList(2)
}

// An operator that is killed between the writes to the pods and the status waits all the same.
func TestShardStaysListedForItsTimeWhenTheOperatorIsKilled(t *testing.T) {
	for writes := int64(1); writes < 50; writes++ {
		cluster := newReadyCluster(t, "cache", "{size: 2, discovery: {enabled: true}}")
		cluster.change("cache", func(m *v1alpha1.Memcached) { m.Spec.Size = new(int32(1)) })
		cluster.writesLeft.Store(writes)
		cluster.converge()
		if !cluster.killed {
			if writes < 5 {
				t.Errorf("the operator was killed after at most %d writes", writes-1)
			}
			return
		}
		changed := cluster.wantList(1)
		deadline := time.Unix(changed.Version, 0).Add(plan.ScaleInDelay - 2*time.Second)
		for cluster.clock.Now().Before(deadline) {
			if cluster.reconcileAndTick(); !cluster.exists("cache-1", &appsv1.ReplicaSet{}) {
				t.Fatalf("killed after %d writes: the shard was deleted %s after it was removed from the list", writes, cluster.clock.Now().Sub(time.Unix(changed.Version, 0)))
			}
			cluster.clock.Step(9 * time.Second)
		}
		cluster.clock.Step(plan.ScaleInDelay)
		if cluster.converge(); cluster.exists("cache-1", &appsv1.ReplicaSet{}) {
			t.Errorf("killed after %d writes: the shard was never deleted", writes)
		}
	}
}

func TestDiscoveryVersionGrowsWhenAMemcachedIsCreatedAgain(t *testing.T) {
	cluster := newReadyCluster(t, "cache", "{size: 1, discovery: {enabled: true}}")
	for range 3 { // several versions within a second
		service := &corev1.Service{}
		cluster.read("cache-0", service)
		cluster.must(cluster.admin.Delete(cluster.ctx, service))
		cluster.converge()
	}
	before := cluster.wantList(1)
	cluster.must(cluster.admin.Delete(cluster.ctx, cluster.get("cache")))
	for _, o := range []client.Object{&appsv1.ReplicaSet{}, &corev1.Service{}, &corev1.Pod{}} { // as the garbage collector does
		cluster.must(cluster.admin.DeleteAllOf(cluster.ctx, o, client.InNamespace(cluster.namespace), client.GracePeriodSeconds(0)))
	}
	var services corev1.ServiceList
	cluster.must(cluster.admin.List(cluster.ctx, &services, client.InNamespace(cluster.namespace)))
	for i := range services.Items {
		cluster.must(cluster.admin.Delete(cluster.ctx, &services.Items[i]))
	}
	cluster.create("cache", "{size: 1, discovery: {enabled: true}}")
	if cluster.converge(); cluster.wantList(1).Version <= before.Version {
		t.Errorf("its version is not above %d", before.Version)
	}
}

func TestServicesHaveTheMetadataOfTheSpec(t *testing.T) {
	cluster := newReadyCluster(t, "cache", "{size: 1, discovery: {enabled: true}}")
	starts := cluster.get("cache").Status.Shards[0].StartedAt
	for _, metadata := range []map[string]string{{"example.com/team": "shop"}, {"example.com/owner": "search"}, nil} {
		cluster.change("cache", func(m *v1alpha1.Memcached) { m.Spec.Service.Labels, m.Spec.Service.Annotations = metadata, metadata })
		m := cluster.converge()
		for _, name := range []string{"cache", "cache-0", "cache-discovery"} {
			service := &corev1.Service{}
			cluster.read(name, service)
			for _, key := range []string{"example.com/team", "example.com/owner"} {
				if service.Labels[key] != metadata[key] || service.Annotations[key] != metadata[key] {
					t.Errorf("%s of %s is %q, %q, want %q", key, name, service.Labels[key], service.Annotations[key], metadata[key])
				}
			}
			if service.Labels[v1alpha1.LabelInstance] != "cache" {
				t.Errorf("the labels of %s are %v", name, service.Labels)
			}
		}
		if m.Status.Update != nil || !m.Status.Shards[0].StartedAt.Equal(starts) {
			t.Errorf("a shard changed: %+v", m.Status)
		}
	}
}
