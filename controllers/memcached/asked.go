package memcached

import (
	"cmp"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/manifests"
)

// reader reads what was asked of shards. Most of them bear the same text, which it
// reads once.
type reader struct {
	// target is what is asked now.
	target manifests.Asked
	texts  map[string]manifests.Asked
}

// shard returns what was asked of a shard, and which of its pods holds it.
func (r *reader) shard(set *appsv1.ReplicaSet, pods []*corev1.Pod) shard {
	s := shard{set: set, onSet: readNote[step](set.Annotations, v1alpha1.AnnotationStep)}
	s.Name = set.Name
	asked := make([]manifests.Asked, len(pods))
	for i, pod := range pods {
		asked[i] = r.ofPod(pod)
	}
	s.template = r.ofTemplate(set, asked)
	s.Template = s.template.Revision()
	holder, next := holders(pods, asked, s.Template)
	if holder >= 0 {
		s.pod, s.asked = pods[holder], asked[holder]
		s.onPod = readNote[step](s.pod.Annotations, v1alpha1.AnnotationStep)
		s.step = cmp.Or(s.onPod, s.onSet)
	}
	if next >= 0 {
		s.next = pods[next]
	}
	return s
}

// ofTemplate returns what a ReplicaSet's next pod is to be. A release before 1.2 did
// not note it: its templates followed the spec at once, and its pods stayed what they
// were.
func (r *reader) ofTemplate(set *appsv1.ReplicaSet, pods []manifests.Asked) manifests.Asked {
	if asked, ok := r.read(set.Spec.Template.Annotations[v1alpha1.AnnotationSpec]); ok {
		return asked
	}
	if len(pods) > 0 {
		return pods[0]
	}
	return r.target
}

// ofPod returns what was last asked of a pod. One of a release before 1.2 tells its
// image and its arguments; of the rest it is taken that nothing changed, as a pod must
// not be replaced on a guess.
func (r *reader) ofPod(pod *corev1.Pod) manifests.Asked {
	if asked, ok := r.read(pod.Annotations[v1alpha1.AnnotationSpec]); ok {
		return asked
	}
	if pod.Annotations[v1alpha1.AnnotationRevision] == r.target.Revision() {
		return r.target
	}
	return manifests.AskedOfOlder(pod, r.target)
}

// read reads a text, and says whether it could be read.
func (r *reader) read(text string) (manifests.Asked, bool) {
	if asked, ok := r.texts[text]; ok {
		return asked, true
	}
	asked, err := manifests.ReadAsked(text)
	if err != nil {
		return asked, false
	}
	if r.texts == nil {
		r.texts = map[string]manifests.Asked{}
	}
	r.texts[text] = asked
	return asked, true
}

// holders returns which pod holds a shard and, while there are two, which one is to
// take over from it; -1 is none. asked is what was asked of each.
func holders(pods []*corev1.Pod, asked []manifests.Asked, template string) (holder, next int) {
	holder, next = -1, -1
	for i, pod := range pods {
		follows := asked[i].Revision() == template
		if holder < 0 {
			holder = i
		}
		switch {
		case pod.DeletionTimestamp != nil:
		case follows && next < 0:
			next = i
		case !follows && (asked[holder].Revision() == template || pods[holder].DeletionTimestamp != nil):
			holder = i
		}
	}
	if next == holder || holder >= 0 && asked[holder].Revision() == template {
		next = -1
	}
	return holder, next
}
