package v1beta1_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
)

// names are the sizes of the names that a status contains.
type names struct{ memcached, namespace, node, balancer int }

// maxSize is the maximum of spec.size.
const maxSize = 128

// largestStatus returns the largest status that a Memcached can have: all its fields are set, and all
// bounded ones are at their bounds.
func largestStatus(n names) v1beta1.MemcachedStatus {
	text := func(size int) string { return strings.Repeat("x", size) }
	now := metav1.NewTime(time.Date(2026, 11, 22, 10, 20, 30, 0, time.UTC))
	s := v1beta1.MemcachedStatus{
		ObservedGeneration: 1000, Phase: v1beta1.PhaseProgressing, Size: maxSize, ReadyShards: maxSize, UpdatedShards: maxSize,
		Version: "1.6.38", TargetVersion: "1.6.45", Image: text(512), DefaultImage: text(512), Selector: v1beta1.LabelInstance + "=" + text(n.memcached),
		Bootstrap: &v1beta1.BootstrapStatus{RestoreName: text(n.memcached), Phase: v1beta1.TransferComplete, Message: text(v1beta1.MaxMessage)},
		Update: &v1beta1.UpdateStatus{
			Revision: text(16), Shard: text(n.memcached + len("-127")), Method: v1beta1.UpdateRecreate, RollingBack: true,
			Gate: v1beta1.GateOutsideMaintenanceWindow, Items: 1e11, ItemsBefore: 1e11, LastTransitionTime: now, Message: text(v1beta1.MaxMessage),
		},
	}
	s.TLS = &v1beta1.TLSStatus{NotAfter: &now, Fingerprint: text(64), PlainConnections: new(int64(1e9)), LastPlainConnectionTime: &now}
	s.Binding = &v1beta1.BindingStatus{Name: text(n.memcached) + "-binding", Size: maxSize, Message: text(v1beta1.MaxMessage)}
	s.Discovery = &v1beta1.DiscoveryStatus{Endpoint: text(n.memcached+n.namespace) + "-discovery.svc.cluster.local:11211", Version: 1e10, Size: maxSize, LastChangeTime: now}
	s.External = &v1beta1.ExternalStatus{Message: text(v1beta1.MaxMessage)}
	s.Scaling = &v1beta1.ScalingStatus{ID: "127-128-1795262819012", From: maxSize - 1, To: maxSize, Step: v1beta1.ScalingPublishing, StartTime: now, PublishTime: &now, CompletionTime: &now, Moved: 1e11, Deleted: 1e11, Purged: 1e11, StaleMilliseconds: 1e6,
		Problem: text(v1beta1.MaxMessage), Message: text(v1beta1.MaxMessage)}
	s.LastScaling = s.Scaling.DeepCopy()
	s.LastScaling.Message = "" // nothing is in progress
	s.Purge = &v1beta1.PurgeStatus{Request: text(v1beta1.MaxPurgeRequest), Phase: v1beta1.TransferComplete, StartTime: now, Message: text(v1beta1.MaxMessage)}
	s.LimitedSize = &v1beta1.LimitedSize{Size: maxSize, Message: text(v1beta1.MaxMessage)}
	misses := int64(1e11)
	s.LastUpdate = &v1beta1.UpdateCost{
		Revision: text(16), StartTime: now, CompletionTime: &now, Shards: maxSize, Items: 1e11, ItemsBefore: 1e11,
		UnavailableMilliseconds: 1e7, MaxUnavailableMilliseconds: 1e4, ExtraMisses: &misses, HitRatioRecoveryTime: &now,
	}
	for _, condition := range []string{v1beta1.ConditionReady, v1beta1.ConditionReconciling, v1beta1.ConditionStalled, v1beta1.ConditionAvailable, v1beta1.ConditionProgressing, v1beta1.ConditionDegraded} {
		s.Conditions = append(s.Conditions, metav1.Condition{
			Type: condition, Status: metav1.ConditionFalse, Reason: string(v1beta1.GateOutsideMaintenanceWindow), Message: text(v1beta1.MaxMessage),
			ObservedGeneration: 1000, LastTransitionTime: now,
		})
	}
	for ordinal := range maxSize {
		s.Purge.Shards = append(s.Purge.Shards, v1beta1.PurgedShard{Items: 1e8, Bytes: 1e11})
		shard := v1beta1.ShardStatus{
			Name: fmt.Sprintf("%s-%d", text(n.memcached), ordinal), NodeName: text(n.node), Version: "1.6.45", AgentVersion: text(v1beta1.MaxAgentVersion), Revision: text(16),
			StartResult: v1beta1.StartHandedOver, ContainerID: text(v1beta1.MaxContainerID), RestartAnnotation: text(v1beta1.MaxRestart), StartTime: &now,
			Items: 1e8, ItemsBefore: 1e8, GapMilliseconds: 1e4, AgentUnreachableTime: &now, Message: text(v1beta1.MaxShardMessage),
		}
		shard.PodName = shard.Name + "-abcde"
		s.Shards = append(s.Shards, shard)
		s.Nodes = append(s.Nodes, shard.PodName)
		s.Servers = append(s.Servers, fmt.Sprintf("%s.%s.svc.cluster.local:11211", shard.Name, text(n.namespace)))
		s.External.Servers = append(s.External.Servers, text(n.balancer)+":11211")
	}
	return s
}

func TestStatusOfTheMostShardsFits(t *testing.T) {
	for name, c := range map[string]struct {
		names
		limit int // bytes; every write of the status sends them all
	}{
		"usual names":       {names{memcached: 20, namespace: 20, node: 30, balancer: 15}, 121_000},
		"the longest names": {names{memcached: 52, namespace: 63, node: 253, balancer: 253}, 202_000},
	} {
		raw, err := json.Marshal(largestStatus(c.names))
		if err != nil {
			t.Fatal(err)
		}
		if t.Logf("%s: the status has %d bytes", name, len(raw)); len(raw) > c.limit {
			t.Errorf("%s: the status has %d bytes, want at most %d", name, len(raw), c.limit)
		}
	}
}

func TestLargestStatusSetsEveryField(t *testing.T) {
	s := largestStatus(names{memcached: 20, namespace: 20, node: 30, balancer: 15})
	for _, value := range []any{s, *s.Update, *s.LastUpdate, *s.Bootstrap, *s.External, *s.Scaling, *s.LimitedSize, *s.Purge, s.Purge.Shards[0], s.Shards[0]} {
		v := reflect.ValueOf(value)
		for i := range v.NumField() {
			if v.Field(i).IsZero() && v.Field(i).Kind() != reflect.Bool {
				t.Errorf("%s of %T isn't set", v.Type().Field(i).Name, value)
			}
		}
	}
}
