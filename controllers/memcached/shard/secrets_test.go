package shard

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
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
			pod.Spec.Volumes = []corev1.Volume{{Name: "tls", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "cache-tls"}}}}
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
