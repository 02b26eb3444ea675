package controllers

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"

	"github.com/memcached-operator/memcached-operator/internal/text"
)

// maxNote is how long the message of an event may be, in bytes. The API server rejects a
// longer one, and the recorder then drops the event.
const maxNote = 1024

// boundedRecorder records events whose messages it shortens to maxNote.
type boundedRecorder struct{ events.EventRecorder }

// Eventf implements events.EventRecorder.
func (r boundedRecorder) Eventf(regarding, related runtime.Object, eventtype, reason, action, note string, args ...any) {
	r.EventRecorder.Eventf(regarding, related, eventtype, reason, action, "%s", text.Truncate(fmt.Sprintf(note, args...), maxNote))
}
