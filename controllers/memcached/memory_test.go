package memcached

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
)

// The operator must not wait forever: an etcd that was restored returns old versions.
func TestVersionIsStaleForAWhileAfterTheWrite(t *testing.T) {
	now := time.Unix(1000, 0)
	version := func(v string) *v1beta1.Memcached {
		return &v1beta1.Memcached{ObjectMeta: metav1.ObjectMeta{ResourceVersion: v}}
	}
	replaced := replacedVersion{}.next("7", version("8"), now).next("8", version("8"), now.Add(time.Hour))
	for name, c := range map[string]struct {
		version string
		at      time.Duration
		want    bool
	}{
		"the replaced version":      {"7", 0, true},
		"just before the timeout":   {"7", staleCacheTimeout - 1, true},
		"at the timeout":            {"7", staleCacheTimeout, false},
		"a clock that was set back": {"7", -staleCacheTimeout, false},
		"a newer version":           {"8", 0, false},
	} {
		if got := replaced.isOf(version(c.version), now.Add(c.at)); got != c.want {
			t.Errorf("%s: stale: %t", name, got)
		}
	}
}
