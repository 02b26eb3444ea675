package shard

import (
	"encoding/json"
	"time"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/rollout"
)

// UpdateRecord is what the operator records on a shard when it updates it.
type UpdateRecord struct {
	// Revision that the update leads to, and the one that it leads from.
	Revision string         `json:"revision"`
	From     string         `json:"from,omitempty"`
	At       time.Time      `json:"at"`
	Method   rollout.Method `json:"method"`
	// Container that ran before.
	Container string `json:"container,omitempty"`
	// Gets and Hits of the minute before.
	Gets int64 `json:"gets,omitempty"`
	Hits int64 `json:"hits,omitempty"`
}

// FailureRecord is what the operator records on a shard whose update failed.
type FailureRecord struct {
	Revision string `json:"revision"`
	// Attempt is the RetryToken of the failed update. The operator retries under another one.
	Attempt string `json:"attempt,omitempty"`
	Message string `json:"message"`
}

// EncodeRecord returns a record as an annotation's value.
func EncodeRecord(v any) string {
	raw, err := json.Marshal(v)
	if err != nil { // records contain plain values only
		panic(err)
	}
	return string(raw)
}

// DecodeRecord returns the record in an annotation, or nil.
func DecodeRecord[T any](from map[string]string, name string) *T {
	text, ok := from[name]
	v := new(T)
	if !ok || json.Unmarshal([]byte(text), v) != nil {
		return nil
	}
	return v
}

// RetryToken identifies an attempt to update a Memcached. A failed update is retried when
// it changes.
func RetryToken(m *v1alpha1.Memcached) string {
	token := m.Annotations[v1alpha1.AnnotationRetry]
	if AllowsItemLoss(m) {
		token += "/" + string(v1alpha1.ItemLossContinue)
	}
	return token
}

// AllowsItemLoss reports whether an update continues when a shard loses its items.
func AllowsItemLoss(m *v1alpha1.Memcached) bool {
	return m.Spec.UpdateStrategy != nil && m.Spec.UpdateStrategy.OnItemLoss == v1alpha1.ItemLossContinue
}

// AllowsCrossSeries reports whether shards may be updated to another release series.
func AllowsCrossSeries(m *v1alpha1.Memcached) bool {
	return m.Spec.UpdateStrategy != nil && m.Spec.UpdateStrategy.CrossSeriesUpgrade == v1alpha1.CrossSeriesAllow
}
