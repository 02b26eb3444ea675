package resources

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
)

// Four shards exist, and the spec has another number. Which entries the API server makes is what TestSizeBelongsToTheOneThatSetsIt checks.
func TestSizeWrittenThroughScaleIsLimited(t *testing.T) {
	during := func(from, to int32, step v1beta1.ScalingStep) func(*v1beta1.Memcached) {
		return func(m *v1beta1.Memcached) { m.Status.Scaling = &v1beta1.ScalingStatus{From: from, To: to, Step: step} }
	}
	limited := func(m *v1beta1.Memcached) {
		m.Status.ObservedGeneration, m.Status.LimitedSize = m.Generation, &v1beta1.LimitedSize{Size: 4}
	}
	inAndOut := func(m *v1beta1.Memcached) { m.Spec.Scaling.ScaleSubresource.Directions = v1beta1.ScaleOutAndIn }
	byTwo := func(m *v1beta1.Memcached) { m.Spec.Scaling.ScaleSubresource.MaxStep = ptr.To[int32](2) }
	for name, c := range map[string]struct {
		changes []func(*v1beta1.Memcached)
		// to are sizes of the spec, and want those that the Memcached should have.
		to, want []int32
		message  string
	}{
		"by default":                          {nil, []int32{0, 3, 4, 9}, []int32{4, 4, 4, 9}, "hpa set spec.size to 0 through /scale, where spec.scaling.scaleSubresource removes no shards; keeping 4 shards. If you want fewer, set spec.size to 4 in the Memcached and then to your number"},
		"both directions":                     {[]func(*v1beta1.Memcached){inAndOut}, []int32{0, 9}, []int32{0, 9}, ""},
		"in steps":                            {[]func(*v1beta1.Memcached){byTwo, inAndOut}, []int32{9, 0, 3}, []int32{6, 2, 3}, "hpa set spec.size to 9 through /scale, where spec.scaling.scaleSubresource has maxStep 2; 6 shards are next"},
		"out in steps":                        {[]func(*v1beta1.Memcached){byTwo}, []int32{9, 0}, []int32{6, 4}, "maxStep 2"},
		"the first shards":                    {[]func(*v1beta1.Memcached){byTwo, func(m *v1beta1.Memcached) { m.Status.Size, m.Status.Servers = 0, nil }}, []int32{9}, []int32{9}, ""},
		"while the owner's leave":             {[]func(*v1beta1.Memcached){func(m *v1beta1.Memcached) { m.Status.Servers = nil }}, []int32{1}, []int32{1}, ""},
		"a ReplicaSet is missing":             {[]func(*v1beta1.Memcached){func(m *v1beta1.Memcached) { m.Status.Size = 1 }}, []int32{1}, []int32{4}, ""},
		"while others leave":                  {[]func(*v1beta1.Memcached){func(m *v1beta1.Memcached) { m.Status.Size = 6 }}, []int32{5, 3}, []int32{5, 4}, ""},
		"kept before":                         {[]func(*v1beta1.Memcached){limited}, []int32{3, 5}, []int32{4, 5}, ""},
		"kept before, and shards are missing": {[]func(*v1beta1.Memcached){limited, func(m *v1beta1.Memcached) { m.Status.Size, m.Status.Servers = 1, nil }}, []int32{3}, []int32{4}, ""},
		"done before":                         {[]func(*v1beta1.Memcached){func(m *v1beta1.Memcached) { m.Status.ObservedGeneration = m.Generation }}, []int32{3}, []int32{3}, ""},
		"a new Memcached":                     {[]func(*v1beta1.Memcached){func(m *v1beta1.Memcached) { m.Status.ObservedGeneration = -1 }}, []int32{3}, []int32{3}, ""},
		"no managed fields":                   {[]func(*v1beta1.Memcached){func(m *v1beta1.Memcached) { m.ManagedFields = nil }}, []int32{3}, []int32{3}, ""},
		"of a size that no manager owned": {[]func(*v1beta1.Memcached){func(m *v1beta1.Memcached) {
			m.ManagedFields[1].FieldsV1 = metav1.NewFieldsV1(`{"f:status":{"f:size":{}}}`)
		}}, []int32{3}, []int32{4}, "an unknown client set spec.size to 3"},
		"in the Memcached, to the same size":        {[]func(*v1beta1.Memcached){func(m *v1beta1.Memcached) { m.ManagedFields[0].FieldsV1 = m.ManagedFields[1].FieldsV1 }}, []int32{3}, []int32{3}, ""},
		"back before the list is published":         {[]func(*v1beta1.Memcached){during(4, 6, v1beta1.ScalingPublishing)}, []int32{5, 4, 3}, []int32{5, 4, 4}, ""},
		"back after the list is published":          {[]func(*v1beta1.Memcached){during(4, 6, v1beta1.ScalingWaiting)}, []int32{7, 5}, []int32{7, 6}, ""},
		"during a scale-in by the owner":            {[]func(*v1beta1.Memcached){during(4, 3, v1beta1.ScalingCopying)}, []int32{4, 2}, []int32{4, 3}, ""},
		"in steps, before the list is published":    {[]func(*v1beta1.Memcached){byTwo, during(2, 4, v1beta1.ScalingCopying)}, []int32{9}, []int32{4}, ""},
		"in steps, when the one before is finished": {[]func(*v1beta1.Memcached){byTwo, during(2, 4, v1beta1.ScalingFinishing)}, []int32{9}, []int32{6}, ""},
	} {
		for i, to := range c.to {
			m := &v1beta1.Memcached{ObjectMeta: metav1.ObjectMeta{Name: "cache", Generation: 7, ManagedFields: []metav1.ManagedFieldsEntry{
				{Manager: "kubectl", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:memory":{}}}`)},
				{Manager: "hpa", Subresource: "scale", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:size":{}, "f:memory":{}}}`)},
			}}, Spec: v1beta1.MemcachedSpec{Size: &to}, Status: v1beta1.MemcachedStatus{ObservedGeneration: 6, Size: 4, Servers: make([]string, 4)}}
			for _, change := range c.changes {
				change(m)
			}
			l := LimitedSize(m, Size(m))
			if got := Size(m); got != c.want[i] || (l == nil) != (got == to) || l != nil && (l.Size != got || i == 0 && !strings.Contains(l.Message, c.message)) {
				t.Errorf("%s, to %d: %d shards, want %d, and %+v", name, to, got, c.want[i], l)
			}
			m.ManagedFields = ScaledBy(m)
			if got := Size(m); got != c.want[i] {
				t.Errorf("%s, to %d: with what the cache keeps, %d shards, want %d", name, to, got, c.want[i])
			}
			m.Status.LimitedSize, m.Status.ObservedGeneration = LimitedSize(m, 4), m.Generation
			if got := Size(m); got != c.want[i] {
				t.Errorf("%s, to %d: %d shards while the step waits, want %d", name, to, got, c.want[i])
			}
		}
	}
}
