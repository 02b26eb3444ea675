package suite

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/rollout"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/shard"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
)

// Moment is one change of a Memcached or of one of its shards' pods, as the API server reported it.
type Moment struct {
	// Version is the resource version, which counts all objects together.
	Version   uint64
	Memcached *v1beta1.Memcached
	Pod       *corev1.Pod
	// Gone: the pod is no more.
	Gone bool
}

// History is what the API server reports about a Memcached and its pods. Nothing that is there for a Moment only is missed.
type History struct {
	*Space
	name string
	stop context.CancelFunc

	lock    sync.Mutex
	moments []Moment
	// seen is the newest version of each object.
	seen map[types.UID]string
}

// Follow begins a History, with what is there now.
func (s *Space) Follow(name string) *History {
	s.Helper()
	ctx, stop := context.WithCancel(s.Ctx)
	h := &History{Space: s, name: name, stop: stop, seen: map[types.UID]string{}}
	s.Cleanup(stop)
	pods := client.MatchingLabels{v1beta1.LabelName: v1beta1.NameValue, v1beta1.LabelInstance: name}
	for _, w := range []struct {
		list  client.ObjectList
		which client.ListOption
	}{
		{&corev1.PodList{}, pods},
		{&v1beta1.MemcachedList{}, client.MatchingFields{"metadata.name": name}},
	} {
		changes, err := K.Changes(ctx, w.list, client.InNamespace(s.Namespace), w.which)
		s.Must(err)
		go func() {
			for change := range changes.ResultChan() {
				h.add(change)
			}
		}()
	}
	return h
}

func (h *History) add(change watch.Event) {
	o, ok := change.Object.(client.Object)
	if !ok {
		return
	}
	version, err := strconv.ParseUint(o.GetResourceVersion(), 10, 64)
	if err != nil {
		return
	}
	m := Moment{Version: version, Gone: change.Type == watch.Deleted}
	switch o := o.(type) {
	case *corev1.Pod:
		m.Pod = o
	case *v1beta1.Memcached:
		m.Memcached = o
	}
	h.lock.Lock()
	defer h.lock.Unlock()
	h.moments = append(h.moments, m)
	h.seen[o.GetUID()] = o.GetResourceVersion()
}

// End ends the History once it has come to now, and returns it.
func (h *History) End() Moments {
	h.Helper()
	h.Eventually("the History comes to now", func(ctx context.Context) error {
		m, err := K.Memcached(ctx, h.Key(h.name))
		if err != nil {
			return err
		}
		objects := []client.Object{m}
		for _, pod := range h.Pods(h.name) {
			objects = append(objects, &pod)
		}
		h.lock.Lock()
		defer h.lock.Unlock()
		for _, o := range objects {
			if h.seen[o.GetUID()] != o.GetResourceVersion() {
				return fmt.Errorf("%s is at version %s, the History at %s", o.GetName(), o.GetResourceVersion(), h.seen[o.GetUID()])
			}
		}
		return nil
	})
	h.stop()
	h.lock.Lock()
	defer h.lock.Unlock()
	all := slices.Clone(h.moments)
	slices.SortStableFunc(all, func(a, b Moment) int { return cmp.Compare(a.Version, b.Version) })
	return all
}

// Moments are a History, in order.
type Moments []Moment

// ShardOf returns the name of the shard of a pod.
func ShardOf(pod *corev1.Pod) string {
	return pod.Labels[v1beta1.LabelInstance] + "-" + pod.Labels[v1beta1.LabelShard]
}

// shards is how the shards stand at one Moment.
type shards map[string]map[types.UID]*corev1.Pod

// take takes one more Moment of a pod.
func (s shards) take(m Moment) {
	name := ShardOf(m.Pod)
	if s[name] == nil {
		s[name] = map[types.UID]*corev1.Pod{}
	}
	if s[name][m.Pod.UID] = m.Pod; m.Gone {
		delete(s[name], m.Pod.UID)
	}
}

// serves reports whether a pod of the shard is ready.
func (s shards) serves(name string) bool {
	for _, pod := range s[name] {
		if shard.IsReady(pod) {
			return true
		}
	}
	return false
}

