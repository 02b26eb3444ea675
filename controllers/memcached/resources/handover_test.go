package resources

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/utils/ptr"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
)

// docs/handover.md has these rows.
func TestGracePeriodFollowsTheDocumentedFormula(t *testing.T) {
	for _, c := range []struct {
		memory string
		mode   v1beta1.HandoverMode
		// drain is how long the pod serves and grace until when it is killed, in seconds.
		drain, grace int64
	}{
		{"64Mi", v1beta1.HandoverStrict, 60 + 3, 60 + 3 + 30},
		{"1Gi", v1beta1.HandoverStrict, 60 + 33, 60 + 33 + 30},
		{"4Gi", v1beta1.HandoverStrict, 60 + 129, 60 + 129 + 30},
		{"16Gi", v1beta1.HandoverStrict, 60 + 516, 60 + 516 + 30},
		{"64Gi", v1beta1.HandoverStrict, 60 + 2062, 60 + 2062 + 30},
		{"110Gi", v1beta1.HandoverStrict, 3570, 3600},
		{"1Ti", v1beta1.HandoverStrict, 3570, 3600},
		{"1Gi", "", 60 + 33, 60 + 33 + 30}, // a Memcached that was stored before there was a handover
		{"1Ti", v1beta1.HandoverDisabled, 60, 90},
	} {
		m := memcached(1, func(s *v1beta1.MemcachedSpec) {
			s.Memory, s.UpdateStrategy.Handover.Mode = ptr.To(resource.MustParse(c.memory)), c.mode
		})
		pod := podOf(t, m)
		args := pod.Containers[0].Args
		drain := args[slices.Index(args, "-drain-timeout")+1]
		if drain != fmt.Sprintf("%ds", c.drain) || *pod.TerminationGracePeriodSeconds != c.grace {
			t.Errorf("%s %s: drains for %s and is killed after %d s, want %d s and %d s",
				c.memory, c.mode, drain, *pod.TerminationGracePeriodSeconds, c.drain, c.grace)
		}
	}
}

// A change of the mode must not disturb pods: their revision is the same.
func TestModeOfTheHandoverChangesTheTemplateOnly(t *testing.T) {
	off := memcached(1, func(s *v1beta1.MemcachedSpec) { s.UpdateStrategy.Handover.Mode = v1beta1.HandoverDisabled })
	a, b := mustMarshal(podOf(t, memcached(1, nil))), mustMarshal(podOf(t, off))
	if a == b {
		t.Error("the mode doesn't change the template")
	}
	image := Image{Reference: fallback, Version: "1.6.45"}
	if hashOf(memcached(1, nil), image) != hashOf(off, image) {
		t.Error("the mode changes the revision")
	}
}

// A Memcached adopts the shards of a deleted one of its name, whose pods accept only their own kind.
func TestOnlyPodsWithTheKeysOfTheirMemcachedCanHandOver(t *testing.T) {
	m := memcached(1, nil)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{annotations.Handover: "Strict"}}, Spec: *convert[corev1.PodSpec](podOf(t, m))}
	other := m.DeepCopy()
	other.UID = "another"
	if !CanHandOver(m, pod) || CanHandOver(other, pod) || !CanReceive(pod) {
		t.Errorf("the own pod can hand over: %t, an adopted one: %t", CanHandOver(m, pod), CanHandOver(other, pod))
	}
}

// The builder is pure: the keys are added by what creates the Secret.
func TestSecretOfTheHandoverHasNoKeysYet(t *testing.T) {
	m := memcached(1, nil)
	secret := NewBuilder(m, options).handoverSecret()
	if secret.Name != "cache-handover-"+string(m.UID) || secret.OwnerReferences[0].UID != m.UID {
		t.Errorf("the Secret is %+v", secret)
	}
	for entry, key := range secret.Data {
		if len(key) > 0 {
			t.Errorf("entry %s has a key", entry)
		}
	}
}

