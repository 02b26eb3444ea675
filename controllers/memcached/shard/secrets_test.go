package shard

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/rollout"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/shard/shardtest"
	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
)

func TestReplacementWaitsForASecretWithWhichItsPodCanStart(t *testing.T) {
	withTLS := shardtest.All(tls(v1alpha1.TLS{}), withResources("| memory 1Gi"))
	old, resized := podRevision(t, withTLS), podRevision(t, shardtest.All(withTLS, withResources("| memory 2Gi")))
	threads := podRevision(t, shardtest.All(withTLS, func(s *v1alpha1.MemcachedSpec) { s.Threads = new(int32(2)) }))
	for _, c := range []struct {
		name   string
		edit   func(*fixture)
		method rollout.Method
		waits  bool
	}{
		{"memcached restarts in its pod", func(f *fixture) { f.update = threads }, rollout.Restart, false},
		{"updates hand over the items", func(f *fixture) {
			f.update, f.memcached.Spec.UpdateStrategy = threads, &v1alpha1.UpdateStrategy{Type: v1alpha1.UpdateHandover}
		}, rollout.Replace, true},
		{"the node doesn't have the resources", func(f *fixture) {
			f.update = resized
			f.pods[0].Spec.Containers[0].Resources = resized.Resources
			f.pods[0].Status.Conditions = append(f.pods[0].Status.Conditions,
				corev1.PodCondition{Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: corev1.PodReasonInfeasible})
		}, rollout.Replace, true},
		{"the shard moves", func(f *fixture) { f.pods[0].Annotations[v1alpha1.AnnotationMove] = "1" }, rollout.Replace, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(old, old, old)
			pod := f.pods[0]
			f.memcached.Name, pod.Annotations[annotations.Handover] = "cache", "Strict"
			shardtest.MountTLS(pod, "cache-tls")
			f.secrets = map[types.UID]agentwire.Secrets{pod.UID: {Certificate: agentwire.Certificate{Error: "tls.crt expired"}}}
			c.edit(f)
			change := f.evaluate().Rollout.ToTarget
			if change.Method != c.method || (change.SecretError == "tls.crt expired") != c.waits {
				t.Errorf("method %s, and the error of the Secret is %q", change.Method, change.SecretError)
			}
			f.secrets = map[types.UID]agentwire.Secrets{pod.UID: {}}
			if change := f.evaluate().Rollout.ToTarget; change.Method != c.method || change.SecretError != "" {
				t.Errorf("with a Secret that can be used: method %s, %q", change.Method, change.SecretError)
			}
		})
	}
}

func TestMemcachedRestartsOnceForACertificate(t *testing.T) {
	withTLS := podRevision(t, tls(v1alpha1.TLS{}))
	for _, c := range []struct {
		name       string
		annotation string
		// answers is whether the agent reports the start that belongs to the annotation.
		answers   bool
		edit      func(*fixture, *agentwire.Certificate)
		restarts  bool
		wantToken string
	}{
		{name: "required", answers: true, restarts: true, wantToken: "certificate-01234567"},
		{name: "required after another one", annotation: "certificate-76543210", answers: true, restarts: true, wantToken: "certificate-01234567"},
		{name: "required after a restart by the user", annotation: "1", answers: true, restarts: true, wantToken: "certificate-01234567"},
		{name: "requested, and not done yet", annotation: "certificate-01234567", restarts: true},
		{name: "done, and the agent still requires it", annotation: "certificate-01234567", answers: true},
		{name: "not required", answers: true, edit: func(_ *fixture, c *agentwire.Certificate) { c.RestartRequired = "" }},
		{name: "required, and the Secret can't be used any more", answers: true, edit: func(_ *fixture, c *agentwire.Certificate) { c.Offered = "" }},
		{name: "required by a pod that terminates", answers: true, edit: func(f *fixture, _ *agentwire.Certificate) { f.pods[0].DeletionTimestamp = new(metav1.Now()) }},
		{name: "required by a pod that will be updated", answers: true, edit: func(f *fixture, _ *agentwire.Certificate) { f.update = podRevision(t, version("1.6.44")) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(withTLS, withTLS, withTLS)
			pod, certificate := f.pods[0], agentwire.Certificate{Offered: "0123456789abcdef", RestartRequired: "its key is of another type"}
			if c.annotation != "" {
				pod.Annotations[v1alpha1.AnnotationRestart] = c.annotation
			}
			if c.answers {
				f.agents["first"] = agentwire.Status{Restart: c.annotation}
			}
			if c.edit != nil {
				c.edit(f, &certificate)
			}
			f.secrets = map[types.UID]agentwire.Secrets{pod.UID: {Certificate: certificate}}
			s := f.evaluate()
			if s.Rollout.Restarts != c.restarts || s.RestartToken != c.wantToken {
				t.Errorf("restarts: %t, with the annotation %q", s.Rollout.Restarts, s.RestartToken)
			}
			if isRestart := s.Rollout.ToTarget.Description == "restarts because its key is of another type"; isRestart != c.restarts {
				t.Errorf("the change is %+v", s.Rollout.ToTarget)
			}
		})
	}
}
