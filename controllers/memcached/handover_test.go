package memcached

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	testclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/plan"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
)

// secretless is a client that must not read or change a Secret, and whose creations of one fail.
type secretless struct {
	client.Client
	err     error
	creates int
}

func (c *secretless) Create(ctx context.Context, o client.Object, options ...client.CreateOption) error {
	if _, ok := o.(*corev1.Secret); !ok {
		return c.Client.Create(ctx, o, options...)
	}
	c.creates++
	if c.err != nil {
		return c.err
	}
	return c.Client.Create(ctx, o, options...)
}

func handoverSecret(env *testEnv) *corev1.Secret {
	env.Helper()
	secret := &corev1.Secret{}
	env.read("cache-handover", secret)
	return secret
}

func TestHandoverSecretIsCreatedBeforeTheShards(t *testing.T) {
	env := newEnv(t)
	m := env.create("cache", "size: 2")
	env.converge("cache")
	secret, set := handoverSecret(env), &appsv1.ReplicaSet{}
	env.read("cache-0", set)
	if len(secret.Data[resources.HandoverKey]) != resources.HandoverKeySize || !metav1.IsControlledBy(secret, m) {
		t.Errorf("the Secret is %+v", secret)
	}
	if len(set.ResourceVersion) == len(secret.ResourceVersion) && set.ResourceVersion < secret.ResourceVersion {
		t.Error("the ReplicaSet is older than the Secret: its first pod can start without the key")
	}
	zero := true
	for _, b := range secret.Data[resources.HandoverKey] {
		zero = zero && b == 0
	}
	other := newEnv(t)
	other.create("cache", "size: 1")
	other.converge("cache")
	if zero || string(handoverSecret(other).Data[resources.HandoverKey]) == string(secret.Data[resources.HandoverKey]) {
		t.Error("the key isn't random")
	}

	// An idle Memcached costs no writes, and the next template recreates the Secret.
	counter := &secretless{Client: env.reconciler.Client}
	env.reconciler.Client = counter
	env.must(env.admin.Delete(env.ctx, secret))
	before := env.writes.Load()
	env.converge("cache")
	if counter.creates != 0 || env.writes.Load() != before {
		t.Errorf("an idle Memcached made %d writes, %d of them of a Secret", env.writes.Load()-before, counter.creates)
	}
	env.change("cache", func(m *v1alpha1.Memcached) { *m.Spec.Size = 3 })
	env.converge("cache")
	if handoverSecret(env).UID == secret.UID {
		t.Error("the Secret wasn't recreated")
	}
}

// The Secret of a deleted Memcached may be collected after another one of that name was created. The pods
// of that one would have no key.
func TestShardsWaitForTheCollectionOfAFormerHandoverSecret(t *testing.T) {
	env := newEnv(t)
	former := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: env.namespace, Name: "cache-handover"}, Data: map[string][]byte{"key": []byte("former")}}
	env.must(env.admin.Create(env.ctx, former))
	m := env.create("cache", "size: 1")
	env.reconciler.Clock = testclock.NewFakePassiveClock(m.CreationTimestamp.Add(plan.FormerSecret / 2))
	for range 3 {
		env.reconcile("cache")
	}
	if env.exists("cache-0", &appsv1.ReplicaSet{}) {
		t.Error("the shard doesn't wait")
	}
	env.must(env.admin.Delete(env.ctx, former))
	env.converge("cache")
	if !env.exists("cache-0", &appsv1.ReplicaSet{}) || !metav1.IsControlledBy(handoverSecret(env), m) {
		t.Errorf("the Secret is %+v", handoverSecret(env))
	}
	env.change("cache", func(m *v1alpha1.Memcached) { *m.Spec.Size = 2 }) // its own one exists
	env.converge("cache")
	if !env.exists("cache-1", &appsv1.ReplicaSet{}) {
		t.Error("the second shard waits")
	}
}

func TestExistingHandoverSecretIsKept(t *testing.T) {
	env := newEnv(t)
	others := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: env.namespace, Name: "cache-handover"}, Data: map[string][]byte{"key": []byte("theirs")}}
	env.must(env.admin.Create(env.ctx, others))
	env.create("cache", "size: 1")
	env.skipAnHour()
	env.wantCondition(env.converge("cache"), v1alpha1.ConditionDegraded, metav1.ConditionFalse, v1alpha1.ReasonAsExpected)
	if !env.exists("cache-0", &appsv1.ReplicaSet{}) {
		t.Error("there is no shard")
	}
	if secret := handoverSecret(env); secret.ResourceVersion != others.ResourceVersion {
		t.Errorf("the Secret was changed: %+v", secret)
	}
}

