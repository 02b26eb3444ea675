package memcached

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/observation"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/shard"
	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
)

// serveCertificate lets the agents report a certificate that is served by shards with TLS.
func (cluster *fakeCluster) serveCertificate(c agentwire.Certificate) {
	now := cluster.clock.Now()
	cluster.certificate = func(_ *corev1.Pod, p *fakePod) agentwire.Certificate {
		reported := c
		if reported.NotAfter.IsZero() {
			reported.NotBefore, reported.NotAfter = now.Add(-30*24*time.Hour), now.Add(60*24*time.Hour)
		}
		if !strings.Contains(p.arguments, "-Z") {
			reported.SHA256, reported.NotBefore, reported.NotAfter = "", time.Time{}, time.Time{}
		}
		return reported
	}
}

func (cluster *fakeCluster) wantDegraded(m *v1alpha1.Memcached, reason, message string) {
	cluster.Helper()
	c := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionDegraded)
	if c == nil || c.Reason != reason || !strings.Contains(c.Message, message) || (c.Status == metav1.ConditionTrue) != (reason != v1alpha1.ReasonAsExpected) {
		cluster.Errorf("the condition is %+v, want %s with %q", c, reason, message)
	}
}

// starts returns how often memcached has started in each shard, and whether its pod is the first.
func (cluster *fakeCluster) starts() (all []string) {
	for _, p := range cluster.pods {
		all = append(all, fmt.Sprintf("%s: %d", p.shard, p.starts))
	}
	slices.Sort(all)
	return all
}

func TestTLSRestartsEachShardInItsPod(t *testing.T) {
	cluster := newReadyCluster(t, "cache", "{size: 2, resources: {limits: {memory: 1Gi}}}")
	cluster.serveCertificate(agentwire.Certificate{SHA256: "aa", Offered: "aa", PlainConnections: 3})
	cluster.change("cache", func(m *v1alpha1.Memcached) { m.Spec.TLS = &v1alpha1.TLS{Mode: v1alpha1.TLSPermissive} })
	m := cluster.converge()
	if got := cluster.starts(); !slices.Equal(got, []string{"cache-0: 2", "cache-1: 2"}) {
		t.Errorf("the starts are %q", got)
	}
	if s := m.Status.TLS; s == nil || s.Fingerprint != "aa" || s.NotAfter == nil || s.PlainConnections == nil || *s.PlainConnections != 6 {
		t.Errorf("the status is %+v", s)
	}
	cluster.wantDegraded(m, v1alpha1.ReasonAsExpected, "")

	cluster.change("cache", func(m *v1alpha1.Memcached) { m.Spec.TLS.Mode = v1alpha1.TLSRequired })
	m = cluster.converge()
	if got := cluster.starts(); !slices.Equal(got, []string{"cache-0: 3", "cache-1: 3"}) || m.Status.TLS.PlainConnections != nil {
		t.Errorf("the starts are %q, the status %+v", got, m.Status.TLS)
	}
	cluster.change("cache", func(m *v1alpha1.Memcached) { m.Spec.TLS = nil })
	m = cluster.converge()
	if got := cluster.starts(); !slices.Equal(got, []string{"cache-0: 4", "cache-1: 4"}) || m.Status.TLS != nil {
		t.Errorf("the starts are %q, the status %+v", got, m.Status.TLS)
	}
}

// Users stop accepting plain connections when the number is 0.
func TestPlainConnectionsAreCountedWhenAllAgentsHaveReportedThem(t *testing.T) {
	cluster := newCluster(t, "cache", "{size: 2, tls: {mode: Permissive}}")
	cluster.serveCertificate(agentwire.Certificate{SHA256: "aa", Offered: "aa", PlainConnections: 3})
	cluster.converge()
	for _, answering := range []int{1, 0} {
		cluster.reconciler.memories.forget(client.ObjectKey{Namespace: cluster.namespace, Name: "cache"}) // another operator
		for _, pod := range cluster.list()[answering:] {
			delete(cluster.agents, podIP(pod))
		}
		cluster.reconcile("cache")
		if s := cluster.get("cache").Status.TLS; s == nil || s.PlainConnections == nil || *s.PlainConnections != 6 {
			t.Errorf("%d of two agents answer, and the status is %+v", answering, s)
		}
	}
}

