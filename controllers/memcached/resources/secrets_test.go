package resources

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
)

func TestArgumentsSayWhatIsDesiredOfTLS(t *testing.T) {
	for _, c := range []struct {
		tls  v1beta1.TLSSpec
		want string
	}{
		{v1beta1.TLSSpec{}, ""},
		{v1beta1.TLSSpec{Mode: v1beta1.TLSDisabled}, ""},
		{v1beta1.TLSSpec{Mode: v1beta1.TLSRequired}, "-Z"},
		{v1beta1.TLSSpec{Mode: v1beta1.TLSRequired, ClientCertificates: v1beta1.ClientCertificatesNone, MinTLSVersion: v1beta1.TLS12}, "-Z"},
		{v1beta1.TLSSpec{Mode: v1beta1.TLSPermissive}, "-Z -l *:11211 -l notls:*:11211"},
		{v1beta1.TLSSpec{Mode: v1beta1.TLSRequired, MinTLSVersion: v1beta1.TLS13}, "-Z -o ssl_min_version=3"},
		{v1beta1.TLSSpec{Mode: v1beta1.TLSRequired, ClientCertificates: v1beta1.ClientCertificatesOptional}, "-Z -o ssl_verify_mode=1,ssl_session_cache"},
		{v1beta1.TLSSpec{Mode: v1beta1.TLSRequired, ClientCertificates: v1beta1.ClientCertificatesRequired, MinTLSVersion: v1beta1.TLS13}, "-Z -o ssl_min_version=3,ssl_verify_mode=2,ssl_session_cache"},
	} {
		m := memcached(1, nil)
		plain := argumentsOf(&m.Spec)
		m.Spec.TLS = c.tls
		if got := argumentsOf(&m.Spec)[len(plain):]; !slices.Equal(got, strings.Fields(c.want)) {
			t.Errorf("%+v: %q, want %q", c.tls, got, c.want)
		}
	}
}

// The user of a Memcached can choose its image, which reads what is mounted.
func TestPodsMountOnlyTheEntriesAndSecretsTheyMay(t *testing.T) {
	entries := func(secret *corev1ac.SecretProjectionApplyConfiguration) (keys []string) {
		for _, item := range secret.Items {
			keys = append(keys, *item.Key)
		}
		return keys
	}
	for setting, want := range map[string]map[string][]string{
		"": {"cache-tls": {"tls.crt", "tls.key", "ca.crt"}, "cache-auth": nil, "cache-binding": {"password"}},
		// Nothing else of a pod changes, so that switching spec.tls on remains a restart in place.
		"cache-tls":     {"cache-tls": {"tls.crt", "tls.key", "ca.crt"}},
		"cache-binding": {"cache-binding": {"password"}},
		"memcached-":    {},
	} {
		o := options
		var err error
		if o.Restrictions, err = ParseRestrictions(func(name string) string {
			return map[string]string{"ALLOWED_SECRET_PREFIXES": setting}[name]
		}); err != nil {
			t.Fatal(err)
		}
		m := memcached(1, nil)
		template := NewBuilder(m, o).podTemplate("cache-0", nil, &Shard{Revision: NewPodRevision(&m.Spec, Image{Reference: fallback, Version: "1.6.45"})})
		pod := template.Spec
		got, mounted := map[string][]string{}, map[string]bool{}
		for _, volume := range pod.Volumes {
			if volume.Projected == nil {
				continue
			}
			mounted[*volume.Name] = true
			for _, source := range volume.Projected.Sources {
				if !*source.Secret.Optional {
					t.Errorf("%q: a pod without Secret %s doesn't start", setting, *source.Secret.Name)
				}
				got[*source.Secret.Name] = entries(source.Secret)
			}
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%q: the mounted entries (-want +got):\n%s", setting, diff)
		}
		for _, mount := range pod.Containers[0].VolumeMounts {
			delete(mounted, *mount.Name)
		}
		_, certificate := want["cache-tls"]
		_, users := want["cache-binding"]
		args := pod.Containers[0].Args
		if len(mounted) > 0 || slices.Contains(args, "-tls-dir") != certificate || slices.Contains(args, "-auth-dir") != users {
			t.Errorf("%q: the volumes %v aren't mounted, or the agent has the wrong arguments: %q", setting, mounted, args)
		}
	}
}

func TestMemoryLimitCountsConnectionsWithTLS(t *testing.T) {
	m := memcached(1, nil)
	plain := MemoryLimit(&m.Spec)
	connections := int64(*m.Spec.Config.MaxConnections)
	for mode, more := range map[v1beta1.TLSMode]int64{v1beta1.TLSRequired: 24 << 10, v1beta1.TLSPermissive: 48 << 10} {
		m.Spec.TLS = v1beta1.TLSSpec{Mode: mode}
		limit := MemoryLimit(&m.Spec)
		if got := limit.Value() - plain.Value(); got != more*connections {
			t.Errorf("%s: %d bytes more, want %d", mode, got, more*connections)
		}
	}
}
