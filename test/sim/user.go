package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/internal/schemaedit"
	"github.com/memcached-operator/memcached-operator/internal/simtest"
)

// randomUser changes Memcacheds at random, and sometimes their objects.
type randomUser struct {
	edits *schemaedit.Edits
	// always are fields that update sets, too.
	always spec
}

func newRandomUser(w *World) randomUser {
	always := spec{}
	if w.seed%2 == 0 {
		maps.Copy(always, hashed)
	}
	if w.seed%3 == 0 {
		always["updateStrategy"] = available
	}
	return randomUser{simtest.Schema(simtest.KindMemcached).NewEdits(rand.New(rand.NewPCG(w.seed, 1))), always}
}

// act makes one change. Of the two Memcacheds that the user creates, the objects of the second
// have names that the first one's shards use too.
func (p randomUser) act(w *World) {
	switch roll := w.Rand.IntN(20); {
	case roll < 8:
		p.update(w)
	case roll < 12:
		p.edit(w, "cache")
	case roll == 12:
		w.remove("cache")
	case roll == 13:
		p.edit(w, "cache-1")
	case roll == 14:
		w.remove("cache-1")
	case roll == 15:
		w.drain()
	case roll == 16:
		w.retry("cache")
	case roll == 17:
		w.move()
	case roll == 18:
		w.confirm()
	default:
		w.interfere()
	}
}

// update has the first Memcached of two or three shards updated, also one whose edits before can't be applied.
func (p randomUser) update(w *World) {
	if w.live("cache") == nil {
		p.edit(w, "cache")
		return
	}
	s := map[string]any{"size": int64(2 + w.Rand.IntN(2+len(p.always)/2)), "version": []string{oldest, middle, newest, later}[w.Rand.IntN(4)]}
	switch w.Rand.IntN(12) {
	case 0:
		s["config"] = map[string]any{"threads": int64(1 + w.Rand.IntN(4))}
	case 1, 7, 8: // which replaces pods
		s["memory"] = []string{"96Mi", "128Mi"}[w.Rand.IntN(2)]
	case 2:
		s["config"] = map[string]any{"extraArgs": []any{"-R", "0"}} // memcached rejects it
	case 3:
		s["updateStrategy"] = map[string]any{"handover": map[string]any{"mode": string(v1beta1.HandoverDisabled)}}
	case 4:
		s["updateStrategy"] = map[string]any{"type": string(v1beta1.UpdateHandover)}
	case 5:
		s["pod"] = map[string]any{"metadata": map[string]any{"labels": map[string]any{"team": "shop"}}}
	case 6:
		s = maps.Clone(bad[w.Rand.IntN(len(bad))])
	}
	maps.Copy(s, p.always)
	w.Edit("cache", func(map[string]any) map[string]any { return s })
}

// edit creates a Memcached, or changes its spec.
func (p randomUser) edit(w *World, name string) {
	have := simtest.Get[*v1beta1.Memcached](w.Server, name)
	if have == nil {
		mode := []v1beta1.HandoverMode{v1beta1.HandoverStrict, v1beta1.HandoverAvailable}[w.Rand.IntN(2)]
		w.Make(name, map[string]any{"size": int64(1 + w.Rand.IntN(3)), "updateStrategy": map[string]any{"handover": map[string]any{"mode": string(mode)}}})
		return
	}
	if have.DeletionTimestamp != nil {
		return
	}
	old := unstructuredOf(have)
	spec, _, _ := unstructured.NestedMap(old.Object, "spec")
	edited, story := p.edits.Next(spec)
	w.log("user", "%s: %s", name, story)
	w.Edit(name, func(map[string]any) map[string]any { return edited })
}

// Make creates a Memcached, and reports whether the API server takes it.
func (w *World) Make(name string, spec map[string]any) bool {
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1beta1.GroupVersion.String(), "kind": "Memcached",
		"metadata": map[string]any{"name": name, "namespace": w.Server.Namespace}, "spec": spec,
	}}
	if err := w.Server.Create(context.Background(), u); err != nil {
		w.log("user", "may not create %s: %v", name, err)
		return false
	}
	w.log("user", "creates %s: %s", name, w.specText(name))
	return true
}

