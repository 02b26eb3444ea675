package shard

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/rollout"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/shard/shardtest"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
)

func TestFailureRecordIsOfOneRevisionAndOneAttempt(t *testing.T) {
	old, update, other := podRevision(t), podRevision(t, version("1.6.38")), podRevision(t, version("1.6.44"))
	retried := func(m *v1alpha1.Memcached) { m.Annotations = map[string]string{v1alpha1.AnnotationRetry: "1"} }
	for name, c := range map[string]struct {
		record FailureRecord
		change func(m *v1alpha1.Memcached)
		want   string
	}{
		"this attempt":             {FailureRecord{Revision: update.Hash(), Message: "memcached crashed"}, func(*v1alpha1.Memcached) {}, "memcached crashed"},
		"another revision":         {FailureRecord{Revision: other.Hash(), Message: "memcached crashed"}, func(*v1alpha1.Memcached) {}, ""},
		"retried":                  {FailureRecord{Revision: update.Hash(), Message: "memcached crashed"}, retried, ""},
		"retried and failed again": {FailureRecord{Revision: update.Hash(), Attempt: "1", Message: "memcached crashed"}, retried, "memcached crashed"},
		"item loss is allowed since": {FailureRecord{Revision: update.Hash(), Message: "memcached started empty"},
			func(m *v1alpha1.Memcached) {
				m.Spec.UpdateStrategy = &v1alpha1.UpdateStrategy{OnItemLoss: v1alpha1.ItemLossContinue}
			}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(old, old, update)
			shardtest.Annotate(f.set, annotations.Failed, EncodeRecord(c.record))
			c.change(f.memcached)
			if got := f.evaluate().Rollout.Failed; got != c.want {
				t.Errorf("failed: %q, want %q", got, c.want)
			}
		})
	}
}

func TestRecordsAreDecodedAsTheyWereEncoded(t *testing.T) {
	want := UpdateRecord{Revision: "b", From: "a", At: time.Unix(500, 7).UTC(), Method: rollout.Recreate, Container: "1", Gets: 3, Hits: 2}
	from := map[string]string{"good": EncodeRecord(want), "bad": "{"}
	if diff := cmp.Diff(&want, DecodeRecord[UpdateRecord](from, "good")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, name := range []string{"bad", "missing"} {
		if got := DecodeRecord[UpdateRecord](from, name); got != nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
