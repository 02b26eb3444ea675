package resources

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
)

// bindingType is the type of a binding's Secret, as the Service Binding Specification names it
// (https://servicebinding.io/spec/core/1.1.0/).
const bindingType corev1.SecretType = "servicebinding.io/memcached"

// BindingSecret returns the Secret of spec.access.binding with the addresses of the first shards, without the password.
func (b *Builder) BindingSecret(size int) *corev1.Secret {
	servers := make([]string, size)
	for ordinal := range servers {
		servers[ordinal] = Server(b.namespace, ShardName(b.name, ordinal))
	}
	first, port, _ := strings.Cut(Server(b.namespace, ShardName(b.name, 0)), ":")
	list := strings.Join(servers, ",")
	data := map[string]string{
		"type":                     "memcached",
		"provider":                 v1beta1.ManagedByValue,
		"host":                     first,
		"port":                     port,
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