func TestTLSWaitsForACertificateThatCanBeUsed(t *testing.T) {
	cluster := newReadyCluster(t, "cache", "{size: 2, resources: {limits: {memory: 1Gi}}}")
	const missing = "the Secret doesn't exist, or has no tls.crt"
	cluster.serveCertificate(agentwire.Certificate{Error: missing})
	cluster.change("cache", func(m *v1alpha1.Memcached) { m.Spec.TLS = &v1alpha1.TLS{} })
	m := cluster.converge()
	if u := m.Status.Update; u == nil || u.Gate != v1alpha1.GateSecretInvalid || !strings.Contains(u.Message, missing) {
		t.Errorf("the update is %+v", u)
	}
	cluster.wantDegraded(m, v1alpha1.ReasonSecretInvalid, "shard cache-0: "+missing+"; correct Secret cache-tls")
	if got := cluster.starts(); !slices.Equal(got, []string{"cache-0: 1", "cache-1: 1"}) {
		t.Errorf("shards were changed: %q", got)
	}
	cluster.serveCertificate(agentwire.Certificate{SHA256: "aa", Offered: "aa"})
	m = cluster.afterMinutes(2)
	cluster.wantDegraded(m, v1alpha1.ReasonAsExpected, "")
	if got := cluster.starts(); !slices.Equal(got, []string{"cache-0: 2", "cache-1: 2"}) || m.Status.Update != nil {
		t.Errorf("the starts are %q, the update %+v", got, m.Status.Update)
	}
}

// afterMinutes lets time pass and reconciles.
func (cluster *fakeCluster) afterMinutes(n time.Duration) *v1alpha1.Memcached {
	cluster.Helper()
	cluster.tick()
	cluster.clock.Step(n * time.Minute)
	return cluster.converge()
}

const rotated = "0123456789abcdef"

// rotateKeyType lets the Secret have a certificate that memcached serves after a restart.
func (cluster *fakeCluster) rotateKeyType(to string) {
	now := cluster.clock.Now()
	cluster.certificate = func(_ *corev1.Pod, p *fakePod) agentwire.Certificate {
		c := agentwire.Certificate{SHA256: to, Offered: to, NotBefore: now, NotAfter: now.Add(90 * 24 * time.Hour)}
		if p.restart == "" {
			c.SHA256, c.RestartRequired = "aa", "its key is of another type"
		}
		return c
	}
}

func TestRotatedSecretIsReportedAndRestartsOneShardAfterTheOther(t *testing.T) {
	cluster := newCluster(t, "cache", "{size: 3, tls: {}}")
	cluster.serveCertificate(agentwire.Certificate{SHA256: "aa", Offered: "aa"})
	cluster.converge()

	cluster.serveCertificate(agentwire.Certificate{SHA256: "aa", Error: "tls.crt isn't valid for cache-0.team.svc"})
	m := cluster.afterMinutes(2)
	cluster.wantDegraded(m, v1alpha1.ReasonSecretInvalid, "correct Secret cache-tls")

	cluster.rotateKeyType(rotated)
	restarted := func(pod *corev1.Pod) bool {
		return pod.Annotations[v1alpha1.AnnotationRestart] == "certificate-01234567"
	}
	most := 0
	cluster.tick()
	cluster.clock.Step(2 * time.Minute)
	for range 30 {
		pending := 0
		cluster.reconcile("cache")
		for _, pod := range cluster.list() {
			if restarted(pod) && cluster.pods[pod.UID].restart == "" {
				pending++
			}
		}
		most = max(most, pending)
		cluster.tick()
		cluster.clock.Step(time.Second)
	}
	m = cluster.converge()
	if got := cluster.starts(); most != 1 || !slices.Equal(got, []string{"cache-0: 2", "cache-1: 2", "cache-2: 2"}) {
		t.Errorf("%d shards restarted at once, and the starts are %q", most, got)
	}
	cluster.wantDegraded(m, v1alpha1.ReasonAsExpected, "")
	if m.Status.TLS.Fingerprint != rotated || m.Status.Update != nil {
		t.Errorf("the status is %+v, the update %+v", m.Status.TLS, m.Status.Update)
	}
}

func TestRestartForACertificateWaitsForTheHitRatioOfTheShardBefore(t *testing.T) {
	cluster := newCluster(t, "cache", "{size: 3, tls: {}, updateStrategy: {hitRatioGate: {percent: 90}}}")
	before := lookups{recentGets: 10_000, recentHits: 9000}
	cluster.before, cluster.after = before, lookups{recentGets: 10_000, recentHits: 1000}
	cluster.serveCertificate(agentwire.Certificate{SHA256: "aa", Offered: "aa"})
	cluster.converge()
	cluster.rotateKeyType(rotated)
	m := cluster.afterMinutes(2)
	if u := m.Status.Update; u == nil || u.Gate != v1alpha1.GateHitRatioNotRecovered {
		t.Errorf("the update is %+v", u)
	}
	for _, c := range []struct {
		after lookups
		want  []string
	}{
		{cluster.after, []string{"cache-0: 2", "cache-1: 1", "cache-2: 1"}},
		{before, []string{"cache-0: 2", "cache-1: 2", "cache-2: 2"}},
	} {
		cluster.after = c.after
		for range 30 {
			cluster.reconcileAndTick()
		}
		if got := cluster.starts(); !slices.Equal(got, c.want) {
			t.Errorf("with %d hits, the starts are %q", c.after.recentHits, got)
		}
	}
	for _, pod := range cluster.list() {
		if r := shard.DecodeRecord[shard.UpdateRecord](pod.Annotations, annotations.Update); r == nil || r.Gets != before.recentGets || r.Hits != before.recentHits {
			t.Errorf("pod %s has the record %+v", pod.Name, r)
		}
	}
}