// Memcached reads the key that its pod mounts. With it, an attacker in one memcached receives the items of pods that
// accept the same key.
func TestPodMountsTheHandoverKeyOfItsShardOnly(t *testing.T) {
	m := memcached(1, nil)
	build := NewBuilder(m, options)
	entries := build.handoverSecret().Data
	seen := map[string]bool{}
	for ordinal := range 128 { // the maximum of spec.size
		name := ShardName(m.Name, ordinal)
		pod := build.podTemplate(name, nil, &Shard{Revision: NewPodRevision(&m.Spec, Image{Reference: fallback, Version: "1.6.45"})}).Spec
		for _, v := range pod.Volumes {
			if v.Secret == nil || *v.Name == scalingVolume {
				continue
			}
			if len(v.Secret.Items) != 1 {
				t.Fatalf("shard %s mounts %d entries", name, len(v.Secret.Items))
			}
			key := *v.Secret.Items[0].Key
			if _, exists := entries[key]; !exists || seen[key] {
				t.Errorf("shard %s mounts the entry %s: it exists: %v, it is another shard's: %v", name, key, exists, seen[key])
			}
			seen[key] = true
		}
	}
	if len(seen) != 128 {
		t.Errorf("%d shards have a key", len(seen))
	}
}

func podOf(t *testing.T, m *v1beta1.Memcached) *corev1ac.PodSpecApplyConfiguration {
	t.Helper()
	return NewBuilder(m, options).podTemplate("cache-0", nil, &Shard{Revision: NewPodRevision(&m.Spec, Image{Reference: fallback, Version: "1.6.45"})}).Spec
}

// Pods of a Memcached whose mode isn't changed must not differ from those of the previous release.
func TestModeAvailableIsAFlagOfTheAgent(t *testing.T) {
	for mode, want := range map[v1beta1.HandoverMode]bool{
		v1beta1.HandoverAvailable: true, v1beta1.HandoverStrict: false, "": false, v1beta1.HandoverDisabled: false,
	} {
		args := podOf(t, memcached(1, func(s *v1beta1.MemcachedSpec) { s.UpdateStrategy.Handover.Mode = mode })).Containers[0].Args
		i := slices.Index(args, "-handover-mode")
		if (i >= 0) != want || want && args[i+1] != "Available" {
			t.Errorf("mode %q: %q", mode, args)
		}
	}
}

// The terms of a required node affinity are alternatives, so each of them excludes the node.
func TestPodOfAMoveAvoidsTheNode(t *testing.T) {
	zone := corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: corev1.NodeSelectorOpExists}}}
	for name, c := range map[string]struct {
		affinity *corev1.Affinity
		// terms, and expressions of each with those of the platform
		terms, expressions int
	}{
		"default": {nil, 1, 2},
		"two zones": {&corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{zone, zone}}}}, 2, 3},
	} {
		m := memcached(1, func(s *v1beta1.MemcachedSpec) { s.Pod.Scheduling.Affinity = c.affinity })
		build, shard := NewBuilder(m, options), Shard{Revision: NewPodRevision(&m.Spec, Image{Reference: fallback, Version: "1.6.45"})}
		was := mustMarshal(build.podTemplate("cache-0", nil, &shard))
		shard.AvoidNode = "node-7"
		moved := build.podTemplate("cache-0", nil, &shard)
		terms := moved.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
		for _, term := range terms {
			if len(term.MatchFields) != 1 || *term.MatchFields[0].Key != "metadata.name" || *term.MatchFields[0].Operator != corev1.NodeSelectorOpNotIn ||
				!slices.Equal(term.MatchFields[0].Values, []string{"node-7"}) || len(term.MatchExpressions) != c.expressions {
				t.Errorf("%s: %s", name, mustMarshal(term))
			}
		}
		if moved.Spec.Affinity.PodAntiAffinity == nil || len(terms) != c.terms {
			t.Errorf("%s: %s", name, mustMarshal(moved.Spec.Affinity))
		}
		shard.AvoidNode = ""
		if mustMarshal(build.podTemplate("cache-0", nil, &shard)) != was {
			t.Errorf("%s: the move changed the templates of other shards", name)
		}
	}
}