func TestModeOffCreatesNoHandoverSecret(t *testing.T) {
	env := newEnv(t)
	env.create("cache", `{size: 1, handover: {mode: Disabled}}`)
	env.converge("cache")
	if env.exists("cache-handover", &corev1.Secret{}) {
		t.Error("there is a Secret")
	}
}

// A pod whose Secret is missing would not receive items although nothing forbids it.
func TestShardsWaitForTheHandoverSecretUnlessItIsRejected(t *testing.T) {
	for name, c := range map[string]struct {
		err    error
		shards int
	}{
		"the API server doesn't respond": {apierrors.NewServiceUnavailable("try later"), 0},
		"a quota":                        {apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "cache-handover", nil), 1},
	} {
		t.Run(name, func(t *testing.T) {
			env := newEnv(t)
			failing := &secretless{Client: env.reconciler.Client, err: c.err}
			env.reconciler.Client = failing
			env.create("cache", "size: 1")
			if _, err := env.reconciler.Reconcile(env.ctx, ctrl.Request{NamespacedName: client.ObjectKey{Namespace: env.namespace, Name: "cache"}}); err == nil {
				t.Error("the write isn't repeated")
			}
			var sets appsv1.ReplicaSetList
			env.must(env.admin.List(env.ctx, &sets, client.InNamespace(env.namespace)))
			if len(sets.Items) != c.shards {
				t.Errorf("%d shards, want %d", len(sets.Items), c.shards)
			}
		})
	}
}

// A change of the memory moves each shard to another pod with its items: none is lost, and no refill follows.
func TestReplacementReceivesTheItems(t *testing.T) {
	cluster := newCluster(t, "cache", "{size: 2, refill: {}}")
	cluster.handsOver = true
	cluster.converge()
	cluster.createBackup("nightly", "cache", time.Minute)
	cluster.recorded()
	cluster.change("cache", func(m *v1alpha1.Memcached) { m.Spec.Memory = ptr.To(resource.MustParse("80Mi")) })
	var messages, shardMessages []string
	for range 40 {
		m := cluster.stepAll()
		if m.Status.Update != nil {
			messages = append(messages, m.Status.Update.Message)
		}
		for _, s := range m.Status.Shards {
			shardMessages = append(shardMessages, s.Message)
		}
		if m.Status.ReadySize < 1 {
			t.Fatalf("%d shards are ready", m.Status.ReadySize)
		}
	}
	m := cluster.get("cache")
	cluster.wantCondition(m, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonAllShardsReady)
	for _, s := range m.Status.Shards {
		if s.Start != v1alpha1.StartHandedOver || s.Items != itemsPerShard-1 || s.ItemsBefore != itemsPerShard || s.GapMilliseconds != 250 || !s.Current {
			t.Errorf("shard %+v", s)
		}
	}
	for _, want := range []string{"shard 1 of 2: memory 64Mi → 80Mi, which moves it to a new pod with its items", "received 25.0% of 1,000 items", "kept 99.9% of 1,000 items"} {
		if !slices.ContainsFunc(messages, func(m string) bool { return strings.Contains(m, want) }) {
			t.Errorf("no message of the update contains %q: %q", want, messages)
		}
	}
	if !slices.ContainsFunc(shardMessages, func(m string) bool { return strings.Contains(m, "received 25.0% of 1,000 items") }) {
		t.Errorf("no message of a shard has the progress: %q", shardMessages)
	}
	events := cluster.recorded()
	cluster.wantEvent(events, v1alpha1.EventShardHandedOver)
	for _, e := range events {
		for _, unwanted := range []string{v1alpha1.EventShardStartedEmpty, v1alpha1.EventEmptyStartAnnounced, v1alpha1.EventRefillStarted, v1alpha1.EventRefillSkipped, "Degraded"} {
			if strings.Contains(e, unwanted) {
				t.Errorf("event %s", e)
			}
		}
	}
	if restores := cluster.listRestores(); len(restores) > 0 {
		t.Errorf("a refill: %+v", restores)
	}
}

