package transfer

import (
	"testing"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
)

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
