package resources

import (
	"cmp"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
)

// scaleSubresource is through what autoscalers write the size.
const scaleSubresource = "scale"

// sizeOnly are the fields of an entry that owns nothing but the size.
const sizeOnly = `{"f:spec":{"f:size":{}}}`

// ScaledBy returns the managed fields entry of the manager that wrote the size through /scale, reduced to that. If a manager that wrote the
// Memcached itself owns the size, there is none. If no manager does, the entry has no name: the API server doesn't record who writes through
// /scale a size that no manager owned.
func ScaledBy(m *v1beta1.Memcached) []metav1.ManagedFieldsEntry {
	if len(m.ManagedFields) == 0 {
		return nil
	}
	by := metav1.ManagedFieldsEntry{Subresource: scaleSubresource}
	for _, e := range m.ManagedFields {
		switch {
		case !ownsSize(e):
		case e.Subresource != scaleSubresource:
			return nil
		case !e.Time.Before(by.Time):
			by = e
		}
	}
	by.FieldsV1 = metav1.NewFieldsV1(sizeOnly)
	return []metav1.ManagedFieldsEntry{by}
}

func ownsSize(e metav1.ManagedFieldsEntry) bool {
	var fields struct {
		Spec struct {
			Size *struct{} `json:"f:size"`
		} `json:"f:spec"`
	}
	if e.FieldsV1 == nil || e.FieldsV1.GetRawString() == sizeOnly {
		return e.FieldsV1 != nil
	}
	return json.Unmarshal(e.FieldsV1.GetRawBytes(), &fields) == nil && fields.Spec.Size != nil
}

// sizeOfSpec returns the size that was written, by whomever, or the default.
func sizeOfSpec(m *v1beta1.Memcached) int32 { return ptr.Deref(m.Spec.Size, 1) }

// Size returns the number of shards that a Memcached should have: that of the spec, if it isn't beyond what may be written through /scale.
func Size(m *v1beta1.Memcached) int32 {
	_, size := sizes(m)
	return size
}

// sizes returns the number of shards with which a change begins, and Size.
func sizes(m *v1beta1.Memcached) (from, size int32) {
	size, limits := sizeOfSpec(m), m.Spec.Scaling.ScaleSubresource
	if m.Status.ObservedGeneration <= 0 || ScaledBy(m) == nil {
		return size, size
	}
	var least int32
	switch s := m.Status.Scaling; {
	case s != nil && isPublished(s):
		from, least = s.To, s.To
	case s != nil:
		from, least = s.From, min(s.From, s.To)
	case m.Status.LimitedSize != nil:
		from, least = m.Status.LimitedSize.Size, m.Status.LimitedSize.Size
	case m.Status.ObservedGeneration == m.Generation:
		return size, size
	default:
		from = sizeOfList(m)
		least = from
	}
	if limits.Directions != v1beta1.ScaleOutAndIn && size < least {
		return from, least
	}
	if limits.MaxStep != nil && from > 0 {
		size = min(max(size, from-*limits.MaxStep), from+*limits.MaxStep)
	}
	return from, size
}

// LimitedSize returns the number of shards to report instead of the spec's, if so many exist; nil if Size is that of the spec.
func LimitedSize(m *v1beta1.Memcached, exist int32) *v1beta1.LimitedSize {
	from, size := sizes(m)
	wanted := sizeOfSpec(m)
	if size == wanted {
		return nil
	}
	message := fmt.Sprintf("%s set spec.size to %d through /scale, where spec.scaling.scaleSubresource", cmp.Or(ScaledBy(m)[0].Manager, "an unknown client"), wanted)
	if IsScaleInForbidden(m) {
		message += fmt.Sprintf(" removes no shards; keeping %d shards. If you want fewer, set spec.size to %[1]d in the Memcached and then to your number", size)
	} else {
		message += fmt.Sprintf(" has maxStep %d; %d shards are next", *m.Spec.Scaling.ScaleSubresource.MaxStep, size)
		// The next step begins where this one is: it may wait, such as while the Memcached is paused.
		size = min(max(exist, min(from, size)), max(from, size))
	}
	return &v1beta1.LimitedSize{Size: size, Message: message}
}

// IsScaleInForbidden reports whether the Memcached has more shards than the spec because /scale may not remove any.
func IsScaleInForbidden(m *v1beta1.Memcached) bool {
	return m.Spec.Scaling.ScaleSubresource.Directions != v1beta1.ScaleOutAndIn && Size(m) > sizeOfSpec(m)
}
