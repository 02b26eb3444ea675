package metrics

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
)

func TestMetricCountsShardsWithAnotherAgent(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1beta1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	builder := fake.NewClientBuilder().WithScheme(scheme)
	for name, versions := range map[string][]string{"a": {"1.1.0", "1.0.0", ""}, "b": {"1.1.0", "1.1.0", "1.2.0"}} {
		m := &v1beta1.Memcached{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name}}
		for _, version := range versions {
			m.Status.Shards = append(m.Status.Shards, v1beta1.ShardStatus{AgentVersion: version})
		}
		builder.WithObjects(m)
	}
	elected := make(chan struct{})
	collector := &Agents{Source: Source{Cache: builder.Build(), Elected: elected}, Version: "1.1.0"}
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(collector)
	scrape := func() map[string]float64 {
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]float64{}
		for _, family := range families {
			for _, metric := range family.GetMetric() {
				got[fmt.Sprintf("%s %s", family.GetName(), metric.GetLabel()[0].GetValue())] = metric.GetGauge().GetValue()
			}
		}
		return got
	}
	if got := scrape(); len(got) != 0 {
		t.Errorf("an operator that is not the leader exports %v", got)
	}
	close(elected)
	want := map[string]float64{"memcached_operator_shard_agents true": 3, "memcached_operator_shard_agents false": 2}
	if diff := cmp.Diff(want, scrape()); diff != "" {
		t.Errorf("the metrics (-want +got):\n%s", diff)
	}
}