// A second pod may receive items for minutes. Nothing counts that as a failure, and only its shard isn't ready.
func TestReceivingPodIsNoProblem(t *testing.T) {
	cluster := newCluster(t, "cache", "size: 2")
	cluster.handsOver = true
	cluster.converge()
	cluster.change("cache", func(m *v1alpha1.Memcached) { m.Spec.Memory = ptr.To(resource.MustParse("80Mi")) })
	for range 10 {
		cluster.stepAll()
		if cluster.receiver() != nil {
			break
		}
	}
	if cluster.receiver() == nil {
		t.Fatal("no pod receives items")
	}
	for range 5 { // the source doesn't finish
		m := cluster.reconcile("cache")
		cluster.clock.Step(5 * time.Minute)
		cluster.wantCondition(m, v1alpha1.ConditionDegraded, metav1.ConditionFalse, v1alpha1.ReasonAsExpected)
		cluster.wantCondition(m, v1alpha1.ConditionProgressing, metav1.ConditionTrue, v1alpha1.ReasonUpdatingShard, "items")
		for _, s := range m.Status.Shards {
			if s.AgentUnreachableSince != nil {
				t.Errorf("shard %+v", s)
			}
		}
	}
}

// An update doesn't delete a pod for a second one that doesn't start, or whose agent doesn't hand over.
func TestPodsWithoutAKeyAreReplacedAsBefore(t *testing.T) {
	cluster := newCluster(t, "cache", `{size: 1, handover: {mode: Disabled}}`)
	cluster.handsOver = true
	cluster.converge()
	before := cluster.list()[0].UID
	cluster.change("cache", func(m *v1alpha1.Memcached) { m.Spec.Handover.Mode = v1alpha1.HandoverStrict })
	if m := cluster.converge(); cluster.list()[0].UID != before || m.Status.Update != nil {
		t.Error("the mode replaced a pod")
	}
	cluster.recorded()
	cluster.change("cache", func(m *v1alpha1.Memcached) {
		m.Spec.Handover.Mode, m.Spec.Memory = v1alpha1.HandoverDisabled, ptr.To(resource.MustParse("80Mi"))
	})
	m := cluster.converge()
	if s := m.Status.Shards[0]; s.Start != v1alpha1.StartCold || !s.Current {
		t.Errorf("shard %+v", s)
	}
	events := cluster.recorded()
	cluster.wantEvent(events, v1alpha1.EventEmptyStartAnnounced)
	cluster.wantEvent(events, v1alpha1.EventShardStartedEmpty)
}

// Clients that reach either pod would read items that the other one no longer has.
func TestOnlyOnePodServesAlsoWhileNothingElseIsChanged(t *testing.T) {
	memory := func(s *v1alpha1.MemcachedSpec) { s.Memory = ptr.To(resource.MustParse("80Mi")) }
	for name, c := range map[string]struct {
		edit   func(*v1alpha1.MemcachedSpec)
		former bool // the pod that remains
	}{
		"the Memcached is paused": {func(s *v1alpha1.MemcachedSpec) { s.Paused = true }, false},
		"it is paused, and its spec is as before": {func(s *v1alpha1.MemcachedSpec) {
			s.Paused, s.Memory = true, ptr.To(resource.MustParse("64Mi"))
		}, true},
		"the update strategy is invalid": {func(s *v1alpha1.MemcachedSpec) {
			s.UpdateStrategy = &v1alpha1.UpdateStrategy{Type: v1alpha1.UpdateHandover}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := newReadyCluster(t, "cache", `{size: 2, handover: {mode: Disabled}}`)
			former := cluster.list()
			cluster.change("cache", func(m *v1alpha1.Memcached) { memory(&m.Spec) })
			for i := 0; cluster.serving("cache-0") < 2; i++ {
				if i == 20 {
					t.Fatal("no second pod serves")
				}
				cluster.reconcile("cache")
				cluster.tick()
			}
			cluster.change("cache", func(m *v1alpha1.Memcached) { c.edit(&m.Spec) })
			cluster.must(cluster.admin.Delete(cluster.ctx, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.namespace, Name: "cache-1"}}))
			m := cluster.converge()
			if n := cluster.serving("cache-0"); n != 1 || (cluster.list()[0].UID == former[0].UID) != c.former {
				t.Errorf("%d pods of the shard serve, the first one is %s", n, cluster.list()[0].Name)
			}
			if !m.Spec.Paused {
				return
			}
			cluster.wantCondition(m, v1alpha1.ConditionProgressing, metav1.ConditionFalse, v1alpha1.ReasonPaused)
			if cluster.exists("cache-1", &corev1.Service{}) || cluster.list()[1].UID != former[1].UID {
				t.Error("something else was changed")
			}
			cluster.change("cache", func(m *v1alpha1.Memcached) { m.Spec.Paused = false })
			cluster.wantCondition(cluster.converge(), v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonAllShardsReady)
		})
	}
}