// Edit changes a Memcached's spec, and reports whether the API server takes it.
func (w *World) Edit(name string, edit func(spec map[string]any) map[string]any) bool {
	u := unstructuredOf(simtest.Get[*v1beta1.Memcached](w.Server, name))
	spec, _, _ := unstructured.NestedMap(u.Object, "spec")
	u.Object["spec"] = edit(spec)
	if err := w.Server.Update(context.Background(), u); err != nil {
		w.log("user", "is rejected: %v", err)
		return false
	}
	w.log("user", "has %s: %s", name, w.specText(name))
	return true
}

func unstructuredOf(m *v1beta1.Memcached) *unstructured.Unstructured {
	fields, err := kruntime.DefaultUnstructuredConverter.ToUnstructured(m)
	if err != nil {
		panic(err)
	}
	u := &unstructured.Unstructured{Object: fields}
	u.SetGroupVersionKind(v1beta1.GroupVersion.WithKind("Memcached"))
	return u
}

func (w *World) specText(name string) string {
	raw, err := json.Marshal(simtest.Get[*v1beta1.Memcached](w.Server, name).Spec)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

// must panics when a write of the user fails that the API server can't reject.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

func (w *World) create(o client.Object) { must(w.Server.Create(context.Background(), o)) }
func (w *World) update(o client.Object) { must(w.Server.Update(context.Background(), o)) }
func (w *World) delete(o client.Object) {
	must(client.IgnoreNotFound(w.Server.Delete(context.Background(), o)))
}

// remove deletes a Memcached, if it is there.
func (w *World) remove(name string) {
	if m := simtest.Get[*v1beta1.Memcached](w.Server, name); m != nil {
		w.log("user", "deletes %s", name)
		w.delete(m)
	}
}

// live returns a copy of a Memcached, nil if there is none or it is being deleted.
func (w *World) live(name string) *v1beta1.Memcached {
	if m := simtest.Get[*v1beta1.Memcached](w.Server, name); m != nil && m.DeletionTimestamp == nil {
		return m.DeepCopy()
	}
	return nil
}

// retry has an update that was stopped tried again.
func (w *World) retry(name string) {
	m := w.live(name)
	if m == nil {
		return
	}
	metav1.SetMetaDataAnnotation(&m.ObjectMeta, v1beta1.AnnotationRetry, w.Suffix())
	w.update(m)
	w.log("user", "retries %s", name)
}

// confirm says that no client has the former list of shards. Without such a list, it begins the next purge.
func (w *World) confirm() {
	m := w.live("cache")
	if m == nil {
		return
	}
	if m.Status.Scaling != nil {
		metav1.SetMetaDataAnnotation(&m.ObjectMeta, v1beta1.AnnotationScaled, m.Status.Scaling.ID)
		w.log("user", "confirms the list of cache")
	} else {
		value := v1beta1.PurgeDryRun + "1"
		if m.Annotations[v1beta1.AnnotationPurge] == value {
			value = v1beta1.PurgeDelete + "1"
		}
		metav1.SetMetaDataAnnotation(&m.ObjectMeta, v1beta1.AnnotationPurge, value)
		w.log("user", "requests the purge %s", value)
	}
	w.update(m)
}

// move wants the shard of a pod on another node, or no longer.
func (w *World) move() {
	pods := w.livePods()
	if len(pods) == 0 {
		return
	}
	pod := pods[w.Rand.IntN(len(pods))].DeepCopy()
	value := w.Suffix()
	if pod.Annotations[v1beta1.AnnotationMove] != "" {
		value = ""
	}
	metav1.SetMetaDataAnnotation(&pod.ObjectMeta, v1beta1.AnnotationMove, value)
	w.update(pod)
	w.log("user", "wants pod %s on another node: %q", pod.Name, value)
}

// livePods returns the pods that aren't being deleted and haven't failed.
func (w *World) livePods() []*corev1.Pod {
	var pods []*corev1.Pod
	for _, pod := range simtest.All[*corev1.Pod](w.Server) {
		if pod.DeletionTimestamp == nil && pod.Status.Phase != corev1.PodFailed {
			pods = append(pods, pod)
		}
	}
	return pods
}

// drain deletes a pod that runs, as the drain of a node does.
func (w *World) drain() {
	if pods := w.livePods(); len(pods) > 0 {
		w.deletePod(pods[w.Rand.IntN(len(pods))])
	}
}

func (w *World) deletePod(pod *corev1.Pod) {
	w.log("user", "deletes pod %s", pod.Name)
	w.watch.Deletes(pod, byUser)
	w.delete(pod)
}

// orphan deletes an object without those that it controls.
func (w *World) orphan(owner client.Object) {
	w.log("user", "deletes %s %s and keeps its objects", simtest.KindOf(owner), owner.GetName())
	for _, k := range simtest.Kinds {
		for _, name := range w.Server.Names(k) {
			if o := w.Server.Now[k][name]; metav1.IsControlledBy(o, owner) {
				o = o.DeepCopyObject().(client.Object)
				o.SetOwnerReferences(nil)
				w.update(o)
			}
		}
	}
	w.delete(owner)
}

// interfere deletes, changes or replaces an object that the operator manages.
func (w *World) interfere() {
	owned := []simtest.Kind{simtest.KindReplicaSet, simtest.KindService, simtest.KindBudget, simtest.KindNetworkPolicy}
	k := owned[w.Rand.IntN(len(owned))]
	names := w.Server.Names(k)
	if len(names) == 0 || w.Rand.IntN(4) == 0 {
		w.squat(k)
		return
	}
	o := w.Server.Now[k][names[w.Rand.IntN(len(names))]]
	if o.GetLabels()["squatter"] != "" {
		return
	}
	switch w.Rand.IntN(3) {
	case 0:
		w.log("user", "deletes %s %s", k, o.GetName())
		if set, ok := o.(*appsv1.ReplicaSet); ok {
			w.drifted[set.Name] = true
			for _, pod := range simtest.All[*corev1.Pod](w.Server) {
				if metav1.IsControlledBy(pod, set) {
					w.watch.Deletes(pod, byUser)
				}
			}
		}
		w.delete(o)
	case 1:
		set, ok := o.(*appsv1.ReplicaSet)
		if !ok {
			return
		}
		w.drifted[set.Name] = true
		w.orphan(set)
	default:
		w.drift(o)
	}
}

// drift changes a field of an object that the operator wants otherwise.
func (w *World) drift(o client.Object) {
	o = o.DeepCopyObject().(client.Object)
	switch o := o.(type) {
	case *appsv1.ReplicaSet:
		o.Spec.Replicas = ptr.To(int32(w.Rand.IntN(3))) //nolint:gosec // 0 to 2
		w.drifted[o.Name] = true
		for _, pod := range simtest.All[*corev1.Pod](w.Server) {
			if metav1.IsControlledBy(pod, o) && *o.Spec.Replicas == 0 {
				w.watch.Deletes(pod, byUser)
			}
		}
	case *corev1.Service:
		o.Spec.Ports[0].Port++
	default:
		labels := maps.Clone(o.GetLabels())
		delete(labels, v1beta1.LabelInstance)
		o.SetLabels(labels)
	}
	w.log("user", "changes %s %s", simtest.KindOf(o), o.GetName())
	w.update(o)
}

// squat takes a name that a Memcached's object could have, or gives one free again.
func (w *World) squat(k simtest.Kind) {
	name := "cache"
	if k == simtest.KindReplicaSet || k == simtest.KindService {
		name = fmt.Sprintf("cache-%d", w.Rand.IntN(4))
	}
	if have, ok := w.Server.Now[k][name]; ok {
		if have.GetLabels()["squatter"] != "" {
			w.log("user", "deletes the foreign %s %s", k, name)
			w.delete(have)
		}
		return
	}
	w.take(k, name)
}

// take creates a foreign object of that name when there is none.
func (w *World) take(k simtest.Kind, name string) {
	o := simtest.NewObject(k)
	o.SetName(name)
	o.SetNamespace(w.Server.Namespace)
	o.SetLabels(map[string]string{"squatter": "yes"})
	if set, ok := o.(*appsv1.ReplicaSet); ok {
		set.Spec.Replicas = ptr.To[int32](0)
		set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"squatter": "yes"}}
		set.Spec.Template.Labels = map[string]string{"squatter": "yes"}
		set.Spec.Template.Spec.Containers = []corev1.Container{{Name: "c", Image: "busybox"}}
	}
	if service, ok := o.(*corev1.Service); ok {
		service.Spec.Ports = []corev1.ServicePort{{Port: 80}}
	}
	w.log("user", "creates a foreign %s %s", k, name)
	w.create(o)
}
