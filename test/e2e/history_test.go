package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
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
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/rollout"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/shard"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
)

// moment is one change of a Memcached or of one of its shards' pods, as the API
// server reported it.
type moment struct {
	at time.Time
	// version is the resource version, which counts all objects together.
	version   uint64
	memcached *v1alpha1.Memcached
	pod       *corev1.Pod
	// gone: the pod is no more.
	gone bool
}

// history is what the API server reports about a Memcached and its pods. Nothing that is
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
}

func shardOf(pod *corev1.Pod) string {
	return pod.Labels[v1alpha1.LabelInstance] + "-" + pod.Labels[v1alpha1.LabelShard]
}

// shards is how the shards stand at one moment.
type shards map[string]map[types.UID]*corev1.Pod

// take takes one more moment of a pod.
func (s shards) take(m moment) {
	name := shardOf(m.pod)
	if s[name] == nil {
		s[name] = map[types.UID]*corev1.Pod{}
	}
	if s[name][m.pod.UID] = m.pod; m.gone {
		delete(s[name], m.pod.UID)
	}
}

// serves reports whether a pod of the shard is ready.
func (s shards) serves(name string) bool {
	for _, pod := range s[name] {
		if isReady(*pod) {
			return true
		}
	}
	return false
}

// stops reports whether the container of a pod of the shard is about to be stopped for
// a change.
func (s shards) stops(name string) bool {
	for _, pod := range s[name] {
		note := updateRecordOf(pod)
		if note.Method == rollout.Recreate && shard.ContainerID(pod) == note.Container {
			return true
		}
	}
	return false
}

// updateRecord is what the operator noted on a pod when it changed it last.
type updateRecord struct {
	At        time.Time
	Method    rollout.Method
	Container string
}

func updateRecordOf(pod *corev1.Pod) updateRecord {
	var note updateRecord
	_ = json.Unmarshal([]byte(pod.Annotations[annotations.Update]), &note) // none is the zero value
	return note
}

// outages returns when shards that had served were unavailable, in the order in which they
// came back. The kubelet reports a pod a moment later, and not what was over by
// then; one that has not come back is not among them.
func (all moments) outages() []outage {
	var ended []outage
	now, began := shards{}, map[string]time.Time{}
	for _, m := range all {
		if m.pod == nil {
			continue
		}
		name := shardOf(m.pod)
		served := now.serves(name)
		now.take(m)
		switch serves := now.serves(name); {
		case served && !serves:
			began[name] = m.at
		case !served && serves && !began[name].IsZero():
			ended = append(ended, outage{name, m.at.Sub(began[name])})
		}
	}
	return ended
}

// together returns the first shards that were unavailable, or about to be, at once.
func (all moments) together() []string {
	now, served := shards{}, map[string]bool{}
	for _, m := range all {
		if m.pod == nil {
			continue
		}
		now.take(m)
		var out []string
		for _, name := range slices.Sorted(maps.Keys(now)) {
			served[name] = served[name] || now.serves(name)
			if served[name] && (!now.serves(name) || now.stops(name)) {
				out = append(out, name)
			}
		}
		if len(out) > 1 {
			return out
		}
	}
	return nil
}

// changed returns the shards whose pods were changed in place, in order.
func (all moments) changed() []string {
	var names []string
	last := map[types.UID]updateRecord{}
	for _, m := range all {
		if m.pod == nil {
			continue
		}
		note := updateRecordOf(m.pod)
		if before, known := last[m.pod.UID]; known && note != before {
			names = append(names, shardOf(m.pod))
		}
		last[m.pod.UID] = note
	}
	return names
}

// statuses returns each status that was written.
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

// gates returns the gates that blocked an update, in order.
func (all moments) gates() []v1alpha1.Gate {
	var gates []v1alpha1.Gate
	for _, status := range all.statuses() {
		if u := status.Update; u != nil && u.Gate != "" && (len(gates) == 0 || gates[len(gates)-1] != u.Gate) {
			gates = append(gates, u.Gate)
		}
	}
	return gates
}

// inTurn reports it unless the pods of those shards were changed, one after the
// other, and of no other one.
func (h *history) inTurn(all moments, shards ...string) {
	h.Helper()
	if changed := all.changed(); !slices.Equal(changed, shards) {
		h.Errorf("the shards that were changed are %v, want %v", changed, shards)
	}
	h.neverTwo(all)
}

