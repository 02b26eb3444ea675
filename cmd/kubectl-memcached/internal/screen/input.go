// Package screen computes what the plugin shows of what it has read. It has neither a client nor a clock.
package screen

import (
	"cmp"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/internal/agent/wire"
)

// Input is what was read of a Memcached.
type Input struct {
	Memcached *v1beta1.Memcached
	// Agents are the answers of the agents, by the name of their pod.
	Agents map[string]wire.Status
	// Samples are the metrics of the agents, by the name of their pod.
	Samples map[string]Sample
	// Backups of this Memcached.
	Backups []v1beta1.MemcachedBackup
	// Omitted says in sentences what couldn't be read, and why.
	Omitted []string
	// Flags select the cluster and the namespace in commands that are printed.
	Flags string
	Now   time.Time
}

// State is what a script needs to know of a Memcached.
type State string

// The states.
const (
	// Ready: it is as its spec says.
	Ready State = "Ready"
	// NotReady: it isn't, and nothing requires manual intervention.
	NotReady State = "NotReady"
	// NeedsIntervention: it doesn't become ready without manual intervention.
	NeedsIntervention State = "NeedsIntervention"
)

func stateOf(m *v1beta1.Memcached) State {
	conditions := m.Status.Conditions
	switch {
	case meta.IsStatusConditionTrue(conditions, v1beta1.ConditionStalled), meta.IsStatusConditionTrue(conditions, v1beta1.ConditionDegraded):
		return NeedsIntervention
	case meta.IsStatusConditionTrue(conditions, v1beta1.ConditionReady) && isSeen(m):
		return Ready
	}
	return NotReady
}

// isSeen reports whether the status describes the spec.
func isSeen(m *v1beta1.Memcached) bool { return m.Status.ObservedGeneration >= m.Generation }

// sentence summarizes the status as the operator does.
func sentence(m *v1beta1.Memcached) string {
	if m.Status.ObservedGeneration <= 0 {
		return "Unknown: the operator hasn't reported on it yet; check that the operator runs and watches this namespace"
	}
	text := cmp.Or(string(m.Status.Phase), "Unknown")
	c := condition(m, v1beta1.ConditionReady, v1beta1.ConditionAvailable)
	if c.Status != metav1.ConditionTrue && c.Reason != "" && c.Reason != text {
		text += " (" + c.Reason + ")"
	}
	if c.Message != "" {
		text += ": " + c.Message
	}
	if !isSeen(m) {
		text += "; the operator hasn't seen the last change of the spec yet"
	}
	return text
}

// condition returns the first of the conditions that exists, or an empty one.
func condition(m *v1beta1.Memcached, types ...string) metav1.Condition {
	for _, t := range types {
		if c := meta.FindStatusCondition(m.Status.Conditions, t); c != nil {
			return *c
		}
	}
	return metav1.Condition{}
}

// since returns how long ago a time was, such as 3d4h; empty if it isn't known.
func since(now time.Time, t *metav1.Time) string {
	if t.IsZero() {
		return ""
	}
	return duration.HumanDuration(max(now.Sub(t.Time), 0))
}
