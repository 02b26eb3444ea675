package observation

import (
	"cmp"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/window"
)

// A release of the operator may have another default image, and so another one for each
// Memcached that doesn't name its image or version. Such a Memcached keeps the image in its
// status until it may follow: a few at a time, ordered by namespace and name, and none after
// the update of one has failed. The status is the only record, so an operator that restarts
// continues.

const (
	// followPoll is when to check again whether the next Memcached may follow, for each one
	// that is before it.
	followPoll = 5 * time.Second
	// maxFollowPoll bounds that.
	maxFollowPoll = 5 * time.Minute
)

// DefaultImageHold is whether a Memcached keeps its image while the operator has another default image.
type DefaultImageHold struct {
	// Message says what it waits for; empty when it doesn't wait.
	Message string
	// RecheckAfter is when to check again; 0 is never.
	RecheckAfter time.Duration
}

// IsBehindDefaultImage reports whether a Memcached has the image that its spec selected with a previous
// default image, and that the default image changes. After a change of the spec that selects
// another image, it isn't behind: such a change waits for nothing.
func IsBehindDefaultImage(m *v1beta1.Memcached, defaultImage string) bool {
	if m.Status.DefaultImage == defaultImage || !SelectsWithFormerDefault(m, m.Status.Image) {
		return false
	}
	current, err := resources.ResolveImage(m.Spec.Pod.Image, m.Spec.Version, defaultImage)
	return err == nil && current.Reference != m.Status.Image
}

// SelectsWithFormerDefault reports whether the spec selects an image with the default image of the status.
func SelectsWithFormerDefault(m *v1beta1.Memcached, reference string) bool {
	if m.Status.DefaultImage == "" {
		return false
	}
	image, err := resources.ResolveImage(m.Spec.Pod.Image, m.Spec.Version, m.Status.DefaultImage)
	return err == nil && image.Reference == reference
}

// HoldDefaultImage returns whether a Memcached that is behind the default image waits. atOnce is how
// many are updated at a time. One with its own version isn't counted, and one with its own image
// doesn't stop the others: what fails there isn't the default image.
func HoldDefaultImage(m *v1beta1.Memcached, all []v1beta1.Memcached, defaultImage string, atOnce int, now time.Time) DefaultImageHold {
	var before, updating, failed int
	for i := range all {
		other := &all[i]
		if other.Status.Image == "" || other.DeletionTimestamp != nil || other.Spec.Version != "" || !resources.DependsOnDefault(other.Spec.Pod.Image, other.Spec.Version) {
			continue
		}
		degraded := meta.IsStatusConditionTrue(other.Status.Conditions, v1beta1.ConditionDegraded)
		switch {
		case IsBehindDefaultImage(other, defaultImage):
			if wait, ok := mayFollowIn(other, now); ok && wait == 0 && compareNames(other, m) < 0 {
				before++
			}
		case other.Status.Update == nil || waitsByChoice(other, degraded):
		case !degraded:
			updating++
		case other.Spec.Pod.Image == "":
			failed++
		}
	}
	wait, ok := mayFollowIn(m, now)
	hold := DefaultImageHold{RecheckAfter: min(followPoll*time.Duration(max(before+updating-atOnce+1, 1)), maxFollowPoll)}
	why := "it follows in the order of namespaces and names"
	switch {
	case !ok:
		hold.RecheckAfter, why = 0, "it follows when it is neither paused nor Degraded"
	case atOnce == 0:
		hold.RecheckAfter, why = 0, "the operator is set to update none"
	case failed > 0:
		hold.RecheckAfter, why = maxFollowPoll, "the update of another Memcached to it is Degraded"
	case wait > 0:
		hold.RecheckAfter, why = wait, "it follows in a maintenance window"
	case before+updating < atOnce:
		return DefaultImageHold{}
	}
	hold.Message = fmt.Sprintf("keeps image %s; the operator's default image is %s, and %s; to update now or to keep the version, set spec.version",
		m.Status.Image, defaultImage, why)
	return hold
}

// mayFollowIn returns when a Memcached may follow the default image as far as it is
// concerned; false is not before its spec or status changes. One whose update to a former default image fails may: another one can be the
// cure.
func mayFollowIn(m *v1beta1.Memcached, now time.Time) (time.Duration, bool) {
	windows := m.Spec.UpdateStrategy.MaintenanceWindows
	wait, err := window.OpensIn(windows, now)
	degraded := meta.IsStatusConditionTrue(m.Status.Conditions, v1beta1.ConditionDegraded)
	return wait, err == nil && !m.Spec.Paused && (!degraded || m.Status.Update != nil && m.Status.TargetVersion != "")
}

// waitsByChoice reports whether an update waits for as long as its user likes.
func waitsByChoice(m *v1beta1.Memcached, degraded bool) bool {
	switch m.Status.Update.Gate {
	case v1beta1.GateUpdateStrategyInvalid, v1beta1.GateSecretInvalid, v1beta1.GateMinPeriodNotElapsed, v1beta1.GateOutsideMaintenanceWindow, v1beta1.GateRestoreRunning, v1beta1.GateScaling:
		return true
	case v1beta1.GateHitRatioNotRecovered: // after its timeout, the Memcached is Degraded
		return !degraded
	default:
		return m.Spec.Paused && !degraded
	}
}

func compareNames(a, b *v1beta1.Memcached) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}
