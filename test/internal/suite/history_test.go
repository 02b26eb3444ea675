package suite

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/rollout"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
)

// closing closes each watch after one change.
type closing struct{ client.WithWatch }

func (closing) Watch(_ context.Context, _ client.ObjectList, of ...client.ListOption) (watch.Interface, error) {
	from, w := 6, watch.NewFakeWithChanSize(1, false)
	if raw := new(client.ListOptions).ApplyOptions(of).Raw; raw != nil {
		from, _ = strconv.Atoi(raw.ResourceVersion)
	}
	w.Modify(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: strconv.Itoa(from + 1)}})
	w.Stop()
	return w, nil
}

func TestWatchThatIsClosedContinuesWhereItWas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		changes, err := (&cluster.Cluster{WithWatch: closing{}}).Changes(t.Context(), &corev1.PodList{})
		for _, want := range []string{"7", "8", "9"} {
			if got := (<-changes.ResultChan()).Object.(*corev1.Pod).ResourceVersion; err != nil || got != want {
				t.Errorf("the version is %s, want %s: %v", got, want, err)
			}
		}
	})
}

func TestHistoryReportsUnavailableShards(t *testing.T) {
	second := func(n int) time.Time { return time.Unix(int64(n), 0) }
	pod := func(at int, uid, shard string, ready, gone bool) Moment {
		status := corev1.ConditionFalse
		if ready {
			status = corev1.ConditionTrue
		}
		return Moment{At: second(at), Gone: gone, Pod: &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid), Labels: map[string]string{v1beta1.LabelInstance: "c", v1beta1.LabelShard: shard}},
			Status: corev1.PodStatus{
				Conditions:        []corev1.PodCondition{{Type: corev1.PodReady, Status: status}},
				ContainerStatuses: []corev1.ContainerStatus{{Name: resources.Container, ContainerID: "containerd://x"}},
			},
		}}
	}
	stops := func(m Moment) Moment {
		m.Pod.Annotations = map[string]string{annotations.Update: fmt.Sprintf(`{"at":"2026-11-27T12:00:00Z","method":%d,"container":"x"}`, rollout.Recreate)}
		return m
	}
	for _, story := range []struct {
		name     string
		all      Moments
		out      []Outage
		together []string
		changed  []string
	}{
		{"a shard that starts was not out", Moments{pod(1, "a", "0", false, false), pod(2, "a", "0", true, false)}, nil, nil, nil},
		{"one after the other", Moments{
			pod(0, "a", "0", true, false), pod(0, "b", "1", true, false),
			pod(1, "a", "0", false, false), pod(3, "a", "0", true, false), pod(4, "b", "1", false, false), pod(5, "b", "1", true, false),
		}, []Outage{{"c-0", 2 * time.Second}, {"c-1", time.Second}}, nil, nil},
		{"two at once", Moments{
			pod(0, "a", "0", true, false), pod(0, "b", "1", true, false),
			pod(1, "a", "0", false, false), pod(2, "b", "1", false, false), pod(3, "a", "0", true, false), pod(5, "b", "1", true, false),
		}, []Outage{{"c-0", 2 * time.Second}, {"c-1", 3 * time.Second}}, []string{"c-0", "c-1"}, nil},
		{"one while the other is about to be", Moments{
			pod(0, "a", "0", true, false), pod(0, "b", "1", true, false),
			stops(pod(1, "a", "0", true, false)), pod(2, "b", "1", false, false),
		}, nil, []string{"c-0", "c-1"}, []string{"c-0"}},
		{"another pod serves before the first goes", Moments{
			pod(0, "a", "0", true, false), pod(1, "b", "0", true, false), pod(2, "a", "0", true, true),
		}, nil, nil, nil},
		{"the first goes before another serves", Moments{
			pod(0, "a", "0", true, false), pod(1, "a", "0", true, true), pod(4, "b", "0", true, false),
		}, []Outage{{"c-0", 3 * time.Second}}, nil, nil},
	} {
		if got := story.all.Outages(); !slices.Equal(got, story.out) {
			t.Errorf("%s: out were %v, want %v", story.name, got, story.out)
		}
		if got := story.all.together(); !slices.Equal(got, story.together) {
			t.Errorf("%s: out at once were %v, want %v", story.name, got, story.together)
		}
		if got := story.all.Changed(); !slices.Equal(got, story.changed) {
			t.Errorf("%s: changed were %v, want %v", story.name, got, story.changed)
		}
	}
}
