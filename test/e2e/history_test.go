package e2e

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
)

// moment is one change of a Memcached or of one of its shards' pods, as the API
// server told of it.
type moment struct {
	at time.Time
	// version is the resource version, which counts all objects together.
	version   uint64
	memcached *v1alpha1.Memcached
	pod       *corev1.Pod
	// gone: the pod is no more.
	gone bool
}

// history is what the API server tells of a Memcached and its pods. Nothing that is
// there for a moment only is missed.
type history struct {
	*space
	name string
	stop context.CancelFunc

	lock    sync.Mutex
	moments []moment
	// seen is the newest version of each object.
	seen map[types.UID]string
}

// follow begins a history, with what is there now.
func (s *space) follow(name string) *history {
	s.Helper()
	ctx, stop := context.WithCancel(s.ctx)
	h := &history{space: s, name: name, stop: stop, seen: map[types.UID]string{}}
	s.Cleanup(stop)
	pods := client.MatchingLabels{v1alpha1.LabelName: v1alpha1.NameValue, v1alpha1.LabelInstance: name}
	for _, w := range []struct {
		list  client.ObjectList
		which client.ListOption
	}{
		{&corev1.PodList{}, pods},
		{&v1alpha1.MemcachedList{}, client.MatchingFields{"metadata.name": name}},
	} {
		changes, err := k.Watch(ctx, w.list, client.InNamespace(s.namespace), w.which)
		s.must(err)
		go func() {
			for change := range changes.ResultChan() {
				h.add(change)
			}
		}()
	}
	return h
}

func (h *history) add(change watch.Event) {
	o, ok := change.Object.(client.Object)
	if !ok {
		return
	}
	version, err := strconv.ParseUint(o.GetResourceVersion(), 10, 64)
	if err != nil {
		return
	}
	m := moment{at: time.Now(), version: version, gone: change.Type == watch.Deleted}
	switch o := o.(type) {
	case *corev1.Pod:
		m.pod = o
	case *v1alpha1.Memcached:
		m.memcached = o
	}
	h.lock.Lock()
	defer h.lock.Unlock()
	h.moments = append(h.moments, m)
	h.seen[o.GetUID()] = o.GetResourceVersion()
}

// end ends the history once it has come to now, and returns it.
func (h *history) end() moments {
	h.Helper()
	h.eventually("the history comes to now", func(ctx context.Context) error {
		m, err := k.Memcached(ctx, h.key(h.name))
		if err != nil {
			return err
		}
		objects := []client.Object{m}
		for _, pod := range h.pods(h.name) {
			objects = append(objects, &pod)
		}
		h.lock.Lock()
		defer h.lock.Unlock()
		for _, o := range objects {
			if h.seen[o.GetUID()] != o.GetResourceVersion() {
				return fmt.Errorf("%s is at version %s, the history at %s", o.GetName(), o.GetResourceVersion(), h.seen[o.GetUID()])
			}
		}
		return nil
	})
	h.stop()
	h.lock.Lock()
	defer h.lock.Unlock()
	all := slices.Clone(h.moments)
	slices.SortStableFunc(all, func(a, b moment) int {
		switch {
		case a.version < b.version:
			return -1
		case a.version > b.version:
			return 1
		}
		return 0
	})
	return all
}

// moments are a history, in order.
type moments []moment

// outage is a time in which no pod of a shard was ready.
type outage struct {
	shard string
	took  time.Duration
	// most shards that were out at once meanwhile, this one included.
	most int
}

// outages returns when shards that had served were out, in the order in which they
// came back. One that has not come back is not among them.
func (all moments) outages() []outage {
	var (
		ended []outage
		began = map[string]time.Time{}
		most  = map[string]int{}
		ready = map[string]map[types.UID]bool{}
	)
	for _, m := range all {
		if m.pod == nil {
			continue
		}
		shard := m.pod.Labels[v1alpha1.LabelInstance] + "-" + m.pod.Labels[v1alpha1.LabelShard]
		if ready[shard] == nil {
			ready[shard] = map[types.UID]bool{}
		}
		before := len(ready[shard])
		if isReady(*m.pod) && !m.gone {
			ready[shard][m.pod.UID] = true
		} else {
			delete(ready[shard], m.pod.UID)
		}
		switch now := len(ready[shard]); {
		case before > 0 && now == 0:
			began[shard] = m.at
			for other := range began {
				most[other] = max(most[other], len(began))
			}
		case before == 0 && now > 0 && !began[shard].IsZero():
			ended = append(ended, outage{shard, m.at.Sub(began[shard]), most[shard]})
			delete(began, shard)
			delete(most, shard)
		}
	}
	return ended
}

