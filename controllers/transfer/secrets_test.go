package transfer

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
)

// A spec that is paused, or rejected, or that lost these fields, doesn't change the shards, with which a Job has to connect.
func TestAJobConnectsAsTheShardsRun(t *testing.T) {
	plain, secured := platform(), platform()
	plain.Spec.TLS.Mode = v1beta1.TLSDisabled // its auth isn't stated
	secured.Spec.TLS, secured.Spec.Auth = v1beta1.TLSSpec{Mode: v1beta1.TLSRequired, SecretName: "certificate"}, v1beta1.AuthSpec{Mode: v1beta1.AuthRequired}
	revision := func(m *v1beta1.Memcached) string {
		return resources.NewPodRevision(&m.Spec, resources.Image{Reference: "memcached:1.6.45"}).String()
	}
	was, is := revision(secured), revision(plain)
	const evicted = "evicted "
	for name, c := range map[string]struct {
		spec    *v1beta1.Memcached
		pods    []string // their revisions
		started bool
		secured bool
	}{
		"its spec is applied":             {secured, []string{was, was}, false, true},
		"another one isn't":               {plain, []string{was, was}, false, true},
		"one that protects isn't":         {secured, []string{is, is}, false, false},
		"it is being applied":             {secured, []string{was, is}, false, true},
		"without pods":                    {secured, nil, false, true},
		"with a pod of another creator":   {secured, []string{is, ""}, false, true},
		"beside one that was evicted":     {plain, []string{was, was, evicted + is}, false, true},
		"a Job that exists, as it is now": {secured, []string{is}, true, true},
	} {
		b := begun(v1beta1.TransferStatus{})
		objects := []client.Object{c.spec, b}
		for i, text := range c.pods {
			text, finished := strings.CutPrefix(text, evicted)
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: fmt.Sprint("cache-", i),
				Labels: resources.Labels("cache"), Annotations: map[string]string{annotations.Spec: text}}}
			if finished {
				pod.Status.Phase = corev1.PodFailed
			}
			objects = append(objects, pod)
		}
		if c.started {
			b.Status.JobUID = "j"
		}
		e := newFixture(t, objects...)
		m, err := e.observer().Memcached(t.Context(), b, e.Client)
		if err != nil {
			t.Fatal(err)
		}
		want := plain.Spec
		if c.secured {
			want = secured.Spec
		}
		if m.Spec.TLS != want.TLS || m.Spec.Auth != want.Auth {
			t.Errorf("%s: %+v, %+v", name, m.Spec.TLS, m.Spec.Auth)
		}
	}
}

// A user chooses the name of a Memcached, and so that of the Secret of its binding, and the image to which a Job logs in.
func TestAJobMountsNoSecretOfUsersThatTheSettingsDontAllow(t *testing.T) {
	restrictions, err := resources.ParseRestrictions(func(name string) string {
		return map[string]string{"ALLOWED_SECRET_PREFIXES": "memcached-"}[name]
	})
	if err != nil {
		t.Fatal(err)
	}
	m := cache()
	m.Spec.Auth = v1beta1.AuthSpec{Mode: v1beta1.AuthRequired, SecretName: "memcached-users"}
	sources := Options{Restrictions: restrictions}.usersVolume(m).Projected.Sources
	if len(sources) != 1 || sources[0].Secret.Name != "memcached-users" {
		t.Errorf("got %v", sources)
	}
}
