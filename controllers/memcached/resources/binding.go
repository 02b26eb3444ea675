package resources

import (
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
)

// bindingType is the type of a binding's Secret, as the Service Binding Specification names it
// (https://servicebinding.io/spec/core/1.1.0/).
const bindingType corev1.SecretType = "servicebinding.io/memcached"

// BindingSecret returns the Secret of spec.access.binding with the addresses of the shards, without the password.
func (b *Builder) BindingSecret() *corev1.Secret {
	list := strings.Join(b.options.Servers(b.memcached), ",")
	data := map[string]string{
		"type":                     "memcached",
		"provider":                 v1beta1.ManagedByValue,
		"host":                     b.options.Host(b.namespace, ShardName(b.name, 0)),
		"port":                     strconv.Itoa(agentwire.MemcachedPort),
		"uri":                      "memcached://" + list,
		"servers":                  list,
		"username":                 v1beta1.BindingUser,
		v1beta1.BindingPasswordKey: "",
	}
	secret := &corev1.Secret{ObjectMeta: b.owned, Type: bindingType, Data: map[string][]byte{}}
	secret.Name = v1beta1.BindingSecretName(b.name)
	for key, value := range data {
		secret.Data[key] = []byte(value)
	}
	return secret
}