// statuses returns each status that was told.
func (all moments) statuses() []v1alpha1.MemcachedStatus {
	var statuses []v1alpha1.MemcachedStatus
	for _, m := range all {
		if m.memcached != nil {
			statuses = append(statuses, m.memcached.Status)
		}
	}
	return statuses
}

// progress returns what the condition Progressing said, as "Reason: message", each
// sentence once.
func (all moments) progress() []string {
	var said []string
	for _, status := range all.statuses() {
		c := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionProgressing)
		if text := c.Reason + ": " + c.Message; c.Status == metav1.ConditionTrue && !slices.Contains(said, text) {
			said = append(said, text)
		}
	}
	return said
}

// gates returns which gates held an update back, in order.
func (all moments) gates() []string {
	var gates []string
	for _, status := range all.statuses() {
		if u := status.Update; u != nil && u.Gate != "" && (len(gates) == 0 || gates[len(gates)-1] != u.Gate) {
			gates = append(gates, u.Gate)
		}
	}
	return gates
}

// oneAtATime reports it unless those shards were out, one after the other, each once,
// and no other one.
func (h *history) oneAtATime(all moments, shards ...string) {
	h.Helper()
	var out []string
	for _, o := range all.outages() {
		out = append(out, o.shard)
	}
	if !slices.Equal(out, shards) {
		h.Errorf("the shards that were out are %v, they were to be %v", out, shards)
	}
	h.neverTwo(all)
}

// neverTwo reports it if more than one shard was out at once.
func (h *history) neverTwo(all moments) {
	h.Helper()
	for _, o := range all.outages() {
		if o.most > 1 {
			h.Errorf("%d shards were out at once, %s one of them", o.most, o.shard)
		}
	}
	for _, status := range all.statuses() {
		if status.ReadySize < status.Size-1 {
			h.Errorf("a status tells that %s shards serve", status.Ready)
		}
	}
}

// says reports it unless one of the sentences begins like that.
func (h *history) says(sentences []string, beginning string) {
	h.Helper()
	if !slices.ContainsFunc(sentences, func(s string) bool { return strings.HasPrefix(s, beginning) }) {
		h.Errorf("nothing says %q; it was said:\n%s", beginning, strings.Join(sentences, "\n"))
	}
}

func TestAHistoryTellsWhichShardsWereOutAndHowManyAtOnce(t *testing.T) {
	second := func(n int) time.Time { return time.Unix(int64(n), 0) }
	pod := func(at int, uid, shard string, ready, gone bool) moment {
		status := corev1.ConditionFalse
		if ready {
			status = corev1.ConditionTrue
		}
		return moment{at: second(at), gone: gone, pod: &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid), Labels: map[string]string{v1alpha1.LabelInstance: "c", v1alpha1.LabelShard: shard}},
			Status:     corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: status}}},
		}}
	}
	for _, story := range []struct {
		name string
		all  moments
		want []outage
	}{
		{"a shard that starts was not out", moments{pod(1, "a", "0", false, false), pod(2, "a", "0", true, false)}, nil},
		{"one after the other", moments{
			pod(0, "a", "0", true, false), pod(0, "b", "1", true, false),
			pod(1, "a", "0", false, false), pod(3, "a", "0", true, false), pod(4, "b", "1", false, false), pod(5, "b", "1", true, false),
		}, []outage{{"c-0", 2 * time.Second, 1}, {"c-1", time.Second, 1}}},
		{"two at once", moments{
			pod(0, "a", "0", true, false), pod(0, "b", "1", true, false),
			pod(1, "a", "0", false, false), pod(2, "b", "1", false, false), pod(3, "a", "0", true, false), pod(5, "b", "1", true, false),
		}, []outage{{"c-0", 2 * time.Second, 2}, {"c-1", 3 * time.Second, 2}}},
		{"another pod serves before the first goes", moments{
			pod(0, "a", "0", true, false), pod(1, "b", "0", true, false), pod(2, "a", "0", true, true),
		}, nil},
		{"the first goes before another serves", moments{
			pod(0, "a", "0", true, false), pod(1, "a", "0", true, true), pod(4, "b", "0", true, false),
		}, []outage{{"c-0", 3 * time.Second, 1}}},
	} {
		if got := story.all.outages(); !slices.Equal(got, story.want) {
			t.Errorf("%s: %v, want %v", story.name, got, story.want)
		}
	}
}
