package controllers

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
)

// The API server rejects a message of more than 1,024 bytes, and nothing retries it.
func TestMessageOfEventIsTruncated(t *testing.T) {
	recorder := events.NewFakeRecorder(1)
	boundedRecorder{recorder}.Eventf(&v1beta1.Memcached{}, nil, corev1.EventTypeWarning, v1beta1.ReasonUpdateFailed, "Reconcile", "shard %s: %s", "cache-0", strings.Repeat("€", 2000))
	note := strings.TrimPrefix(<-recorder.Events, corev1.EventTypeWarning+" "+v1beta1.ReasonUpdateFailed+" ")
	if len(note) > maxNote || !strings.HasPrefix(note, "shard cache-0: €€€") || !strings.HasSuffix(note, "€…") {
		t.Errorf("the message has %d bytes: %q", len(note), note)
	}
}
