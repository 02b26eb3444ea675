package plan

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/rollout"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/shard"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/shard/shardtest"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
)

// The API server would reject the second patch of a pod.
func TestPatchesOfAPodAreOneWrite(t *testing.T) {
	pod, other := &corev1.Pod{}, &corev1.Pod{}
	pod.Name, other.Name = "cache-0-x", "cache-1-x"
	first := Annotate(pod, "update", "1")
	got := merge(
		Actions{Patch: []PodPatch{first}},
		Actions{Patch: []PodPatch{Annotate(pod, "update", "2"), Annotate(pod, "list", "3"), Annotate(other, "list", "3")}},
		Actions{Patch: []PodPatch{resize(pod, resources.PodRevision{})}},
	).Patch
	want := []PodPatch{
		{Pod: pod, Body: map[string]any{"metadata": map[string]any{"annotations": map[string]any{"update": "1", "list": "3"}}}},
		{Pod: other, Body: map[string]any{"metadata": map[string]any{"annotations": map[string]any{"list": "3"}}}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	first.Bytes()
	if diff := cmp.Diff(Annotate(pod, "update", "1"), first); diff != "" {
		t.Errorf("the patch of the first planner has changed (-want +got):\n%s", diff)
	}
}

// The template has the reference of the spec, which a node may not be able to pull.
func TestRollbackRestoresTheImageThatRan(t *testing.T) {
	const ran = "mirror.example/memcached:1.6.45"
	former, failed := shardtest.Revision(t), shardtest.Revision(t, shardtest.Version("1.6.38"))
	pod := shardtest.Pod("first", former)
	pod.Spec.Containers[0].Image = ran
	s := &shard.State{Observation: shard.Observation{Active: pod, PodRevision: former}}
	metadata := patchInPlace(s, failed, rollout.Recreate, time.Unix(1000, 0)).Body["metadata"].(map[string]any)
	text := metadata["annotations"].(map[string]any)[annotations.Update].(string)
	record := shard.DecodeRecord[shard.UpdateRecord](map[string]string{"": text}, "")
	for name, c := range map[string]struct {
		record *shard.UpdateRecord
		want   string
	}{
		"the record of the update":  {record, ran},
		"a record without an image": {&shard.UpdateRecord{Revision: failed.Hash(), From: former.Hash()}, former.Image.Reference},
		"another update's record":   {&shard.UpdateRecord{Revision: former.Hash(), From: former.Hash(), Image: ran}, former.Image.Reference},
	} {
		t.Run(name, func(t *testing.T) {
			s := &shard.State{Observation: shard.Observation{Active: pod, PodRevision: failed, OnPod: c.record}}
			if patch := string(patchInPlace(s, former, rollout.Recreate, time.Unix(1000, 0)).Bytes()); !strings.Contains(patch, `"image":"`+c.want+`"`) {
				t.Error(patch)
			}
		})
	}
}

// Otherwise the agent would reject the rollback of an update that switched authentication on.
func TestRollbackRemovesAProtectionOnPurpose(t *testing.T) {
	former, secured := shardtest.Revision(t), shardtest.Revision(t, func(s *v1beta1.MemcachedSpec) { s.Auth.Mode = v1beta1.AuthRequired })
	s := &shard.State{Observation: shard.Observation{Active: shardtest.Pod("first", secured), PodRevision: secured}}
	if patch := string(updateInPlace(s, former, "", "").Bytes()); !strings.Contains(patch, `\"auth\":\"Disabled\"`) {
		t.Error(patch)
	}
}
