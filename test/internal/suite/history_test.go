package suite

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"

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
	pod := func(uid, shard string, ready, gone bool) Moment {
		status := corev1.ConditionFalse
		if ready {
			status = corev1.ConditionTrue
		}
		return Moment{Gone: gone, Pod: &corev1.Pod{
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
		together []string
		changed  []string
	}{
		{"a shard that starts was not out", Moments{pod("a", "0", false, false), pod("a", "0", true, false)}, nil, nil},
		{"one after the other", Moments{
			pod("a", "0", true, false), pod("b", "1", true, false),
			pod("a", "0", true, true), pod("c", "0", true, false), pod("b", "1", true, true), pod("d", "1", true, false),
		}, nil, nil},
		{"two at once", Moments{
			pod("a", "0", true, false), pod("b", "1", true, false), stops(pod("a", "0", false, false)), pod("b", "1", true, true),
		}, []string{"c-0", "c-1"}, []string{"c-0"}},
		{"a late probe while the other is about to be", Moments{
			pod("a", "0", true, false), pod("b", "1", true, false), stops(pod("a", "0", true, false)), pod("b", "1", false, false), pod("b", "1", true, false),
		}, nil, []string{"c-0"}},
		{"one while the other is about to be", Moments{
			pod("a", "0", true, false), pod("b", "1", true, false), stops(pod("a", "0", true, false)), stops(pod("b", "1", false, false)),
		}, []string{"c-0", "c-1"}, []string{"c-0", "c-1"}},
	} {
		if got := story.all.together(); !slices.Equal(got, story.together) {
			t.Errorf("%s: out at once were %v, want %v", story.name, got, story.together)
		}
		if got := story.all.Changed(); !slices.Equal(got, story.changed) {
			t.Errorf("%s: changed were %v, want %v", story.name, got, story.changed)
		}
	}
}
