package resources

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
)

// resourcesOfPreflight returns those of the containers of a preflight pod, the first one of which installs the agent.
func resourcesOfPreflight(pod runtime.ApplyConfiguration) (all []corev1.ResourceRequirements) {
	spec := pod.(*corev1ac.PodApplyConfiguration).Spec
	for _, c := range append(spec.InitContainers, spec.Containers...) {
		all = append(all, *convert[corev1.ResourceRequirements](c.Resources))
	}
	return all
}

func TestPreflightPodIsNamedAfterWhatItChecks(t *testing.T) {
	type input struct {
		spec    v1beta1.MemcachedSpec
		image   Image
		pod     corev1.Pod
		attempt string
		options Options
	}
	first := func() input {
		p := input{spec: memcached(1, func(s *v1beta1.MemcachedSpec) {
			s.Resources = &v1beta1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse("2"), "ephemeral-storage": resource.MustParse("1Gi")},
				Requests: corev1.ResourceList{"ephemeral-storage": resource.MustParse("10Mi")}}
		}).Spec, image: Image{Reference: fallback, Version: "1.6.45"}, options: options}
		p.pod.Spec.NodeName = "node1"
		p.pod.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "registry"}}
		p.pod.Spec.Containers = []corev1.Container{{Name: Container, ImagePullPolicy: corev1.PullAlways}}
		return p
	}
	build := func(t *testing.T, p input) Object {
		t.Helper()
		return NewBuilder(memcached(1, nil), p.options).PreflightPod(&p.pod, NewPodRevision(&p.spec, p.image), p.attempt)
	}
	one := build(t, first())
	for name, c := range map[string]struct {
		change func(p *input)
		same   bool
	}{
		"nothing":             {func(*input) {}, true},
		"the node":            {func(p *input) { p.pod.Spec.NodeName = "node2" }, false},
		"the image":           {func(p *input) { p.image.Reference = "docker.io/library/memcached:1.6.38" }, false},
		"the arguments":       {func(p *input) { p.spec.Config.ExtraArgs = []string{"-v"} }, false},
		"the service account": {func(p *input) { p.spec.Pod.ServiceAccountName = "other" }, false},
		"the credentials":     {func(p *input) { p.pod.Spec.ImagePullSecrets[0].Name = "other" }, false},
		"the pull policy":     {func(p *input) { p.pod.Spec.Containers[0].ImagePullPolicy = corev1.PullNever }, false},
		"the attempt":         {func(p *input) { p.attempt = "again" }, false},
		"the operator":        {func(p *input) { p.options.AgentImage = "example.com/operator:v2" }, false},
		"the pod's own name":  {func(p *input) { p.pod.Name = "cache-0-x" }, true},
	} {
		t.Run(name, func(t *testing.T) {
			p := first()
			c.change(&p)
			if other := build(t, p); (other.Key == one.Key) != c.same {
				t.Errorf("%s and %s", one.Key, other.Key)
			}
		})
	}

	// What a limit range requires, the shard has.
	small, own := resourcesOfPreflight(one.Apply), resourcesOfPreflight(one.Fallback)
	in := first()
	shard := NewPodRevision(&in.spec, in.image).Resources
	for i := range own {
		if !equality.Semantic.DeepEqual(own[i], shard) || !equality.Semantic.DeepEqual(small[i].Limits, shard.Limits) ||
			small[i].Requests.Memory().String() != "16Mi" || small[i].Requests.Cpu().String() != "1m" || len(small[i].Requests) != len(shard.Requests) {
			t.Errorf("container %d has %+v, or else %+v", i, small[i], own[i])
		}
	}

	// A Service must not send clients to a preflight pod.
	labels := one.Apply.(*corev1ac.PodApplyConfiguration).Labels
	selected := true
	for name, value := range Labels("cache") {
		selected = selected && labels[name] == value
	}
	if selected || labels[v1beta1.LabelManagedBy] != v1beta1.ManagedByValue || labels[v1beta1.LabelInstance] != "cache" {
		t.Errorf("a preflight pod has the labels %v", labels)
	}
}