// serving returns how many pods of a shard serve.
func (cluster *fakeCluster) serving(shard string) (n int) {
	for _, p := range cluster.pods {
		if p.shard == shard && p.ready {
			n++
		}
	}
	return n
}

// Also outside of an update, such as when a node is drained.
func TestDeletedPodHandsOverItsItems(t *testing.T) {
	cluster := newCluster(t, "cache", "{size: 1, refill: {}}")
	cluster.handsOver = true
	cluster.converge()
	cluster.createBackup("nightly", "cache", time.Minute)
	cluster.recorded()
	cluster.must(cluster.admin.Delete(cluster.ctx, cluster.list()[0]))
	m := cluster.converge()
	if s := m.Status.Shards[0]; s.Start != v1alpha1.StartHandedOver || s.Items != itemsPerShard-1 {
		t.Errorf("shard %+v", s)
	}
	cluster.wantEvent(cluster.recorded(), v1alpha1.EventShardHandedOver)
	if restores := cluster.listRestores(); len(restores) > 0 {
		t.Errorf("a refill: %+v", restores)
	}
}

// stepAll makes one reconcile and one tick.
func (cluster *fakeCluster) stepAll() *v1alpha1.Memcached {
	cluster.Helper()
	m := cluster.reconcile(cluster.memcached)
	cluster.tick()
	cluster.clock.Step(time.Second)
	return m
}

// receiver returns the answer of the agent in a pod that has received items, or nil. Beside it there is one that waits: the
// ReplicaSet replaces the pod that is being deleted until the operator wants one pod again.
func (cluster *fakeCluster) receiver() *agentwire.Status {
	for _, agent := range cluster.agents {
		if agent.Phase == agentwire.PhaseReceiving && agent.Handover != nil {
			return &agent
		}
	}
	return nil
}

// Both pods are ready for some seconds. The shard counts once, and no other shard is updated yet.
func TestShardIsOneWhileBothItsPodsServe(t *testing.T) {
	cluster := newCluster(t, "cache", "{size: 2, handover: {mode: Available}}")
	cluster.handsOver, cluster.follows = true, true
	cluster.converge()
	cluster.recorded()
	cluster.change("cache", func(m *v1alpha1.Memcached) { m.Spec.Memory = ptr.To(resource.MustParse("80Mi")) })
	both := false
	for range 60 {
		m := cluster.stepAll()
		if m.Status.ReadySize > 2 || m.Status.ReadySize < 2 || len(m.Status.Nodes) != 2 || len(m.Status.Shards) != 2 {
			t.Fatalf("status %+v", m.Status)
		}
		for _, s := range m.Status.Shards {
			if strings.Contains(s.Message, "serves new connections") {
				if both = true; m.Status.Update == nil || m.Status.Update.Shard != s.Name {
					t.Errorf("the update is %+v while both pods of %s serve", m.Status.Update, s.Name)
				}
			}
		}
		ready := 0
		for _, p := range cluster.list() {
			if cluster.pods[p.UID] != nil && cluster.pods[p.UID].ready {
				ready++
			}
		}
		if ready > 3 {
			t.Fatal("two shards hand over their items at once")
		}
	}
	m := cluster.get("cache")
	cluster.wantCondition(m, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonAllShardsReady)
	for _, s := range m.Status.Shards {
		if s.Start != v1alpha1.StartHandedOver || s.GapMilliseconds != 0 || !s.Current {
			t.Errorf("shard %+v", s)
		}
	}
	if !both {
		t.Error("no message says that both pods serve")
	}
	cluster.wantEvent(cluster.recorded(), "no pod responded for 0s, and clients could read values that were up to 4.25s old (mode Available)")
}

