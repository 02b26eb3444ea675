// Package condition sets the conditions of a status. For every kind, the conditions Ready, Reconciling and Stalled follow
// from one Health, so that kstatus, Flux and Argo CD read all kinds alike.
package condition

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/internal/text"
)

// Health is what a tool waits for.
type Health int

// The healths.
const (
	// Waiting: the object isn't ready, and nothing is in progress and nothing is wrong, as while spec.paused is true.
	Waiting Health = iota
	// Reconciling: the object becomes ready without manual intervention.
	Reconciling
	// Stalled: it doesn't.
	Stalled
	// Ready: the object is as its spec says.
	Ready
)

// Of returns Ready, Reconciling and Stalled. At most one of them is True: kstatus takes the first that it finds. The
// reason is that of all three, and the message that of Ready, and of the one that is True.
func Of(h Health, reason, message string) []metav1.Condition {
	all := []metav1.Condition{
		New(v1beta1.ConditionReady, h == Ready, reason, message),
		New(v1beta1.ConditionReconciling, h == Reconciling, reason, ""),
		New(v1beta1.ConditionStalled, h == Stalled, reason, ""),
	}
	for i := range all {
		if all[i].Status == metav1.ConditionTrue {
			all[i].Message = message
		}
	}
	return all
}

// New returns a condition that is True or False.
func New(kind string, holds bool, reason, message string) metav1.Condition {
	status := metav1.ConditionFalse
	if holds {
		status = metav1.ConditionTrue
	}
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message}
}

// Set returns the conditions of a status with those of a generation, sorted by type. A condition whose status stays keeps
// its time.
func Set(conditions []metav1.Condition, generation int64, now time.Time, all ...metav1.Condition) []metav1.Condition {
	conditions = slices.Clone(conditions)
	for _, c := range all {
		c.ObservedGeneration = generation
		c.LastTransitionTime = metav1.NewTime(now.Truncate(time.Second)) // the API stores seconds
		c.Message = text.Truncate(c.Message, v1beta1.MaxMessage)
		meta.SetStatusCondition(&conditions, c)
	}
	slices.SortFunc(conditions, func(a, b metav1.Condition) int { return strings.Compare(a.Type, b.Type) })
	return conditions
}
