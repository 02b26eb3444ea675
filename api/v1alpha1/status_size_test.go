package v1alpha1_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
)

// names are the sizes of the names that a status contains.
type names struct{ memcached, namespace, node, balancer int }

// largestStatus returns the largest status that a Memcached of 1,000 shards can have: all its
// fields are set, and all bounded ones are at their bounds.
func largestStatus(n names) v1alpha1.MemcachedStatus {
	text := func(size int) string { return strings.Repeat("x", size) }
	now := metav1.NewTime(time.Date(2026, 11, 22, 10, 20, 30, 0, time.UTC))
	s := v1alpha1.MemcachedStatus{
		ObservedGeneration: 1000, Phase: v1alpha1.PhaseProgressing, Size: 1000, ReadySize: 1000, UpdatedSize: 1000, Ready: "1000/1000",
		Version: "1.6.38 → 1.6.45", Image: text(512), DefaultImage: text(512), Selector: v1alpha1.LabelInstance + "=" + text(n.memcached),
		Bootstrap: &v1alpha1.BootstrapStatus{RestoreName: text(n.memcached), Phase: v1alpha1.TransferComplete, Deadline: now, Message: text(v1alpha1.MaxMessage)},
		Update: &v1alpha1.UpdateStatus{
			Revision: text(16), Updated: 1000, Shard: text(n.memcached + len("-999")), Method: v1alpha1.UpdateRecreate, RollingBack: true,
			Gate: v1alpha1.GateOutsideMaintenanceWindow, Items: 1e11, ItemsBefore: 1e11, Since: now, Message: text(v1alpha1.MaxMessage),
		},
	}
	s.TLS = &v1alpha1.TLSStatus{NotAfter: &now, Fingerprint: text(64), PlainConnections: new(int64(1e9))}
	s.Binding = &v1alpha1.BindingStatus{Name: text(n.memcached) + "-binding", Size: 1000, Message: text(v1alpha1.MaxMessage)}
	s.Discovery = &v1alpha1.DiscoveryStatus{Endpoint: text(n.memcached+n.namespace) + "-discovery.svc:11211", Version: 1e10, Size: 1000, ChangedAt: now, Message: text(v1alpha1.MaxMessage)}
	s.External = &v1alpha1.ExternalStatus{Message: text(v1alpha1.MaxMessage)}
	misses := int64(1e11)
	s.LastUpdate = &v1alpha1.UpdateCost{
		Revision: text(16), StartedAt: now, FinishedAt: &now, Shards: 1000, Items: 1e11, ItemsBefore: 1e11,
		UnavailableMilliseconds: 1e7, MaxUnavailableMilliseconds: 1e4, ExtraMisses: &misses, HitRatioRecoveredAt: &now,
	}
	for _, condition := range []string{v1alpha1.ConditionReady, v1alpha1.ConditionAvailable, v1alpha1.ConditionProgressing, v1alpha1.ConditionDegraded} {
		s.Conditions = append(s.Conditions, metav1.Condition{
			Type: condition, Status: metav1.ConditionFalse, Reason: string(v1alpha1.GateOutsideMaintenanceWindow), Message: text(v1alpha1.MaxMessage),
			ObservedGeneration: 1000, LastTransitionTime: now,
		})
	}
	for ordinal := range 1000 {
		shard := v1alpha1.ShardStatus{
			Name: fmt.Sprintf("%s-%d", text(n.memcached), ordinal), NodeName: text(n.node), Version: "1.6.45", AgentVersion: text(v1alpha1.MaxAgentVersion), Revision: text(16),
			Start: v1alpha1.StartHandedOver, ContainerID: text(v1alpha1.MaxContainerID), Restart: text(v1alpha1.MaxRestart), StartedAt: &now,
			Items: 1e8, ItemsBefore: 1e8, GapMilliseconds: 1e4, AgentUnreachableSince: &now,
		}
		shard.PodName = shard.Name + "-abcde"
		if ordinal < v1alpha1.MaxShardMessages {
			shard.Message = text(v1alpha1.MaxShardMessage)
		}
		s.Shards = append(s.Shards, shard)
		s.Nodes = append(s.Nodes, shard.PodName)
		s.Servers = append(s.Servers, fmt.Sprintf("%s.%s.svc:11211", shard.Name, text(n.namespace)))
		s.External.Servers = append(s.External.Servers, text(n.balancer)+":11211")
	}
	return s
}

func TestStatusOfAThousandShardsFits(t *testing.T) {
	const limit = 608_000 // bytes; every write of the status sends them all
	size := func(n names) int {
		raw, err := json.Marshal(largestStatus(n))
		if err != nil {
			t.Fatal(err)
		}
		return len(raw)
	}
	if got := size(names{memcached: 20, namespace: 20, node: 30, balancer: 15}); got > limit {
		t.Errorf("the status has %d bytes, want at most %d", got, limit)
	} else {
		t.Logf("with names of usual length the status has %d bytes", got)
	}
	// The longest names are 52, 63, 253 and 253 characters: 1.24 MB, below etcd's 1.5 MiB.
	if got := size(names{memcached: 52, namespace: 63, node: 253, balancer: 253}); got > 1<<20+1<<19 {
		t.Errorf("with the longest names the status has %d bytes, more than etcd stores", got)
	} else {
		t.Logf("with the longest names the status has %d bytes", got)
	}
}

func TestLargestStatusSetsEveryField(t *testing.T) {
	s := largestStatus(names{memcached: 20, namespace: 20, node: 30, balancer: 15})
	for _, value := range []any{s, *s.Update, *s.LastUpdate, *s.Bootstrap, *s.External, s.Shards[0]} {
		v := reflect.ValueOf(value)
		for i := range v.NumField() {
			if v.Field(i).IsZero() && v.Field(i).Kind() != reflect.Bool {
				t.Errorf("%s of %T isn't set", v.Type().Field(i).Name, value)
			}
		}
	}
}