// An update of the type Handover replaces the pod although memcached could restart in it, and checks no image
// on the nodes: the first pod serves until the second one runs.
func TestUpdateByHandoverReplacesThePod(t *testing.T) {
	for _, mode := range []v1alpha1.HandoverMode{v1alpha1.HandoverStrict, v1alpha1.HandoverAvailable} {
		t.Run(string(mode), func(t *testing.T) {
			cluster := newCluster(t, "cache", "{size: 1, version: 1.6.38, refill: {}, updateStrategy: {type: Handover}, handover: {mode: "+string(mode)+"}}")
			cluster.handsOver, cluster.follows = true, mode == v1alpha1.HandoverAvailable
			cluster.converge()
			before := cluster.list()[0]
			cluster.recorded()
			cluster.change("cache", func(m *v1alpha1.Memcached) { m.Spec.Version = "1.6.45" })
			for range 20 {
				m := cluster.stepAll()
				if m.Status.Update != nil && m.Status.Update.Method != v1alpha1.UpdateReplace {
					t.Fatalf("update %+v", m.Status.Update)
				}
				cluster.wantCondition(m, v1alpha1.ConditionDegraded, metav1.ConditionFalse, v1alpha1.ReasonAsExpected)
			}
			m, after := cluster.converge(), cluster.list()[0]
			if s := m.Status.Shards[0]; s.Start != v1alpha1.StartHandedOver || s.Version != "1.6.45" || !s.Current || after.UID == before.UID {
				t.Errorf("shard %+v", s)
			}
			cluster.wantEvent(cluster.recorded(), v1alpha1.EventShardHandedOver)
			for _, p := range cluster.pods {
				if p.unannounced > 0 || p.containers > 1 {
					t.Errorf("pod %+v", p)
				}
			}
		})
	}
}

// The other shards keep their pods, as after an update in place that loses the items.
func TestUpdateByHandoverThatLosesTheItemsStops(t *testing.T) {
	for name, c := range map[string]struct {
		strategy, memory string
		stops            bool
	}{
		"another version":    {"{type: Handover}", "", true},
		"another memory":     {"{type: Handover}", "80Mi", true},
		"onItemLoss":         {"{type: Handover, onItemLoss: Continue}", "", false},
		"memory and InPlace": {"{}", "80Mi", false},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := newCluster(t, "cache", "{size: 2, version: 1.6.38, updateStrategy: "+c.strategy+"}")
			cluster.handsOver, cluster.loses = true, true
			cluster.converge()
			before := cluster.get("cache").Status.Shards
			cluster.recorded()
			cluster.change("cache", func(m *v1alpha1.Memcached) {
				if m.Spec.Version = "1.6.45"; c.memory != "" {
					m.Spec.Version, m.Spec.Memory = "1.6.38", ptr.To(resource.MustParse(c.memory))
				}
			})
			m := cluster.converge()
			if s := m.Status.Shards[0]; s.Start != v1alpha1.StartCold || !s.Current || s.PodName == before[0].PodName {
				t.Errorf("shard %+v", s)
			}
			if !c.stops {
				cluster.wantCondition(m, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonAllShardsReady)
				return
			}
			cluster.wantCondition(m, v1alpha1.ConditionDegraded, metav1.ConditionTrue, v1alpha1.ReasonUpdateFailed, "cache-0, which lost its items", "the other pod was lost", "retry")
			if u := m.Status.Update; m.Status.Shards[1].PodName != before[1].PodName || u == nil || u.Gate != v1alpha1.GateUpdateFailed || u.Updated != 1 {
				t.Errorf("the update is %+v, shard %+v", u, m.Status.Shards[1])
			}
			for _, e := range cluster.recorded() {
				if strings.Contains(e, v1alpha1.EventShardRolledBack) {
					t.Errorf("event %s", e)
				}
			}
			cluster.loses = false
			cluster.change("cache", func(m *v1alpha1.Memcached) {
				metav1.SetMetaDataAnnotation(&m.ObjectMeta, v1alpha1.AnnotationRetry, "1")
			})
			m = cluster.converge()
			cluster.wantCondition(m, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonAllShardsReady)
			if s := m.Status.Shards[1]; s.Start != v1alpha1.StartHandedOver || !s.Current {
				t.Errorf("shard %+v", s)
			}
			// A later loss has nothing to do with the update.
			cluster.restartMemcached("cache-0", agentwire.StartCold)
			cluster.wantCondition(cluster.converge(), v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonAllShardsReady)
		})
	}
}