// neverTwo reports it if more than one shard was unavailable at once, or about to be.
func (h *history) neverTwo(all moments) {
	h.Helper()
	if out := all.together(); out != nil {
		h.Errorf("shards %v were unavailable at once", out)
	}
	for _, status := range all.statuses() {
		if status.ReadySize < status.Size-1 {
			h.Errorf("a status has %s ready shards", status.Ready)
		}
	}
}

// neverOut reports it if a shard was unavailable, or changed in place.
func (h *history) neverOut(all moments) {
	h.Helper()
	h.inTurn(all)
	if out := all.outages(); out != nil {
		h.Errorf("shards were unavailable: %v", out)
	}
}

// says reports it unless one of the sentences begins like that and has all of the
// words.
func (h *history) says(sentences []string, beginning string, words ...string) {
	h.Helper()
	ok := slices.ContainsFunc(sentences, func(s string) bool {
		lacks := slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(s, w) })
		return strings.HasPrefix(s, beginning) && !lacks
	})
	if !ok {
		h.Errorf("nothing says %q with %q; it was said:\n%s", beginning, words, strings.Join(sentences, "\n"))
	}
}

func TestHistoryReportsUnavailableShards(t *testing.T) {
	second := func(n int) time.Time { return time.Unix(int64(n), 0) }
	pod := func(at int, uid, shard string, ready, gone bool) moment {
		status := corev1.ConditionFalse
		if ready {
			status = corev1.ConditionTrue
		}
		return moment{at: second(at), gone: gone, pod: &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid), Labels: map[string]string{v1alpha1.LabelInstance: "c", v1alpha1.LabelShard: shard}},
			Status: corev1.PodStatus{
				Conditions:        []corev1.PodCondition{{Type: corev1.PodReady, Status: status}},
				ContainerStatuses: []corev1.ContainerStatus{{Name: resources.Container, ContainerID: "containerd://x"}},
			},
		}}
	}
	stops := func(m moment) moment {
		m.pod.Annotations = map[string]string{annotations.Update: fmt.Sprintf(`{"method":%d,"container":"x"}`, rollout.Recreate)}
		return m
	}
	for _, story := range []struct {
		name     string
		all      moments
		out      []outage
		together []string
		changed  []string
	}{
		{"a shard that starts was not out", moments{pod(1, "a", "0", false, false), pod(2, "a", "0", true, false)}, nil, nil, nil},
		{"one after the other", moments{
			pod(0, "a", "0", true, false), pod(0, "b", "1", true, false),
			pod(1, "a", "0", false, false), pod(3, "a", "0", true, false), pod(4, "b", "1", false, false), pod(5, "b", "1", true, false),
		}, []outage{{"c-0", 2 * time.Second}, {"c-1", time.Second}}, nil, nil},
		{"two at once", moments{
			pod(0, "a", "0", true, false), pod(0, "b", "1", true, false),
			pod(1, "a", "0", false, false), pod(2, "b", "1", false, false), pod(3, "a", "0", true, false), pod(5, "b", "1", true, false),
		}, []outage{{"c-0", 2 * time.Second}, {"c-1", 3 * time.Second}}, []string{"c-0", "c-1"}, nil},
		{"one while the other is about to be", moments{
			pod(0, "a", "0", true, false), pod(0, "b", "1", true, false),
			stops(pod(1, "a", "0", true, false)), pod(2, "b", "1", false, false),
		}, nil, []string{"c-0", "c-1"}, []string{"c-0"}},
		{"another pod serves before the first goes", moments{
			pod(0, "a", "0", true, false), pod(1, "b", "0", true, false), pod(2, "a", "0", true, true),
		}, nil, nil, nil},
		{"the first goes before another serves", moments{
			pod(0, "a", "0", true, false), pod(1, "a", "0", true, true), pod(4, "b", "0", true, false),
		}, []outage{{"c-0", 3 * time.Second}}, nil, nil},
	} {
		if got := story.all.outages(); !slices.Equal(got, story.out) {
			t.Errorf("%s: out were %v, want %v", story.name, got, story.out)
		}
		if got := story.all.together(); !slices.Equal(got, story.together) {
			t.Errorf("%s: out at once were %v, want %v", story.name, got, story.together)
		}
		if got := story.all.changed(); !slices.Equal(got, story.changed) {
			t.Errorf("%s: changed were %v, want %v", story.name, got, story.changed)
		}
	}
}
