package memcached

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/manifests"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/rollout"
)

// retiredCost has a ReplicaSet give a pod up before others.
const retiredCost = "-1000"

// subresourceResize is where a running pod is given resources.
const subresourceResize = "resize"

// podPatch is a change of one pod, as a strategic merge patch. It is refused unless
// the pod is still what was seen.
type podPatch struct {
	pod *corev1.Pod
	// subresource that is patched; empty for the pod itself.
	subresource string
	body        map[string]any
}

// bytes returns the patch as JSON.
func (p podPatch) bytes() []byte {
	metadata, _ := p.body["metadata"].(map[string]any)
	if metadata == nil {
		metadata = map[string]any{}
		p.body["metadata"] = metadata
	}
	metadata["uid"], metadata["resourceVersion"] = p.pod.UID, p.pod.ResourceVersion
	raw, err := json.Marshal(p.body)
	if err != nil { // a patch is made of what came as JSON
		panic(err)
	}
	return raw
}

func annotate(pod *corev1.Pod, name string, value any) podPatch {
	return podPatch{pod: pod, body: map[string]any{"metadata": map[string]any{"annotations": map[string]any{name: value}}}}
}

func resize(pod *corev1.Pod, to manifests.Asked) podPatch {
	return podPatch{pod: pod, subresource: subresourceResize, body: containerPatch("resources", manifests.Resources(&to.Spec))}
}

// planStep turns the decision into writes. What concerns the shard's ReplicaSet is
// noted for shardWanted.
func (p *plan) planStep(seen *observed) {
	d := p.decision
	p.lookAfter(d.After)
	if d.Step == rollout.StepProve {
		p.applies = append(p.applies, p.proofs...)
		return
	}
	s := p.shardNamed(d.Shard)
	if s == nil {
		return
	}
	to := p.target
	if d.Back {
		to = s.template
	}
	switch d.Step {
	case rollout.StepResize:
		p.patches = append(p.patches, resize(s.pod, to))
	case rollout.StepAnnounce:
		if token := s.token(to, seen.now); token != s.pod.Annotations[v1alpha1.AnnotationStop] {
			p.patches = append(p.patches, annotate(s.pod, v1alpha1.AnnotationStop, token))
		}
	case rollout.StepWithdraw:
		if s.Announcement {
			p.patches = append(p.patches, annotate(s.pod, v1alpha1.AnnotationStop, nil))
		} else {
			p.patches = append(p.patches, resize(s.pod, s.asked))
		}
	case rollout.StepChange:
		p.patches = append(p.patches, s.inPlace(to, d.Change.Class, seen))
	case rollout.StepRetire:
		if !s.retired {
			p.patches = append(p.patches, annotate(s.pod, corev1.PodDeletionCost, retiredCost))
		}
	case rollout.StepRemake:
		if s.Template == to.Revision() && s.pod != nil {
			p.deletes = append(p.deletes, s.pod)
		}
	}
}

// inPlace returns the one write that changes a pod in place, with a note of it.
func (s *shard) inPlace(to manifests.Asked, class rollout.Class, seen *observed) podPatch {
	annotations, labels := map[string]any{}, map[string]any{}
	for name := range s.asked.Spec.PodAnnotations {
		annotations[name] = nil
	}
	for name, value := range manifests.PodAnnotations(to) {
		annotations[name] = value
	}
	for name := range s.asked.Spec.PodLabels {
		labels[name] = nil
	}
	for name, value := range to.Spec.PodLabels {
		labels[name] = value
	}
	annotations[v1alpha1.AnnotationStep] = note(s.stepTo(to, class, seen))
	body := map[string]any{}
	if to.Image.Reference != s.asked.Image.Reference {
		body = containerPatch("image", to.Image.Reference)
	}
	body["metadata"] = map[string]any{"annotations": annotations, "labels": labels}
	return podPatch{pod: s.pod, body: body}
}

// stepTo returns the note of a change that begins now.
func (s *shard) stepTo(to manifests.Asked, class rollout.Class, seen *observed) step {
	n := step{Revision: to.Revision(), From: s.asked.Revision(), At: seen.now.UTC(), Class: class, Container: containerID(s.pod)}
	if s.agent != nil {
		n.Gets, n.Hits = s.agent.RecentGets, s.agent.RecentHits
	}
	return n
}

// containerPatch sets one field of the memcached container.
func containerPatch(field string, value any) map[string]any {
	return map[string]any{"spec": map[string]any{"containers": []map[string]any{{"name": manifests.Container, field: value}}}}
}

// shardWanted returns how a shard's ReplicaSet should be, after the decision.
func (p *plan) shardWanted(seen *observed, ordinal int) manifests.Shard {
	want := p.shardAsked(seen, ordinal)
	want.HoldUntil = p.holdUntil()
	return want
}

func (p *plan) shardAsked(seen *observed, ordinal int) manifests.Shard {
	s := p.shardNamed(manifests.ShardName(seen.memcached.Name, ordinal))
	if s == nil {
		// A new shard is what shard 0 is, on which a change is tried first.
		if first := p.shardNamed(manifests.ShardName(seen.memcached.Name, 0)); first != nil {
			return manifests.Shard{Asked: first.template}
		}
		return manifests.Shard{Asked: p.target}
	}
	want := manifests.Shard{Asked: s.template, Annotations: map[string]string{}}
	if text, ok := s.set.Annotations[v1alpha1.AnnotationStep]; ok {
		want.Annotations[v1alpha1.AnnotationStep] = text
	}
	if s.Failed != "" {
		want.Annotations[v1alpha1.AnnotationFailed] = s.set.Annotations[v1alpha1.AnnotationFailed]
	}
	want.Surge = s.surges(p.target.Revision())
	if p.decision.Shard != s.Name {
		return want
	}
	switch p.decision.Step {
	case rollout.StepConfirm:
		want.Asked, want.Surge = s.asked, false
	case rollout.StepNote:
		want.Annotations[v1alpha1.AnnotationFailed] = note(failure{Revision: p.target.Revision(), Attempt: attemptOf(seen.memcached), Message: p.decision.Message})
	case rollout.StepSurge:
		s.replace(&want, p.target, seen)
		want.Surge = true
	case rollout.StepRemake:
		if !p.decision.Back {
			s.replace(&want, p.target, seen)
		}
	}
	return want
}

// replace has the shard's next pod made of what is asked, with a note of when that
// was first wanted: what was done to the pod in place is of the past then.
func (s *shard) replace(want *manifests.Shard, to manifests.Asked, seen *observed) {
	if want.Asked = to; s.pod != nil && (s.Template != to.Revision() || !s.isReplacedBy(to.Revision())) {
		want.Annotations[v1alpha1.AnnotationStep] = note(s.stepTo(to, rollout.Replace, seen))
	}
}

// shardNamed returns the shard of that name, or nil.
func (p *plan) shardNamed(name string) *shard {
	for i := range p.shards {
		if p.shards[i].Name == name {
			return &p.shards[i]
		}
	}
	return nil
}
