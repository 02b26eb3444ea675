package resources

import (
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
)

func TestMemoryLimitFollowsTheDocumentedFormula(t *testing.T) {
	m := memcached(1, nil)
	want := int64(64<<20)/100*110 + 80<<20 + 1024*8<<10
	if got := MemoryLimit(&m.Spec); got.Value() != want {
		t.Errorf("limit %d bytes, want %d", got.Value(), want)
	}
}

// In the memory volume and in -m there is room for the pages that memcached assigns to its chunk
// sizes when it starts.
func TestMemoryIsRoomForItems(t *testing.T) {
	for _, c := range []struct {
		args  []string
		image string
		pages int64
	}{
		{nil, "memcached:1.6.45", 39},
		{[]string{"-v", "-t", "2"}, "memcached:1.6.45", 39},
		{[]string{"-f", "1.05"}, "memcached:1.6.45", 63},
		{[]string{"-o", "slab_sizes=100-1000"}, "memcached@sha256:0123", 3},
		{[]string{"-o", "slab_chunk_max=16"}, "memcached:1.6.45", 23},
		{[]string{"-o", "slab_chunk_max=16384"}, "memcached:1.6.18", 23},
	} {
		spec := &memcached(1, func(s *v1beta1.MemcachedSpec) { s.Config.ExtraArgs = c.args }).Spec
		revision := NewPodRevision(spec, Image{Reference: c.image})
		want := strconv.FormatInt(64+c.pages, 10)
		if i := slices.Index(revision.Arguments, "-m"); revision.Arguments[i+1] != want {
			t.Errorf("%v: arguments %v, want -m %s", c.args, revision.Arguments, want)
		}
		if size := volumeSize(&revision.Spec); size.Value() != (64+c.pages+16)<<20 {
			t.Errorf("%v: a volume of %s", c.args, size.String())
		}
	}
}

func TestResourcesHaveDefaults(t *testing.T) {
	q := resource.MustParse
	list := func(pairs ...string) corev1.ResourceList {
		l := corev1.ResourceList{}
		for i := 0; i < len(pairs); i += 2 {
			l[corev1.ResourceName(pairs[i])] = q(pairs[i+1])
		}
		return l
	}
	limit := MemoryLimit(&memcached(1, nil).Spec)
	for name, c := range map[string]struct {
		reason string
		spec   *v1beta1.ResourceRequirements
		want   corev1.ResourceRequirements
	}{
		"Nothing":       {"memory is reserved, the CPU not limited", nil, corev1.ResourceRequirements{Limits: corev1.ResourceList{"memory": limit}, Requests: corev1.ResourceList{"memory": limit, "cpu": q("100m")}}},
		"MemoryLimit":   {"a limit is the default request", &v1beta1.ResourceRequirements{Limits: list("memory", "1Gi")}, corev1.ResourceRequirements{Limits: list("memory", "1Gi"), Requests: list("memory", "1Gi", "cpu", "100m")}},
		"CPULimit":      {"so is a CPU limit, as in the API server", &v1beta1.ResourceRequirements{Limits: list("cpu", "50m", "memory", "1Gi")}, corev1.ResourceRequirements{Limits: list("cpu", "50m", "memory", "1Gi"), Requests: list("cpu", "50m", "memory", "1Gi")}},
		"MemoryRequest": {"a request above the default limit raises it", &v1beta1.ResourceRequirements{Requests: list("memory", "4Gi")}, corev1.ResourceRequirements{Limits: list("memory", "4Gi"), Requests: list("memory", "4Gi", "cpu", "100m")}},
		"SmallRequest":  {"the user may overcommit", &v1beta1.ResourceRequirements{Requests: list("memory", "1Mi", "cpu", "1m")}, corev1.ResourceRequirements{Limits: corev1.ResourceList{"memory": limit}, Requests: list("memory", "1Mi", "cpu", "1m")}},
	} {
		t.Run(name, func(t *testing.T) {
			got := resourcesOf(&memcached(1, func(s *v1beta1.MemcachedSpec) { s.Resources = c.spec }).Spec)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
		})
	}
}
