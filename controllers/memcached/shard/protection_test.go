package shard

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/shard/shardtest"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
)

func TestProtectionOfAShardIsStatedOrSwitchedOff(t *testing.T) {
	modes := func(auth v1beta1.AuthMode, tls v1beta1.TLSMode) shardtest.Edit {
		return func(s *v1beta1.MemcachedSpec) { s.Auth.Mode, s.TLS.Mode = auth, tls }
	}
	both, off := modes(v1beta1.AuthRequired, v1beta1.TLSRequired), modes(v1beta1.AuthDisabled, v1beta1.TLSDisabled)
	for name, c := range map[string]struct {
		template, pod string
		spec          shardtest.Edit
		want          string
	}{
		"no shard has one":                      {`{}`, `{}`, nil, ""},
		"a shard without annotations":           {"", "", nil, ""},
		"what can't be read":                    {"x", `["auth"]`, nil, ""},
		"stated":                                {`{"auth":"Required","tls":"Permissive"}`, `{"auth":"Required"}`, both, ""},
		"no login is stated":                    {`{"auth":"Required","tls":"Required"}`, `{}`, modes("", v1beta1.TLSRequired), "set spec.auth.mode to Disabled"},
		"no TLS is stated":                      {`{}`, `{"auth":"Required","tls":"Permissive"}`, modes(v1beta1.AuthRequired, ""), "shard cache-1 runs with tls Permissive, and the spec doesn't state spec.tls"},
		"nothing is stated":                     {`{"auth":"Required"}`, `{"tls":"Required"}`, nil, "restore it"},
		"switched off now":                      {`{"auth":"Required"}`, `{"tls":"Required"}`, off, ""},
		"one is weakened":                       {`{"tls":"Required"}`, `{}`, modes("", v1beta1.TLSPermissive), ""},
		"switched off before":                   {`{"auth":"Disabled","tls":"Disabled"}`, `{}`, nil, ""},
		"one of a newer release":                {`{"auth":"Required","quantum":"Required"}`, `{}`, both, "shard cache-1 runs with quantum Required, which this release of the operator doesn't know"},
		"one of a newer release in a pod":       {`{}`, `{"quantum":"Optional"}`, both, "install the release that you had, or a newer one"},
		"one of a newer release, which was off": {`{"quantum":"Disabled"}`, `{}`, nil, ""},
	} {
		shards := make([]Observation, 2)
		for i := range shards {
			shards[i] = Observation{Set: &appsv1.ReplicaSet{}, Name: "cache-0"}
		}
		pod := &corev1.Pod{}
		shards[1].Name, shards[1].Pods = "cache-1", []*corev1.Pod{pod}
		shardtest.Annotate(&shards[1].Set.Spec.Template, annotations.Protection, c.template)
		shardtest.Annotate(pod, annotations.Protection, c.pod)
		spec := shardtest.Revision(t, c.spec).Spec
		if got := ProtectionNotStated(shards, &spec); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
