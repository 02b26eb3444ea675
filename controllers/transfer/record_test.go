package transfer

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
)

func TestRecordRestoresOnlyAFinalStatusOfTheSameName(t *testing.T) {
	complete := `"status":{"phase":"Complete","jobName":"j","conditions":[{"type":"Succeeded","status":"True","reason":"Succeeded","message":"done"}]}}`
	for text, want := range map[string]string{
		"":                             "none",
		"not a record":                 "none",
		`{"name":"nightly","uid":"x"}`: "none",
		`{"name":"nightly","uid":"x","status":{"phase":"Running"}}`:       "none",
		`{"name":"weekly","uid":"x",` + complete:                          "none",
		`{"name":"nightly","uid":"x",` + complete:                         "Complete Succeeded done",
		`{"name":"nightly","uid":"` + string(owner.UID) + `",` + complete: "Complete Succeeded done j",
	} {
		b := owner.DeepCopy()
		b.Annotations = map[string]string{annotations.Transfer: text}
		got := "none"
		if s, ok := recorded(b, now); ok {
			got = string(s.Phase) + " " + s.Reason() + " " + s.Message()
			if s.JobName != "" {
				got += " " + s.JobName
			}
			if len(s.Conditions) != 4 {
				t.Errorf("%s: the conditions are %+v", text, s.Conditions)
			}
		}
		if got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
		b.Status.Phase = v1beta1.TransferFailed
		if _, ok := recorded(b, now); ok {
			t.Errorf("%s replaces a final status", text)
		}
	}
}

// The Memcached may be deleted before the snapshot, with whose image pull secrets the Job starts.
func TestRecordKeepsPullSecretsWithoutTheMemcached(t *testing.T) {
	b, m := owner.DeepCopy(), cache()
	m.Spec.Pod.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "registry"}}
	setRecord(b, m, Status{})
	setRecord(b, nil, Status{TransferStatus: v1beta1.TransferStatus{Phase: v1beta1.TransferFailed}})
	if got := PullSecrets(b, nil); len(got) != 1 || got[0].Name != "registry" {
		t.Errorf("the secrets are %v", got)
	}
	if got := PullSecrets(b, cache()); len(got) != 0 {
		t.Errorf("the secrets of a Memcached without any are %v", got)
	}
}
