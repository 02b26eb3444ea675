package e2e

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	memcachedac "github.com/memcached-operator/memcached-operator/api/v1alpha1/applyconfiguration/api/v1alpha1"
)

// What only the cluster can know to be wrong is told in the condition Degraded;
// another Memcached does not notice.
func TestAMemcachedThatCannotRunSaysWhyAndDisturbsNoOther(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.apply("other", small(2))
	s.available("other")
	before := s.lives("other")
	kept := s.written("other", 0, 100)
	t.Run("troubles", func(t *testing.T) {
		for name, trouble := range map[string]struct {
			spec   *memcachedac.MemcachedSpecApplyConfiguration
			reason string
			words  []string
		}{
			"image-that-is-not-there":   {small(1).WithImage("docker.io/library/nowhere:1.6.45"), v1alpha1.ReasonImagePull, []string{"image-that-is-not-there-0", "docker.io/library/nowhere:1.6.45"}},
			"version-that-is-not-there": {small(1).WithVersion("1.6.999"), v1alpha1.ReasonImagePull, []string{"memcached:1.6.999"}},
			"not-memcached":             {small(1).WithImage("docker.io/library/not-memcached:1"), v1alpha1.ReasonShardCrashes, []string{"not-memcached-0", "is not memcached"}},
			"nothing-in-the-image":      {small(1).WithImage("docker.io/library/empty:1"), v1alpha1.ReasonShardCrashes, []string{"no memcached in this image", "looked in"}},
			"old-version":               {small(1).WithVersion("1.5.0"), v1alpha1.ReasonVersionUnsupported, []string{"1.5.0", "CVE-2020-22570", "use 1.6.3 or newer"}},
			"bad-digest":                {small(1).WithImage("memcached@sha256"), v1alpha1.ReasonImageInvalid, []string{"is not a digest"}},
			"no-such-node":              {small(1).WithNodeSelector(map[string]string{"disk": "none"}), v1alpha1.ReasonUnschedulable, []string{"no-such-node-0", "no node takes the pod", "node affinity/selector"}},
			"more-memory-than-a-node":   {small(1).WithMemory(resource.MustParse("500Gi")), v1alpha1.ReasonUnschedulable, []string{"Insufficient memory"}},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				s := s.in(t)
				s.apply(name, trouble.spec)
				m, sentence := s.degraded(name, trouble.reason)
				t.Log(sentence)
				for _, word := range trouble.words {
					if !strings.Contains(sentence, word) {
						t.Errorf("the sentence does not say %q", word)
					}
				}
				if m.Status.Phase != v1alpha1.PhaseDegraded || meta.IsStatusConditionTrue(m.Status.Conditions, v1alpha1.ConditionAvailable) {
					t.Errorf("phase is %s, conditions %+v", m.Status.Phase, m.Status.Conditions)
				}
				s.event(name, trouble.reason)
				// A mended spec mends it, whatever the pods went through.
				s.apply(name, small(1))
				s.available(name)
			})
		}
	})
	s.untouched("other", before)
	s.holds(kept)
	s.available("other")
}

func TestARefusedVersionTouchesNoRunningShard(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.apply("cache", small(2))
	s.available("cache")
	before := s.lives("cache")
	kept := s.written("cache", 1, 100)

	s.apply("cache", small(2).WithVersion("1.5.0"))
	m, _ := s.degraded("cache", v1alpha1.ReasonVersionUnsupported)
	if m.Status.Version != defaultVersion || m.Status.Ready != "2/2" || !meta.IsStatusConditionTrue(m.Status.Conditions, v1alpha1.ConditionAvailable) {
		t.Errorf("the status of what runs is told as version %s, ready %s", m.Status.Version, m.Status.Ready)
	}
	s.untouched("cache", before)
	s.holds(kept)

	s.apply("cache", small(2))
	s.available("cache")
	s.untouched("cache", before)
}