// The other shards keep their items, as after an update in place that loses them.
func TestRestartForACertificateThatLosesTheItemsStopsTheOthers(t *testing.T) {
	setRetry := func(cluster *fakeCluster, value string) {
		cluster.change("cache", func(m *v1alpha1.Memcached) {
			metav1.SetMetaDataAnnotation(&m.ObjectMeta, v1alpha1.AnnotationRetry, value)
		})
	}
	retry := func(cluster *fakeCluster) { setRetry(cluster, "2") }
	for name, c := range map[string]struct {
		strategy string
		next     func(*fakeCluster)
		stops    bool
	}{
		"until a retry": {"{}", retry, true},
		"also after its next start": {"{}", func(cluster *fakeCluster) {
			cluster.restartMemcached("cache-0", agentwire.StartWarm) // in another container
			if u := cluster.afterMinutes(2).Status.Update; u == nil || u.Gate != v1alpha1.GateUpdateFailed {
				cluster.Errorf("after another start, the update is %+v", u)
			}
			retry(cluster)
		}, true},
		"until onItemLoss is Continue": {"{}", func(cluster *fakeCluster) {
			cluster.change("cache", func(m *v1alpha1.Memcached) {
				m.Spec.UpdateStrategy = &v1alpha1.UpdateStrategy{OnItemLoss: v1alpha1.ItemLossContinue}
			})
		}, true},
		"until there is another certificate": {"{}", func(cluster *fakeCluster) { cluster.rotateKeyType("fedcba9876543210") }, true},
		"not if onItemLoss is Continue":      {"{onItemLoss: Continue}", func(*fakeCluster) {}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster := newCluster(t, "cache", "{size: 3, tls: {}, updateStrategy: "+c.strategy+"}")
			cluster.serveCertificate(agentwire.Certificate{SHA256: "aa", Offered: "aa"})
			setRetry(cluster, "1")
			cluster.converge()
			cluster.rotateKeyType(rotated)
			cluster.loses = true
			m := cluster.afterMinutes(2)
			if !c.stops {
				if got := cluster.starts(); !slices.Equal(got, []string{"cache-0: 2", "cache-1: 2", "cache-2: 2"}) || m.Status.Update != nil {
					t.Errorf("the starts are %q, the update %+v", got, m.Status.Update)
				}
				return
			}
			stopped := func(when string) {
				t.Helper()
				if got, u := cluster.starts(), m.Status.Update; !slices.Equal(got, []string{"cache-0: 2", "cache-1: 1", "cache-2: 1"}) || u == nil || u.Gate != v1alpha1.GateUpdateFailed {
					t.Errorf("%s, the starts are %q, the update %+v", when, got, u)
				}
				cluster.wantDegraded(m, v1alpha1.ReasonUpdateFailed, "cache-0, which lost its items; no other shard was changed: "+
					"memcached started empty after its restart for a certificate: the memory file is damaged")
			}
			stopped("after the restart")
			m = cluster.afterMinutes(60)
			stopped("an hour later")
			cluster.loses = false
			c.next(cluster)
			m = cluster.afterMinutes(2)
			if got := cluster.starts(); !slices.Equal(got[1:], []string{"cache-1: 2", "cache-2: 2"}) || m.Status.Update != nil {
				t.Errorf("the starts are %q, the update %+v", got, m.Status.Update)
			}
			cluster.wantDegraded(m, v1alpha1.ReasonAsExpected, "")
			// A later loss has nothing to do with the certificate.
			cluster.restartMemcached("cache-1", agentwire.StartCold)
			cluster.wantDegraded(cluster.afterMinutes(2), v1alpha1.ReasonAsExpected, "")
		})
	}
}

