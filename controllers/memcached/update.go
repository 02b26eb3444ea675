package memcached

import (
	"fmt"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/rollout"
)

// stepBack is the step of the status while a shard is taken back to what it was.
const stepBack = "rollback"

// updateStatus tells how far a change of the spec has come, or returns nil when
// there is none.
func updateStatus(seen *observed, p *plan, s v1alpha1.MemcachedStatus, now time.Time) *v1alpha1.UpdateStatus {
	d := p.decision
	if d.Done() || d.Step == rollout.StepWithdraw {
		return nil
	}
	u := &v1alpha1.UpdateStatus{
		Revision: p.target.Revision(), Shard: d.Shard, Gate: d.Gate, Step: d.Change.Class.String(),
		Since: metav1.NewTime(now.Truncate(time.Second)), // the API keeps seconds
	}
	if d.Back {
		u.Step = stepBack
	}
	position := 0
	for i, shard := range s.Shards {
		if shard.Current {
			u.Updated++
		}
		if shard.Name == d.Shard {
			position = i + 1
		}
	}
	u.Items, u.ItemsBefore = kept(p.shards, s, u.Revision)
	u.Message = updateMessage(p, s, position, u.Step, seen.now)
	if u.ItemsBefore > 0 {
		u.Message += "; " + keptItems(u)
	}
	u.Message = bounded(u.Message)
	if was := seen.memcached.Status.Update; was != nil && was.Revision == u.Revision && was.Shard == u.Shard && was.Step == u.Step && was.Gate == u.Gate {
		u.Since = was.Since
	}
	return u
}

// updateMessage tells a person in a line which shard is changed, from what to what,
// what holds it, and what came of those before.
func updateMessage(p *plan, s v1alpha1.MemcachedStatus, position int, step string, now time.Time) string {
	d := p.decision
	message := fmt.Sprintf("shard %d of %d", position, len(s.Shards))
	switch {
	case step == stepBack:
		message += " is taken back to what it was"
	case d.Change.What != "":
		message += ": " + d.Change.What
	}
	if d.Gate != "" || step == stepBack || d.NeedsPerson {
		message += "; " + d.Message
	}
	if d.Gate == rollout.WindowClosed {
		message += ", which opens at " + now.Add(d.After).UTC().Format("15:04 MST on Monday, 2 January")
	}
	return message
}

// keptItems says how many items the changed shards kept.
func keptItems(u *v1alpha1.UpdateStatus) string {
	return fmt.Sprintf("%s of %s items kept", percent(u.Items, u.ItemsBefore), thousands(u.ItemsBefore))
}

// percent returns a share with one digit after the point, never rounded up to all.
func percent(items, of int64) string {
	if items >= of {
		return "100 %"
	}
	return fmt.Sprintf("%.1f %%", float64(items*1000/of)/10)
}

// thousands returns a number with its digits in groups of three.
func thousands(n int64) string {
	digits := strconv.FormatInt(n, 10)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// progressReason returns the reason of Progressing while the spec's change is on
// its way.
func progressReason(d rollout.Decision) string {
	switch {
	case d.Step == rollout.StepProve || d.Gate == rollout.ImageNotProven && !d.NeedsPerson:
		return v1alpha1.ReasonProvingImage
	case d.Gate != "":
		return d.Gate
	default:
		return v1alpha1.ReasonUpdatingShard
	}
}

// waits says whether nothing will happen for a while, or without a person.
func waits(d rollout.Decision) bool {
	return d.NeedsPerson || d.Gate == rollout.WindowClosed || d.Gate == rollout.SpecInvalid || d.Gate == rollout.Paused
}

// stopped returns why the update does not go on, and what to do.
func (p *plan) stopped() *problem {
	d := p.decision
	switch d.Gate {
	case rollout.PathNotAllowed:
		return &problem{v1alpha1.ReasonPathNotAllowed, d.Message}
	case rollout.ImageNotProven:
		reason := v1alpha1.ReasonImageUnusable
		if p.unproven != nil {
			reason = p.unproven.reason
		}
		return &problem{reason, d.Message + "; mend the image, or set it back to " + p.shards[0].template.Image.Reference}
	case "":
		return &problem{v1alpha1.ReasonUnschedulable, fmt.Sprintf(
			"shard %s is to be replaced, and its second pod cannot run: %s; the first one serves on; give it a node, or set the spec back", d.Shard, d.Message)}
	case rollout.HitRatio:
		return &problem{v1alpha1.ReasonHitRatioNotBack, d.Message + "; the other shards wait until it does, or until spec.updateStrategy.hitRatioGate says otherwise"}
	default:
		return &problem{v1alpha1.ReasonUpdateStopped, fmt.Sprintf(
			"shard %s was taken back to what it was before and the others were left alone: %s; set the spec back, or try again with another value of the annotation %s",
			d.Shard, d.Message, v1alpha1.AnnotationRetry)}
	}
}