// A pod that can't hand over its items is updated in place rather than emptied.
func TestUpdateByHandoverNeedsAPodThatCanHandOver(t *testing.T) {
	cluster := newCluster(t, "cache", `{size: 1, version: 1.6.38, handover: {mode: Disabled}}`)
	cluster.converge()
	before := cluster.list()[0]
	cluster.change("cache", func(m *v1alpha1.Memcached) {
		m.Spec.Handover.Mode, m.Spec.Version = v1alpha1.HandoverStrict, "1.6.45"
		m.Spec.UpdateStrategy = &v1alpha1.UpdateStrategy{Type: v1alpha1.UpdateHandover}
	})
	m := cluster.converge()
	if s := m.Status.Shards[0]; s.Start != v1alpha1.StartWarm || !s.Current || cluster.list()[0].UID != before.UID {
		t.Errorf("shard %+v", s)
	}
}

func TestMoveAnnotationMovesAShardToAnotherNode(t *testing.T) {
	cluster := newCluster(t, "cache", "{size: 2, refill: {}}")
	cluster.handsOver = true
	cluster.converge()
	before := cluster.get("cache").Status.Shards
	cluster.annotateMove(before[1].PodName)
	cluster.recorded()
	avoided := false
	for range 20 {
		m := cluster.stepAll()
		if m.Status.Shards[0].PodName != before[0].PodName || m.Status.ReadySize < 1 {
			t.Fatalf("status %+v", m.Status)
		}
		avoided = avoided || strings.Contains(cluster.templateOf("cache-1"), `"values":["node1"]`)
	}
	m := cluster.converge()
	cluster.wantCondition(m, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonAllShardsReady)
	if s := m.Status.Shards[1]; s.Start != v1alpha1.StartHandedOver || s.PodName == before[1].PodName || !s.Current || !avoided {
		t.Errorf("shard %+v, its pod avoided the node: %t", s, avoided)
	}
	if strings.Contains(cluster.templateOf("cache-1"), "node1") {
		t.Error("the template still avoids the node")
	}
	cluster.wantEvent(cluster.recorded(), v1alpha1.EventShardHandedOver)
	cluster.annotateMove(m.Status.Shards[1].PodName) // the new pod can be moved, too
	if again := cluster.converge(); again.Status.Shards[1].PodName == m.Status.Shards[1].PodName {
		t.Error("the shard isn't moved a second time")
	}
}

// A user who removes the annotation before the pod is deleted keeps the pod.
func TestMoveEndsWithItsAnnotation(t *testing.T) {
	cluster := newCluster(t, "cache", "size: 1")
	cluster.handsOver = true
	cluster.converge()
	pod := cluster.list()[0]
	cluster.annotateMove(pod.Name)
	for range 3 {
		cluster.reconcile("cache")
	}
	if !strings.Contains(cluster.templateOf("cache-0"), "node1") {
		t.Fatal("the move hasn't begun")
	}
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"`+v1alpha1.AnnotationMove+`":null}}}`))
	cluster.must(cluster.admin.Patch(cluster.ctx, pod, patch))
	m := cluster.converge()
	if len(cluster.list()) != 1 || cluster.list()[0].UID != pod.UID || m.Status.Update != nil || strings.Contains(cluster.templateOf("cache-0"), "node1") {
		t.Errorf("status %+v", m.Status)
	}
}

func TestMoveOfAPodThatCannotHandOverIsRejected(t *testing.T) {
	cluster := newCluster(t, "cache", "{size: 1, handover: {mode: Disabled}}")
	cluster.converge()
	pod := cluster.list()[0]
	cluster.annotateMove(pod.Name)
	m := cluster.converge()
	cluster.wantCondition(m, v1alpha1.ConditionDegraded, metav1.ConditionTrue, string(v1alpha1.GateUpdatePathNotAllowed), "remove the annotation")
	if cluster.list()[0].UID != pod.UID {
		t.Error("the pod was replaced")
	}
}

func (cluster *fakeCluster) annotateMove(pod string) {
	cluster.Helper()
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"`+v1alpha1.AnnotationMove+`":"now"}}}`))
	cluster.must(cluster.admin.Patch(cluster.ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.namespace, Name: pod}}, patch))
}

func (cluster *fakeCluster) templateOf(shard string) string {
	cluster.Helper()
	set := &appsv1.ReplicaSet{}
	cluster.read(shard, set)
	raw, err := json.Marshal(set.Spec.Template.Spec)
	cluster.must(err)
	return string(raw)
}