func TestExpiringCertificateIsReported(t *testing.T) {
	cluster := newCluster(t, "cache", "{size: 1, tls: {secretName: own}}")
	notBefore, notAfter := cluster.clock.Now().Add(-75*24*time.Hour), cluster.clock.Now().Add(15*24*time.Hour+time.Hour)
	cluster.serveCertificate(agentwire.Certificate{SHA256: "aa", Offered: "aa", NotBefore: notBefore, NotAfter: notAfter})
	cluster.wantDegraded(cluster.converge(), v1alpha1.ReasonAsExpected, "")
	cluster.wantDegraded(cluster.afterMinutes(61), v1alpha1.ReasonCertificateExpiring, "the certificate expires at "+notAfter.UTC().Format(time.RFC3339)+"; renew it in Secret own")
	cluster.wantDegraded(cluster.afterMinutes(16*24*60), v1alpha1.ReasonCertificateExpiring, "the certificate expired at ")
}

func TestAgentsAreQueriedEachMinuteWithTLSAlone(t *testing.T) {
	for spec, want := range map[string]bool{"size: 2": false, "{size: 2, tls: {}}": true} {
		cluster := newCluster(t, "cache", spec)
		cluster.serveCertificate(agentwire.Certificate{SHA256: "aa", Offered: "aa"})
		m := cluster.converge()
		result := cluster.reconcileAndTick()
		if queried := result.RequeueAfter > 0 && result.RequeueAfter <= observation.SecretsInterval; queried != want {
			t.Errorf("%s: the next reconcile is in %s", spec, result.RequeueAfter)
		}
		if known := len(cluster.observe(m.Name).Secrets); (known == 2) != want {
			t.Errorf("%s: an operator without knowledge reads %d certificates", spec, known)
		}
	}
}

func TestImpossibleTLSChangesNothing(t *testing.T) {
	cluster := newReadyCluster(t, "cache", "{size: 1, version: 1.6.38}")
	for _, c := range []struct {
		edit    func(*v1alpha1.MemcachedSpec)
		reason  string
		message string
	}{
		{func(*v1alpha1.MemcachedSpec) {}, v1alpha1.ReasonVersionUnsupported, "Use 1.6.39 or newer"},
		{func(s *v1alpha1.MemcachedSpec) {
			s.Version, s.ExtraArgs = "1.6.45", []string{"-o", "ssl_min_version=3"}
		}, v1alpha1.ReasonTLSNotPossible, "remove it"},
	} {
		cluster.change("cache", func(m *v1alpha1.Memcached) {
			m.Spec.TLS = &v1alpha1.TLS{}
			c.edit(&m.Spec)
		})
		cluster.wantDegraded(cluster.converge(), c.reason, c.message)
		if got := cluster.starts(); !slices.Equal(got, []string{"cache-0: 1"}) {
			t.Errorf("the starts are %q", got)
		}
	}
}

func TestAuthenticationRestartsEachShardOnceItsUsersCanBeRead(t *testing.T) {
	cluster := newReadyCluster(t, "cache", "size: 2")
	cluster.serveCertificate(agentwire.Certificate{Error: "the Secret doesn't exist, or has no tls.crt"}) // which doesn't matter
	cluster.usersError = "the Secret has 8 users; memcached reads at most 7"
	cluster.tick()
	cluster.change("cache", func(m *v1alpha1.Memcached) { m.Spec.Auth = &v1alpha1.Auth{} })
	m := cluster.converge()
	cluster.wantDegraded(m, v1alpha1.ReasonSecretInvalid, "shard cache-0: the Secret has 8 users; memcached reads at most 7; correct Secret cache-auth")
	if u := m.Status.Update; u == nil || u.Gate != v1alpha1.GateSecretInvalid {
		t.Errorf("the update is %+v", u)
	}
	cluster.usersError = ""
	m = cluster.afterMinutes(2)
	if got := cluster.starts(); !slices.Equal(got, []string{"cache-0: 2", "cache-1: 2"}) || m.Status.Update != nil {
		t.Errorf("the starts are %q, the update %+v", got, m.Status.Update)
	}
	cluster.usersError = "the password of user app is empty"
	cluster.wantDegraded(cluster.afterMinutes(2), v1alpha1.ReasonSecretInvalid, "the password of user app is empty; correct Secret cache-auth")
	if got := cluster.starts(); !slices.Equal(got, []string{"cache-0: 2", "cache-1: 2"}) {
		t.Errorf("a Secret restarted shards: %q", got)
	}
}

func TestAnotherSecretReplacesThePods(t *testing.T) {
	cluster := newReadyCluster(t, "cache", "{size: 1, auth: {}, handover: {mode: Disabled}}")
	cluster.serveCertificate(agentwire.Certificate{})
	cluster.tick()
	was := cluster.list()[0].Name
	cluster.change("cache", func(m *v1alpha1.Memcached) { m.Spec.Auth.SecretName = "others" })
	cluster.converge()
	if pods := cluster.list(); len(pods) != 1 || pods[0].Name == was {
		t.Errorf("the pods are %v, and %s was the first", pods, was)
	}
}
