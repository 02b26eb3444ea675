package shard

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/rollout"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/shard/shardtest"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
)

// What runs is what was checked: a policy may change the images of new pods only.
func TestShardIsReplacedUnlessAPatchGivesItTheCheckedImage(t *testing.T) {
	const checked = "mirror.example/memcached:1.6.38"
	old, update := podRevision(t), podRevision(t, version("1.6.38"))
	admitted := func(image string) func(*fixture) {
		return func(f *fixture) {
			f.admitted = map[types.UID]AdmittedImage{f.pods[0].UID: {update.Hash(), image, checked}}
		}
	}
	can := func(f *fixture) { shardtest.Annotate(f.pods[0], annotations.Handover, string(v1beta1.HandoverStrict)) }
	adopted := func(f *fixture) { shardtest.MountKey(f.pods[0], "cache-handover-87654321") }
	loses := func(f *fixture) { f.memcached.Spec.UpdateStrategy.OnItemLoss = v1beta1.ItemLossContinue }
	has := func(image string) func(*fixture) {
		return func(f *fixture) { f.pods[0].Spec.Containers = []corev1.Container{{Name: "memcached", Image: image}} }
	}
	replacing := func(f *fixture) {
		f.set.Spec.Template.Annotations[annotations.Spec] = update.String()
		record(f.set, UpdateRecord{Revision: update.Hash(), Method: rollout.Replace, Rewritten: true})
	}
	for name, c := range map[string]struct {
		given     []func(*fixture)
		want      rollout.Method
		forbidden bool
	}{
		"no policy":                    {nil, rollout.Recreate, false},
		"the reference":                {[]func(*fixture){can, admitted(update.Image.Reference)}, rollout.Replace, false},
		"the same image with a digest": {[]func(*fixture){can, admitted(checked + "@sha256:0123")}, rollout.Replace, false},
		"the operator restarts while it is replaced":      {[]func(*fixture){can, replacing}, rollout.Replace, false},
		"the pod can't hand over":                         {[]func(*fixture){admitted(update.Image.Reference)}, rollout.Replace, true},
		"the pod has the keys of a deleted Memcached":     {[]func(*fixture){can, adopted, admitted(update.Image.Reference)}, rollout.Replace, true},
		"the pod can't hand over, and may lose its items": {[]func(*fixture){admitted(update.Image.Reference), loses}, rollout.Replace, false},
		"the pod has the checked image":                   {[]func(*fixture){has(checked), admitted(checked)}, rollout.Live, false},
		"the pod has the image of the spec":               {[]func(*fixture){has(update.Image.Reference)}, rollout.Live, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(old, old, update)
			for _, given := range c.given {
				given(f)
			}
			change := f.evaluate().Rollout.ToTarget
			if change.Method != c.want || (change.Forbidden != "") != c.forbidden {
				t.Errorf("%s, forbidden %q", change.Method, change.Forbidden)
			}
			if replaced := c.want == rollout.Replace; strings.Contains(change.Description, "only new pods") != replaced || change.KeepsItems != (replaced && change.HandsOver) {
				t.Errorf("%q, keeps items: %t", change.Description, change.KeepsItems)
			}
		})
	}
}

func TestDryRunOfAnotherRevisionDecidesNothing(t *testing.T) {
	old, update := podRevision(t), podRevision(t, version("1.6.38"))
	f := newFixture(old, old, update)
	f.admitted = map[types.UID]AdmittedImage{f.pods[0].UID: {old.Hash(), "a", "b"}}
	if s := f.evaluate(); s.Rewritten || s.Rollout.ToTarget.Method != rollout.Recreate {
		t.Errorf("%+v", s.Rollout.ToTarget)
	}
}
