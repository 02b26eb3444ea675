// Package event has the events that controllers decide to record, as values.
package event

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// Event is an event to record. Pod is the name of the pod that the event is about; empty for none.
type Event struct{ Type, Reason, Message, Pod string }

// Normal returns an event that needs no attention.
func Normal(reason, format string, args ...any) Event {
	return Event{Type: corev1.EventTypeNormal, Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// Warning returns an event that may need attention.
func Warning(reason, format string, args ...any) Event {
	return Event{Type: corev1.EventTypeWarning, Reason: reason, Message: fmt.Sprintf(format, args...)}
}
