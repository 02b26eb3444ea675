package plan_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/observation"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/plan"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/plan/plantest"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/rollout"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/shard"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/shard/shardtest"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
)

func TestBindingFollowsTheSize(t *testing.T) {
	secret := resources.Key{Kind: resources.KindSecret, Name: v1beta1.BindingSecretName("cache")}
	existing := func(obs *observation.Observation, owner observation.Ownership) *corev1.Secret {
		s := resources.NewBuilder(obs.Memcached, plantest.Options).BindingSecret()
		s.UID, s.ResourceVersion, s.Data["servers"], s.Data[v1beta1.BindingPasswordKey] = "secret", "17", []byte("cache-0"), []byte("password")
		obs.Binding = observation.Object{APIObject: s, Owner: owner}
		return s
	}
	listed := func(size int32) func(*observation.Observation) {
		return func(obs *observation.Observation) {
			obs.Memcached.Status.Binding = &v1beta1.BindingStatus{Name: secret.Name, Size: size}
		}
	}
	failed := func(obs *observation.Observation, ago time.Duration) {
		obs.BindingTriedAt = obs.Now.Add(-ago)
	}
	for name, c := range map[string]struct {
		change  func(*observation.Observation)
		want    []string
		message string
	}{
		"spec.access.binding isn't set":    {func(obs *observation.Observation) { obs.Memcached.Spec.Access.Binding.Mode = v1beta1.BindingDisabled }, nil, ""},
		"it is new":                        {func(*observation.Observation) {}, []string{"create Secret cache-binding", "again in 30s"}, ""},
		"it lists all shards":              {listed(2), []string{"create Secret cache-binding", "again in 5m0s"}, ""}, // it may have been deleted
		"it lists all shards, as is known": {func(obs *observation.Observation) { listed(2)(obs); failed(obs, time.Minute) }, []string{"again in 4m0s"}, ""},
		"it was rejected a moment ago": {func(obs *observation.Observation) {
			listed(2)(obs)
			failed(obs, time.Second)
			obs.Memcached.Status.Binding.Message = "exceeded quota"
		}, []string{"again in 29s"}, "exceeded quota"},
		"it was rejected 30 seconds ago": {func(obs *observation.Observation) {
			listed(2)(obs)
			failed(obs, 30*time.Second)
			obs.Memcached.Status.Binding.Message = "exceeded quota"
		}, []string{"create Secret cache-binding", "again in 30s"}, "exceeded quota"},
		"a new shard isn't ready":      {func(obs *observation.Observation) { listed(1)(obs); obs.Memcached.Status.ReadyShards = 1 }, nil, ""},
		"a new shard is ready":         {func(obs *observation.Observation) { listed(1)(obs); existing(obs, observation.Ours) }, []string{"update Secret cache-binding", "again in 30s"}, ""},
		"a shard will be removed":      {func(obs *observation.Observation) { listed(3)(obs); existing(obs, observation.Ours) }, []string{"update Secret cache-binding", "again in 30s"}, ""},
		"another owner has its name":   {func(obs *observation.Observation) { existing(obs, observation.Foreign) }, []string{"again in 30s"}, "rename or delete it"},
		"its type is another one":      {func(obs *observation.Observation) { existing(obs, observation.Ours).Type = corev1.SecretTypeOpaque }, []string{"again in 30s"}, "rename or delete it"},
		"a former Memcached had it":    {func(obs *observation.Observation) { existing(obs, observation.Predecessors) }, []string{"again in 30s"}, "waiting until the Secret cache-binding of a deleted Memcached is deleted"},
		"it can't be read":             {func(obs *observation.Observation) { obs.BindingForbidden = true }, []string{"create Secret cache-binding", "again in 30s"}, "grant it these permissions"},
		"it can't be read, and exists": {func(obs *observation.Observation) { obs.BindingForbidden = true; failed(obs, time.Second) }, []string{"again in 30s"}, "grant it these permissions"},
	} {
		t.Run(name, func(t *testing.T) {
			obs := plantest.Running(t, 2, func(s *v1beta1.MemcachedSpec) { s.Access.Binding.Mode = v1beta1.BindingSecret })
			c.change(obs)
			p := plantest.Plan(obs)
			if diff := cmp.Diff(c.want, describe(p.Actions)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if s := p.Binding.Status; s != nil && (!strings.Contains(s.Message, c.message) || (s.Message == "") != (c.message == "")) {
				t.Errorf("%+v, want %q", s, c.message)
			}
			if b := p.Actions.Binding; b != nil && b.UID != "" {
				if string(b.Data[v1beta1.BindingPasswordKey]) != "password" || b.ResourceVersion != "17" || strings.Count(string(b.Data["servers"]), "cache-") != 2 {
					t.Errorf("the Secret is %s", b.Data)
				}
			}
		})
	}
}

// published returns an observation of a Memcached whose pods have a list of all its shards, of a minute ago.
func published(t *testing.T, size int32) *observation.Observation {
	obs := plantest.Running(t, size, func(s *v1beta1.MemcachedSpec) { s.Access.Discovery.Mode = v1beta1.DiscoveryElastiCache })
	list := plan.ShardList{Version: obs.Now.Add(-time.Minute).Unix()}
	for _, name := range obs.Names {
		list.Servers = append(list.Servers, name+".default.svc.cluster.local|10.96.0.1|11211")
	}
	for _, pods := range obs.Pods {
		pods[0].Annotations[annotations.Discovery] = list.String()
	}
	obs.Memcached.Status.Discovery = &v1beta1.DiscoveryStatus{Version: list.Version, Size: size, LastChangeTime: metav1.NewTime(obs.Now.Add(-time.Minute))}
	return obs
}

func TestClientsFindTheShards(t *testing.T) {
	name := func(ordinal int) string { return resources.ShardName("cache", ordinal) }
	service := func(obs *observation.Observation, ordinal int) *corev1.Service {
		return obs.Objects[resources.Key{Kind: resources.KindService, Name: name(ordinal)}].APIObject.(*corev1.Service)
	}
	for what, c := range map[string]struct {
		change  func(*observation.Observation)
		size    int32 // of the list
		newer   bool  // than the published one
		patches int
		delay   time.Duration
	}{
		"all shards are listed": {func(*observation.Observation) {}, 3, false, 0, 30 * time.Second},
		"a shard isn't ready":   {func(obs *observation.Observation) { shardtest.Starting(obs.Pods["cache-1"][0]) }, 3, false, 0, 30 * time.Second},
		"a new shard is ready": {func(obs *observation.Observation) {
			list := plan.PublishedList(obs)
			list.Servers = list.Servers[:2]
			for _, pods := range obs.Pods {
				pods[0].Annotations[annotations.Discovery] = list.String()
			}
		}, 3, true, 3, plan.ScaleInDelay},
		"the status lacks a list that the pods have": {func(obs *observation.Observation) {
			obs.Memcached.Status.Discovery.Version--
		}, 3, false, 0, plan.ScaleInDelay},
		"a new shard isn't ready":   {func(obs *observation.Observation) { size(4)(obs) }, 3, false, 0, 30 * time.Second},
		"the last shard is removed": {size(2), 2, true, 3, plan.ScaleInDelay},
		"a pod has no list":         {func(obs *observation.Observation) { delete(obs.Pods["cache-1"][0].Annotations, annotations.Discovery) }, 3, false, 1, 30 * time.Second},
		"a pod has an older list": {func(obs *observation.Observation) {
			obs.Pods["cache-1"][0].Annotations[annotations.Discovery] = "1\nold|10.0.0.9|11211\n"
		}, 3, false, 1, 30 * time.Second},
		"a pod is being deleted": {func(obs *observation.Observation) {
			delete(obs.Pods["cache-1"][0].Annotations, annotations.Discovery)
			obs.Pods["cache-1"][0].DeletionTimestamp = &metav1.Time{Time: obs.Now}
		}, 3, false, 0, 30 * time.Second},
		"a Service has another address": {func(obs *observation.Observation) { service(obs, 1).Spec.ClusterIPs = []string{"fd00::1", "10.96.0.2"} }, 3, true, 3, plan.ScaleInDelay},
		"a Service has no address":      {func(obs *observation.Observation) { service(obs, 1).Spec.ClusterIPs = nil }, 3, false, 0, 30 * time.Second},
		"a Service has no address, and the last shard is removed": {func(obs *observation.Observation) {
			service(obs, 1).Spec.ClusterIPs = nil
			size(2)(obs)
		}, 2, true, 3, plan.ScaleInDelay},
		"a Service is foreign": {func(obs *observation.Observation) {
			plantest.AddObject(obs, resources.Key{Kind: resources.KindService, Name: name(1)}, "foreign")
		}, 3, false, 0, 30 * time.Second},
		"no pod has a list": {func(obs *observation.Observation) {
			for _, pods := range obs.Pods {
				delete(pods[0].Annotations, annotations.Discovery)
			}
		}, 3, true, 3, plan.ScaleInDelay},
		"discovery is disabled": {func(obs *observation.Observation) {
			obs.Memcached.Spec.Access.Discovery.Mode = v1beta1.DiscoveryDisabled
		}, 0, false, 3, 0},
		"a template has a newer list": {func(obs *observation.Observation) {
			newer := plan.ShardList{Version: obs.Now.Unix(), Servers: plan.PublishedList(obs).Servers}
			obs.ReplicaSet("cache-0").Spec.Template.Annotations[annotations.Discovery] = newer.String()
		}, 3, true, 3, plan.ScaleInDelay},
	} {
		t.Run(what, func(t *testing.T) {
			obs := published(t, 3)
			before := plan.PublishedList(obs).Version
			c.change(obs)
			p := plantest.Plan(obs)
			if len(p.Actions.Patch) != c.patches || p.Discovery.Delay != c.delay {
				t.Errorf("%d patches, extra shards stay for %s, want %d and %s", len(p.Actions.Patch), p.Discovery.Delay, c.patches, c.delay)
			}
			if s := p.Discovery.Status; s == nil && c.size > 0 || s != nil && (s.Size != c.size || (s.Version > before) != c.newer || s.Version < before) {
				t.Errorf("the list is %+v, the one before had version %d", s, before)
			}
		})
	}
}

// A client may have read the list just before.
func TestShardIsDeletedSomeTimeAfterClientsReadTheListWithoutIt(t *testing.T) {
	obs := published(t, 3)
	size(2)(obs)
	p := plantest.Plan(obs)
	if len(p.Actions.ScaleIn) > 0 || p.Actions.RequeueAfter != plan.ScaleInDelay {
		t.Errorf("%q", describe(p.Actions))
	}
	for _, patch := range p.Actions.Patch {
		patch.Pod.Annotations[annotations.Discovery] = patch.Body["metadata"].(map[string]any)["annotations"].(map[string]any)[annotations.Discovery].(string)
	}
	obs.Memcached.Status.Discovery = p.Discovery.Status
	obs.Now = obs.Now.Add(plan.ScaleInDelay - time.Second)
	if a := plantest.Plan(obs).Actions; len(a.ScaleIn) > 0 || a.RequeueAfter != time.Second {
		t.Errorf("a second before: %q", describe(a))
	}
	obs.Now = obs.Now.Add(time.Second)
	if a := plantest.Plan(obs).Actions; len(a.ScaleIn) != 2 {
		t.Errorf("then: %q", describe(a))
	}
}

// Clients ignore a list whose version isn't higher.
func TestVersionOfTheListGrows(t *testing.T) {
	obs := published(t, 2)
	future := obs.Now.Add(time.Hour).Unix()
	obs.Memcached.Status.Discovery.Version = future // the clock was ahead
	size(1)(obs)
	if s := plantest.Plan(obs).Discovery.Status; s.Version != future+1 {
		t.Errorf("version %d, want %d", s.Version, future+1)
	}
	if l := plan.ParseShardList("no version\nhost|ip|port\n"); l.Version != 0 || l.String() != "" {
		t.Errorf("a text that is no list: %+v", l)
	}
}

func TestMissesOfAnUpdateAreMeasuredOnItsShards(t *testing.T) {
	for name, c := range map[string]struct {
		change func(obs *observation.Observation, record *shard.UpdateRecord)
		want   int
	}{
		"both were updated": {func(*observation.Observation, *shard.UpdateRecord) {}, 2},
		"it isn't finished": {func(obs *observation.Observation, _ *shard.UpdateRecord) {
			obs.Memcached.Status.LastUpdate.CompletionTime = nil
		}, 0},
		"they were measured": {func(obs *observation.Observation, _ *shard.UpdateRecord) {
			obs.Memcached.Status.LastUpdate.ExtraMisses = new(int64)
		}, 0},
		"it was long ago": {func(obs *observation.Observation, _ *shard.UpdateRecord) {
			obs.Now = obs.Now.Add(shard.HitRatioTimeout)
		}, 0},
		"another update follows": {func(obs *observation.Observation, _ *shard.UpdateRecord) {
			obs.Memcached.Status.LastUpdate.Revision = "former"
		}, 0},
		"a shard had too few requests": {func(_ *observation.Observation, record *shard.UpdateRecord) {
			record.Gets = v1beta1.DefaultHitRatioMinRequests - 1
		}, 1},
		"a shard was not disturbed": {func(_ *observation.Observation, record *shard.UpdateRecord) { record.Method = rollout.Live }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			obs := plantest.Running(t, 2)
			record := shard.UpdateRecord{Revision: obs.UpdateRevision.Hash(), Method: rollout.Restart, Gets: 2000, Hits: 1000, At: obs.Now.Add(-time.Minute)}
			finished := metav1.NewTime(obs.Now.Add(-time.Second))
			obs.Memcached.Status.LastUpdate = &v1beta1.UpdateCost{Revision: record.Revision, Shards: 2, CompletionTime: &finished}
			shardtest.Annotate(obs.Pods["cache-1"][0], annotations.Update, shard.EncodeRecord(record))
			c.change(obs, &record)
			shardtest.Annotate(obs.Pods["cache-0"][0], annotations.Update, shard.EncodeRecord(record))
			plantest.Read(obs)
			if got := observation.HitRatioPods(obs); len(got) != c.want {
				t.Errorf("%d pods, want %d", len(got), c.want)
			}
			if again := plantest.Plan(obs).Actions.RequeueAfter == plan.HitRatioPoll; again != (c.want > 0) {
				t.Errorf("the agents are queried again: %t", again)
			}
		})
	}
}
