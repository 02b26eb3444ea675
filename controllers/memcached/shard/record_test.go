package shard

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/rollout"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/shard/shardtest"
	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
)

func TestFailureRecordIsOfOneRevisionAndOneAttempt(t *testing.T) {
	old, update, other := podRevision(t), podRevision(t, version("1.6.38")), podRevision(t, version("1.6.44"))
	retried := func(m *v1beta1.Memcached) { m.Annotations = map[string]string{v1beta1.AnnotationRetry: "1"} }
	for name, c := range map[string]struct {
		record FailureRecord
		change func(m *v1beta1.Memcached)
		want   string
	}{
		"this attempt":             {FailureRecord{Revision: update.Hash(), Message: "memcached crashed"}, func(*v1beta1.Memcached) {}, "memcached crashed"},
		"another revision":         {FailureRecord{Revision: other.Hash(), Message: "memcached crashed"}, func(*v1beta1.Memcached) {}, ""},
		"retried":                  {FailureRecord{Revision: update.Hash(), Message: "memcached crashed"}, retried, ""},
		"retried and failed again": {FailureRecord{Revision: update.Hash(), Attempt: "1", Message: "memcached crashed"}, retried, "memcached crashed"},
		"item loss is allowed since": {FailureRecord{Revision: update.Hash(), Message: "memcached started empty"},
			func(m *v1beta1.Memcached) {
				m.Spec.UpdateStrategy.OnItemLoss = v1beta1.ItemLossContinue
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

func TestUpdateIsRepeatedWhileTheKubeletMayHaveMissedIt(t *testing.T) {
	old, update := podRevision(t), podRevision(t, extraArgs("-v"))
	warm := agentwire.Start{Result: agentwire.StartWarm}
	const never = -1
	for name, c := range map[string]struct {
		arguments resources.PodRevision
		method    rollout.Method
		ago       time.Duration
		// repeated is after which time, want whether to do so now, and next after which time otherwise.
		repeated time.Duration
		want     bool
		next     time.Duration
	}{
		"it has just begun":                       {old, rollout.Restart, time.Second, never, false, 4 * time.Second},
		"the agent hasn't read it for 5 seconds":  {old, rollout.Restart, 5 * time.Second, never, true, 0},
		"it was repeated":                         {old, rollout.Restart, 9 * time.Second, 5 * time.Second, false, time.Second},
		"it was repeated twice as long ago":       {old, rollout.Restart, 80 * time.Second, 40 * time.Second, true, 0},
		"the kubelet has synced the pod":          {old, rollout.Restart, 100 * time.Second, 80 * time.Second, false, 0},
		"it is an old one":                        {old, rollout.Restart, time.Hour, never, false, 0},
		"it is in effect":                         {update, rollout.Restart, 5 * time.Second, never, false, 0},
		"it changes nothing that the agent reads": {old, rollout.Live, 5 * time.Second, never, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(old, update, update)
			r := UpdateRecord{Revision: update.Hash(), From: old.Hash(), At: f.now.Add(-c.ago).UTC(), Method: c.method, Container: "before", Gets: 3}
			if c.repeated >= 0 {
				r.Repeated = ptr.To(r.At.Add(c.repeated))
			}
			record(f.pods[0], r)
			f.agents["first"] = agentwire.Status{Arguments: c.arguments.Arguments, Start: warm, Version: update.Image.Version}
			state := f.evaluate()
			got, next := state.Repeat(f.now)
			var want *UpdateRecord
			if c.want {
				r.Repeated = ptr.To(f.now.UTC())
				want = &r
			}
			if diff := cmp.Diff(want, got); diff != "" || next != c.next {
				t.Errorf("the next one is due in %s, want %s; (-want +got):\n%s", next, c.next, diff)
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

func TestRecordHasNoNegativeNumbers(t *testing.T) {
	text := EncodeRecord(UpdateRecord{Revision: "r", Items: -1, Gets: -1 << 63, Hits: 1<<63 - 1})
	if got := decodeUpdate(map[string]string{annotations.Update: text}); got.Items != 0 || got.Gets != 0 || got.Hits != maxCount || got.Revision != "r" {
		t.Errorf("the record is %+v", got)
	}
}

// An agent that missed it can learn of it in time.
func TestAnnouncedStopIsOfOneContainerAndRepeated(t *testing.T) {
	update := podRevision(t, version("1.6.38"))
	f := newFixture(podRevision(t), podRevision(t), update)
	at := func(token string, later time.Duration) string {
		shardtest.Annotate(f.pods[0], annotations.Stop, token)
		s := f.evaluate()
		return s.StopToken(update, f.now.Add(later))
	}
	first := at("", 0)
	if want := agentwire.AnnounceArguments("running-"+update.Hash()+"-1000", update.ArgumentsText); first != want {
		t.Errorf("%s, want %s", first, want)
	}
	if again := at(first, AnnounceRetry-time.Second); again != first {
		t.Errorf("soon after, it is %s", again)
	}
	if again := at(first, AnnounceRetry); again == first {
		t.Error("it is not repeated")
	}
	if again := at(strings.Replace(first, "1000", "soon", 1), 0); again != first {
		t.Errorf("after a value that isn't a time, it is %s", again)
	}
	f.pods[0].Status.ContainerStatuses[0].ContainerID = "containerd://next"
	if again := at(first, 0); again == first || !strings.HasPrefix(again, "next-") {
		t.Errorf("in the next container, it is %s", again)
	}
}

func TestRecordOfAnUpdateHasTheStateBeforeIt(t *testing.T) {
	old, update := podRevision(t), podRevision(t, version("1.6.38"))
	f := newFixture(old, old, update)
	s := f.evaluate()
	want := UpdateRecord{Revision: update.Hash(), From: old.Hash(), At: f.now.UTC(), Method: rollout.Recreate, Container: shardtest.RunningContainer}
	if got := s.NewUpdateRecord(update, rollout.Recreate, f.now); got != want {
		t.Errorf("%+v", got)
	}
	f.agents["first"] = agentwire.Status{Items: 7, RecentGets: 5, RecentHits: 3}
	s = f.evaluate()
	if want.Items, want.Gets, want.Hits = 7, 5, 3; s.NewUpdateRecord(update, rollout.Recreate, f.now) != want {
		t.Errorf("%+v", s.NewUpdateRecord(update, rollout.Recreate, f.now))
	}
}