// stops reports whether the container of a pod of the shard is about to be stopped for a change.
func (s shards) stops(name string) bool {
	for _, pod := range s[name] {
		note := recordOf(pod)
		if note.Method == rollout.Recreate && shard.ContainerID(pod) == note.Container {
			return true
		}
	}
	return false
}

// recordOf returns what the operator noted on a pod when it changed it last.
func recordOf(pod *corev1.Pod) shard.UpdateRecord {
	if record := shard.DecodeRecord[shard.UpdateRecord](pod.Annotations, annotations.Update); record != nil {
		return *record
	}
	return shard.UpdateRecord{}
}

// life changes when the shard gets another pod or container, and when the operator changes its pod.
func (s shards) life(name string) string {
	var lives []string
	for uid, pod := range s[name] {
		lives = append(lives, fmt.Sprint(uid, shard.ContainerID(pod), recordOf(pod).At))
	}
	slices.Sort(lives)
	return strings.Join(lives, ",")
}

// together returns the first shards that were unavailable, or about to be, at once. A probe that fails although nothing has changed since the
// shard became ready is late.
func (all Moments) together() []string {
	now, ready := shards{}, map[string]string{}
	for _, m := range all {
		if m.Pod == nil {
			continue
		}
		of := ShardOf(m.Pod)
		served := now.serves(of)
		if now.take(m); !served && now.serves(of) {
			ready[of] = now.life(of)
		}
		var out []string
		for _, name := range slices.Sorted(maps.Keys(ready)) {
			if now.stops(name) || !now.serves(name) && now.life(name) != ready[name] {
				out = append(out, name)
			}
		}
		if len(out) > 1 {
			return out
		}
	}
	return nil
}

// Changed returns the shards whose pods were changed in place, in order.
func (all Moments) Changed() []string {
	var names []string
	last := map[types.UID]time.Time{}
	for _, m := range all {
		if m.Pod == nil {
			continue
		}
		at := recordOf(m.Pod).At
		if before, known := last[m.Pod.UID]; known && !at.Equal(before) {
			names = append(names, ShardOf(m.Pod))
		}
		last[m.Pod.UID] = at
	}
	return names
}

// Statuses returns each status that was written.
func (all Moments) Statuses() []v1beta1.MemcachedStatus {
	var statuses []v1beta1.MemcachedStatus
	for _, m := range all {
		if m.Memcached != nil {
			statuses = append(statuses, m.Memcached.Status)
		}
	}
	return statuses
}

// Progress returns what the condition Progressing said, as "Reason: message", each sentence once.
func (all Moments) Progress() []string {
	var said []string
	for _, status := range all.Statuses() {
		c := meta.FindStatusCondition(status.Conditions, v1beta1.ConditionProgressing)
		if text := c.Reason + ": " + c.Message; c.Status == metav1.ConditionTrue && !slices.Contains(said, text) {
			said = append(said, text)
		}
	}
	return said
}

// InTurn reports it unless the pods of those shards were changed, one after the other, and of no other one.
func (h *History) InTurn(all Moments, shards ...string) {
	h.Helper()
	if changed := all.Changed(); !slices.Equal(changed, shards) {
		h.Errorf("the shards that were changed are %v, want %v", changed, shards)
	}
	h.NeverTwo(all)
}

// NeverTwo reports it if more than one shard was unavailable at once, or about to be.
func (h *History) NeverTwo(all Moments) {
	h.Helper()
	if out := all.together(); out != nil {
		h.Errorf("shards %v were unavailable at once", out)
	}
}

// Says reports it unless one of the sentences begins like that and has all of the words.
func (h *History) Says(sentences []string, beginning string, words ...string) {
	h.Helper()
	ok := slices.ContainsFunc(sentences, func(s string) bool {
		lacks := slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(s, w) })
		return strings.HasPrefix(s, beginning) && !lacks
	})
	if !ok {
		h.Errorf("nothing says %q with %q; it was said:\n%s", beginning, words, strings.Join(sentences, "\n"))
	}
}
