package shard

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/rollout"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/shard/shardtest"
	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
)

func TestReplacementWaitsForASecretWithWhichItsPodCanStart(t *testing.T) {
	withTLS := shardtest.All(tls(v1beta1.TLSSpec{Mode: v1beta1.TLSRequired}), withResources("| memory 1Gi"))
	old, resized := podRevision(t, withTLS), podRevision(t, shardtest.All(withTLS, withResources("| memory 2Gi")))
	threads := podRevision(t, shardtest.All(withTLS, func(s *v1beta1.MemcachedSpec) { s.Config.Threads = new(int32(2)) }))
	for _, c := range []struct {
		name   string
		edit   func(*fixture)
		method rollout.Method
		waits  bool
	}{
		{"memcached restarts in its pod", func(f *fixture) { f.update = threads }, rollout.Restart, false},
		{"updates hand over the items", func(f *fixture) {
			f.update, f.memcached.Spec.UpdateStrategy = threads, v1beta1.UpdateStrategy{Type: v1beta1.UpdateHandover}
		}, rollout.Replace, true},
		{"the node doesn't have the resources", func(f *fixture) {
			f.update = resized
			f.pods[0].Spec.Containers[0].Resources = resized.Resources
			f.pods[0].Status.Conditions = append(f.pods[0].Status.Conditions,
				corev1.PodCondition{Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: corev1.PodReasonInfeasible})
		}, rollout.Replace, true},
		{"the shard moves", func(f *fixture) { f.pods[0].Annotations[v1beta1.AnnotationMove] = "1" }, rollout.Replace, true},
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
	withTLS := podRevision(t, tls(v1beta1.TLSSpec{Mode: v1beta1.TLSRequired}))
	for _, c := range []struct {
		name       string
		annotation string
		// answers is whether the agent reports the start that belongs to the annotation.
		answers  bool
		edit     func(*fixture, *agentwire.Certificate)
		restarts bool
	}{
		{name: "required", answers: true, restarts: true},
		{name: "required with updates by a handover", answers: true, edit: func(f *fixture, _ *agentwire.Certificate) {
			f.memcached.Spec.UpdateStrategy.Type = v1beta1.UpdateHandover
		}, restarts: true},
		{name: "required after another one", annotation: "certificate-76543210", answers: true, restarts: true},
		{name: "required after a restart by the user", annotation: "1", answers: true, restarts: true},
		{name: "requested, and not done yet", annotation: "certificate-01234567", restarts: true},
		{name: "done, and the agent still requires it", annotation: "certificate-01234567", answers: true},
		{name: "required by a pod that lost its items in an update", answers: true, edit: func(f *fixture, _ *agentwire.Certificate) {
			record(f.set, UpdateRecord{Revision: f.update.Hash(), Method: rollout.Replace, KeepsItems: true})
			f.memcached.Status.Update = &v1beta1.UpdateStatus{Revision: f.update.Hash(), Shard: "cache-0", Method: v1beta1.UpdateReplace}
			f.agents["first"] = agentwire.Status{Start: agentwire.Start{Result: agentwire.StartCold}, Arguments: f.update.Arguments}
		}},
		{name: "not required", answers: true, edit: func(_ *fixture, c *agentwire.Certificate) { c.RestartRequired = "" }},
		{name: "required, and the Secret can't be used any more", answers: true, edit: func(_ *fixture, c *agentwire.Certificate) { c.Offered = "" }},
		{name: "required by a pod that terminates", answers: true, edit: func(f *fixture, _ *agentwire.Certificate) { f.pods[0].DeletionTimestamp = new(metav1.Now()) }},
		{name: "required by a pod that will be updated", answers: true, edit: func(f *fixture, _ *agentwire.Certificate) { f.update = podRevision(t, version("1.6.44")) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(withTLS, withTLS, withTLS)
			pod, certificate := f.pods[0], agentwire.Certificate{Offered: "0123456789abcdef", RestartRequired: "its key is of another type"}
			if c.annotation != "" {
				pod.Annotations[v1beta1.AnnotationRestart] = c.annotation
			}
			if c.answers {
				f.agents["first"] = agentwire.Status{Restart: c.annotation}
			}
			if c.edit != nil {
				c.edit(f, &certificate)
			}
			f.secrets = map[types.UID]agentwire.Secrets{pod.UID: {Certificate: certificate}}
			s := f.evaluate()
			want := Target{Revision: f.update}
			if c.restarts {
				want.Restart = "certificate-01234567"
			}
			if s.Rollout.Target != want.Hash() || s.Target.Restart != want.Restart {
				t.Errorf("the target is %s, want %s", s.Rollout.Target, want.Hash())
			}
			if isRestart := s.Rollout.ToTarget == (rollout.Change{Method: rollout.Restart, Description: "restarts because its key is of another type"}); isRestart != c.restarts {
				t.Errorf("the change is %+v", s.Rollout.ToTarget)
			}
		})
	}
}

func TestRestartForACertificateThatLosesTheItemsFails(t *testing.T) {
	const token, offered = "certificate-01234567", "0123456789abcdef"
	withTLS := podRevision(t, tls(v1beta1.TLSSpec{Mode: v1beta1.TLSRequired}))
	inStatus := func(f *fixture) {
		f.memcached.Status.Shards = []v1beta1.ShardStatus{{Name: "cache-0", StartResult: v1beta1.StartCold, RestartAnnotation: token,
			ContainerID: shardtest.RunningContainer, Revision: withTLS.Hash()}}
	}
	for name, c := range map[string]struct {
		edit  func(*fixture, *UpdateRecord)
		fails bool
	}{
		"the agent reports it":               {func(*fixture, *UpdateRecord) {}, true},
		"the status has it":                  {func(f *fixture, _ *UpdateRecord) { inStatus(f); f.agents = nil }, true},
		"in another container":               {func(_ *fixture, r *UpdateRecord) { r.Container = "before" }, true},
		"this operator knows no certificate": {func(f *fixture, _ *UpdateRecord) { f.secrets = nil }, true},
		"the retry lost the items":           {func(f *fixture, r *UpdateRecord) { f.retry(); r.Attempt = "1" }, true},
		"it started with its items":          {func(f *fixture, _ *UpdateRecord) { f.restarted(token, agentwire.StartWarm) }, false},
		"the container started again since":  {func(f *fixture, r *UpdateRecord) { inStatus(f); r.Container = "before" }, false},
		"the user retries":                   {func(f *fixture, _ *UpdateRecord) { f.retry() }, false},
		"the Secret has another certificate": {func(f *fixture, _ *UpdateRecord) { f.offer("fedcba9876543210") }, false},
		"the user restarted memcached since": {func(f *fixture, _ *UpdateRecord) { f.restarted("1", agentwire.StartCold) }, false},
		"after an update in place":           {func(_ *fixture, r *UpdateRecord) { r.Restart = "" }, false},
		"after the user's first restart":     {func(f *fixture, r *UpdateRecord) { r.Restart = ""; f.restarted("", agentwire.StartCold) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(withTLS, withTLS, withTLS)
			f.restarted(token, agentwire.StartCold)
			f.offer(offered)
			r := UpdateRecord{Revision: withTLS.Hash(), From: withTLS.Hash(), Method: rollout.Restart, Container: shardtest.RunningContainer, Restart: token}
			c.edit(f, &r)
			record(f.pods[0], r)
			want, restart := rollout.Verified, ""
			if c.fails {
				want, restart = rollout.Cold, token
			}
			s := f.evaluate()
			if failure := s.NewFailureRecord("it lost its items"); s.Rollout.Pod.Outcome != want || failure.Restart != restart {
				t.Errorf("the outcome is %s (%s), and the failure %+v", s.Rollout.Pod.Outcome, s.Rollout.Pod.Reason, failure)
			}
		})
	}
}

// restarted lets the agent report a restart with an annotation.
func (f *fixture) restarted(annotation string, start agentwire.StartResult) {
	f.pods[0].Annotations[v1beta1.AnnotationRestart] = annotation
	f.agents["first"] = agentwire.Status{Restart: annotation, Arguments: f.update.Arguments, Start: agentwire.Start{Result: start, Reason: "the memory file is damaged"}}
}

// offer lets the pod's Secret have a certificate.
func (f *fixture) offer(fingerprint string) {
	f.secrets = map[types.UID]agentwire.Secrets{f.pods[0].UID: {Certificate: agentwire.Certificate{Offered: fingerprint}}}
}

func (f *fixture) retry() {
	f.memcached.Annotations = map[string]string{v1beta1.AnnotationRetry: "1"}
}

func TestFailureOfARestartLastsUntilTheSecretHasAnotherCertificate(t *testing.T) {
	withTLS := podRevision(t, tls(v1beta1.TLSSpec{Mode: v1beta1.TLSRequired}))
	f := newFixture(withTLS, withTLS, withTLS)
	for _, c := range []struct {
		restart, offered string
		fails            bool
	}{
		{"certificate-01234567", "0123456789abcdef", true},
		{"certificate-01234567", "", true}, // not known yet, or it can't be used
		{"", "fedcba9876543210", true},     // an update failed
		{"certificate-01234567", "fedcba9876543210", false},
	} {
		shardtest.Annotate(f.set, annotations.Failed, EncodeRecord(FailureRecord{Revision: withTLS.Hash(), Restart: c.restart, Message: "it lost its items"}))
		f.offer(c.offered)
		if failed := f.evaluate().Rollout.Failed == "it lost its items"; failed != c.fails {
			t.Errorf("with the restart %q and the certificate %q: %t", c.restart, c.offered, failed)
		}
	}
	f.pods = nil
	if f.evaluate().Rollout.Failed == "" {
		t.Error("a shard without a pod hasn't failed")
	}
}

func TestCertificateIsRenewedBeforeItExpires(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	day := 24 * time.Hour
	served := func(left time.Duration) agentwire.Certificate {
		return agentwire.Certificate{SHA256: "a", NotBefore: now.Add(left - 90*day), NotAfter: now.Add(left)}
	}
	withError := func(c agentwire.Certificate) agentwire.Certificate { c.Error = "tls.key is missing"; return c }
	for name, c := range map[string]struct {
		certificate agentwire.Certificate
		reason      string
		words       string
	}{
		"none":                                  {agentwire.Certificate{}, "", ""},
		"new":                                   {served(90 * day), "", ""},
		"it expires soon":                       {served(day), v1beta1.ReasonCertificateExpiring, "the certificate expires at "},
		"it has expired":                        {served(0), v1beta1.ReasonCertificateExpiring, "the certificate expired at "},
		"the Secret can't be used":              {withError(agentwire.Certificate{}), v1beta1.ReasonSecretInvalid, "tls.key is missing; correct Secret cache-tls"},
		"the Secret can't be used any more":     {withError(served(90 * day)), v1beta1.ReasonSecretInvalid, "tls.key is missing; correct Secret cache-tls"},
		"it has expired, and can't be replaced": {withError(served(0)), v1beta1.ReasonCertificateExpiring, "the certificate expired at 1970-01-12T13:46:40Z, and that in Secret cache-tls can't be used: tls.key is missing; correct the Secret"},
	} {
		var got Problem
		if problem := CertificateProblem(c.certificate, "cache-tls", now); problem != nil {
			got = *problem
		}
		if got.Reason != c.reason || !strings.HasPrefix(got.Message, c.words) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
