package condition

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
)

func TestAtMostOneConditionIsTrue(t *testing.T) {
	want := map[Health]string{Waiting: "", Reconciling: v1beta1.ConditionReconciling, Stalled: v1beta1.ConditionStalled, Ready: v1beta1.ConditionReady}
	for health, holds := range want {
		all := Of(health, "Because", "of this")
		if len(all) != 3 {
			t.Fatalf("%d conditions", len(all))
		}
		for _, c := range all {
			if (c.Status == metav1.ConditionTrue) != (c.Type == holds) || c.Reason != "Because" {
				t.Errorf("health %d: %+v", health, c)
			}
			if (c.Message == "of this") != (c.Type == holds || c.Type == v1beta1.ConditionReady) {
				t.Errorf("health %d: the message of %s is %q", health, c.Type, c.Message)
			}
		}
	}
}

func TestConditionKeepsItsTimeWhileItsStatusStays(t *testing.T) {
	first, later := time.Unix(1000, 5), time.Unix(2000, 5)
	before := Set(nil, 1, first, Of(Reconciling, "Copying", strings.Repeat("x", 2*v1beta1.MaxMessage))...)
	after := Set(before, 2, later, Of(Stalled, "JobFailed", "")...)
	for kind, want := range map[string]int64{v1beta1.ConditionReady: 1000, v1beta1.ConditionReconciling: 2000, v1beta1.ConditionStalled: 2000} {
		c := meta.FindStatusCondition(after, kind)
		if c.LastTransitionTime.Unix() != want || c.ObservedGeneration != 2 || c.Reason != "JobFailed" {
			t.Errorf("%+v", c)
		}
	}
	if got := meta.FindStatusCondition(before, v1beta1.ConditionReady); len(got.Message) > v1beta1.MaxMessage || got.ObservedGeneration != 1 {
		t.Errorf("the first conditions: %+v", got)
	}
}
