package v1beta1

import (
	"strconv"
	"strings"
	"time"
)

// Defaults, in seconds unless the name says otherwise. The CRDs have those of fields that need no mode, and the descriptions
// of the other fields state them.
const (
	DefaultFinalBackupDeadlineSeconds = 1800
	DefaultRefillMaxAgeSeconds        = 86400
	DefaultTransferDeadlineSeconds    = 21600
	DefaultStartingDeadlineSeconds    = 3600
	DefaultNodeLossTolerationSeconds  = 60

	DefaultHitRatioTimeoutSeconds = 600
	DefaultHitRatioPercent        = 90
	DefaultHitRatioMinRequests    = 1000

	DefaultItemsPerSecond            = 20000
	DefaultBytesPerSecond            = "32Mi"
	DefaultFailedBackupsHistoryLimit = 3
)

// TLSSecretName returns the name of the Secret with the certificate of a Memcached's shards.
func TLSSecretName(memcached string, tls TLSSpec) string {
	if tls.SecretName != "" {
		return tls.SecretName
	}
	return memcached + "-tls"
}

// AuthSecretName returns the name of the Secret with the users of a Memcached's shards.
func AuthSecretName(memcached string, auth AuthSpec) string {
	if auth.SecretName != "" {
		return auth.SecretName
	}
	return memcached + "-auth"
}

const (
	// BindingUser is the user of a binding's Secret. It is one of those that may log in.
	BindingUser = "binding"
	// BindingPasswordKey is the entry with that user's password.
	BindingPasswordKey = "password"
)

// BindingSecretName returns the name of the Secret of spec.access.binding.
func BindingSecretName(memcached string) string { return memcached + "-binding" }

// HashedServers returns the names of a Memcached's servers as its clients hash them, by ordinal: those of
// spec.access.hashing, or of the status.
func HashedServers(m *Memcached) []string { return HashedNames(m, m.Status.Servers) }

// HashedNames returns the names of servers, the first ones of a Memcached, as its clients hash them.
func HashedNames(m *Memcached, servers []string) []string {
	if m.Spec.Access.Hashing == nil || m.Spec.Access.Hashing.ServerNameTemplate == "" {
		return servers
	}
	names := make([]string, len(servers))
	for ordinal := range names {
		shard := m.Name + "-" + strconv.Itoa(ordinal)
		names[ordinal] = strings.NewReplacer("{shard}", shard, "{namespace}", m.Namespace).Replace(m.Spec.Access.Hashing.ServerNameTemplate)
	}
	return names
}

// Seconds returns a field of seconds as a duration, or fallback when it is not set.
func Seconds(n *int32, fallback int32) time.Duration {
	if n != nil {
		fallback = *n
	}
	return time.Duration(fallback) * time.Second
}
