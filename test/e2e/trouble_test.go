package e2e

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/test/internal/suite"
)

// Problems that only the cluster can find are reported in the condition Degraded;
// another Memcached does not notice.
func TestMemcachedThatCannotRunReportsWhyAndDisturbsNoOther(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.Apply("other", suite.Small(2))
	s.Available("other")
	before := s.Lives("other")
	kept := s.Written("other", 0, 100)
	invalid := &v1beta1.Memcached{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "invalid"}, Spec: v1beta1.MemcachedSpec{Version: "latest"}}
	if err := k.Create(s.Ctx, invalid); !apierrors.IsInvalid(err) {
		t.Errorf("an invalid spec: %v", err)
	}
	t.Run("troubles", func(t *testing.T) {
		for name, trouble := range map[string]struct {
			spec   v1beta1.MemcachedSpec
			reason string
			words  []string
		}{
			"image-that-is-not-there": {suite.Small(1, suite.Image("docker.io/library/nowhere:1.6.45")), v1beta1.ReasonImageCannotBePulled, []string{"image-that-is-not-there-0", "docker.io/library/nowhere:1.6.45"}},
			"not-memcached":           {suite.Small(1, suite.Image(testImage)), v1beta1.ReasonShardCrashes, []string{"not-memcached-0", "is not memcached"}},
			"nothing-in-the-image":    {suite.Small(1, suite.Image("docker.io/library/busybox:1")), v1beta1.ReasonShardCrashes, []string{"no memcached in this image", "looked in"}},
			"no-such-node": {suite.Small(1, func(spec *v1beta1.MemcachedSpec) {
				spec.Pod.Scheduling.NodeSelector = map[string]string{"disk": "none"}
			}), v1beta1.ReasonUnschedulable, []string{"no-such-node-0", "no node accepts the pod", "node affinity/selector"}},
			"more-memory-than-a-node": {suite.Small(1, suite.Memory("500Gi")), v1beta1.ReasonUnschedulable, []string{"Insufficient memory"}},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				s := s.in(t)
				s.Apply(name, trouble.spec)
				m, sentence := s.Degraded(name, trouble.reason)
				t.Log(sentence)
				for _, word := range trouble.words {
					if !strings.Contains(sentence, word) {
						t.Errorf("the message does not contain %q", word)
					}
				}
				if m.Status.Phase != v1beta1.PhaseDegraded || meta.IsStatusConditionTrue(m.Status.Conditions, v1beta1.ConditionAvailable) {
					t.Errorf("phase is %s, conditions %+v", m.Status.Phase, m.Status.Conditions)
				}
				s.Event(name, trouble.reason)
				// A corrected spec fixes it, whatever happened to the pods.
				s.Apply(name, suite.Small(1))
				s.Available(name)
			})
		}
	})
	s.Untouched("other", before)
	s.Holds(kept)
	s.Available("other")
}
