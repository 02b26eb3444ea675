package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/test/internal/suite"
	"github.com/memcached-operator/memcached-operator/test/sim"
)

// TestSimulationConvergesLikeTheCluster keeps the models of Kubernetes, the agent and
// memcached in internal/simtest to the truth.
func TestSimulationConvergesLikeTheCluster(t *testing.T) {
	t.Parallel()
	middle, newest := versions[len(versions)/2], versions[len(versions)-1]
	for name, specs := range map[string][]map[string]any{
		"a version and threads, and back":   {{"size": 2, "version": middle}, {"size": 2, "version": newest, "config": map[string]any{"threads": 2}}, {"size": 2, "version": middle}},
		"labels and fewer connections":      {{"size": 2}, {"size": 2, "pod": map[string]any{"metadata": map[string]any{"labels": map[string]any{"team": "shop"}}}, "config": map[string]any{"maxConnections": 512}}},
		"memory and a shard more, and back": {{"size": 1}, {"size": 2, "memory": "80Mi"}, {"size": 1, "memory": "80Mi"}},
		"an image that is not there":        {{"size": 2}, {"size": 2, "pod": map[string]any{"image": "docker.io/library/memcached:1.6.99"}}},
		"arguments that memcached rejects":  {{"size": 2}, {"size": 2, "config": map[string]any{"extraArgs": []any{"-R", "0"}}}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSpace(t)
			for i := range specs {
				specs[i]["resources"] = map[string]any{"requests": map[string]any{"cpu": "1m"}}
				raw, err := json.Marshal(specs[i]) // numbers as the API has them
				s.Must(err)
				u := &unstructured.Unstructured{}
				s.Must(u.UnmarshalJSON(fmt.Appendf(nil, `{"apiVersion":%q,"kind":"Memcached","metadata":{"name":"cache","namespace":%q},"spec":%s}`,
					v1beta1.GroupVersion.String(), s.Namespace, raw)))
				specs[i] = u.Object["spec"].(map[string]any)
				s.Must(k.Apply(s.Ctx, client.ApplyConfigurationFromUnstructured(u.DeepCopy()), suite.Owner, client.ForceOwnership))
				want, err := sim.Play(defaultVersion, s.resizing(), "cache", specs[:i+1]...)
				s.Must(err)
				s.Eventually("the end of the simulation", func(ctx context.Context) error {
					got, err := sim.Summary(ctx, k, s.Key("cache"))
					if err != nil {
						return err
					}
					if diff := cmp.Diff(want, got); diff != "" {
						return fmt.Errorf("it is otherwise (-simulated +real):\n%s", diff)
					}
					return nil
				})
			}
		})
	}
}
