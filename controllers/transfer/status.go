package transfer

import (
	"fmt"
	"regexp"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/condition"
	snapshotwire "github.com/memcached-operator/memcached-operator/internal/snapshot/wire"
	"github.com/memcached-operator/memcached-operator/internal/text"
)

// maxMessage bounds a message, in bytes: an event takes 1 KiB.
const maxMessage = 1000

// reasonForm matches the reasons that a condition can have.
var reasonForm = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]{0,127}$`)

// begin returns the status that is written before the Job is created.
func begin(s v1beta1.TransferStatus, obs Observation, message string) v1beta1.TransferStatus {
	s = withPhase(s, obs, v1beta1.TransferRunning, v1beta1.ReasonStarting, message)
	s.JobName, s.StartTime = obs.Job.Name, &metav1.Time{Time: obs.Now.Truncate(time.Second)}
	return s
}

func finish(s v1beta1.TransferStatus, obs Observation, phase v1beta1.TransferPhase, reason, message string) v1beta1.TransferStatus {
	s = withPhase(s, obs, phase, reason, message)
	s.CompletionTime = &metav1.Time{Time: obs.Now.Truncate(time.Second)}
	return s
}

// next returns the status of a running transfer after its Job was evaluated.
func next(s v1beta1.TransferStatus, obs Observation, state JobState) v1beta1.TransferStatus {
	observedBefore := s.JobUID != ""
	if obs.Job.Job != nil {
		s.JobUID = string(obs.Job.Job.UID)
	}
	switch state.Stage {
	case Absent:
		rejected := s.Reason() == v1beta1.ReasonJobCannotStart
		switch {
		case !observedBefore && rejected && s.StartTime != nil && obs.Now.Sub(s.StartTime.Time) >= StuckTimeout,
			observedBefore && rejected: // it was deleted because its pod could not start
			return finish(s, obs, v1beta1.TransferFailed, s.Reason(), s.Message())
		case !observedBefore: // it will be created
			return s
		}
		return finish(s, obs, v1beta1.TransferFailed, v1beta1.ReasonJobDeleted,
			fmt.Sprintf("Job %s was deleted before it finished. Create another %s", s.JobName, transferOf(obs.Object).kind))
	case Terminating: // the status keeps the reason, which may be why the Job is deleted
		return s
	case Foreign, Failed:
		s.Progress = progressOf(s.Progress, state, false)
		message := state.Message
		switch { // not of a deletion
		case state.Reason == v1beta1.ReasonDeadlineExceeded:
			message += ". Set a longer deadline or a higher rate limit"
		case state.Outcome == nil:
			message += ". Create another " + transferOf(obs.Object).kind
		}
		return finish(s, obs, v1beta1.TransferFailed, state.Reason, message)
	case Succeeded:
		s.Progress = progressOf(s.Progress, state, true)
		return finish(s, obs, v1beta1.TransferComplete, state.Reason, state.Message)
	default:
		s.Progress = progressOf(s.Progress, state, false)
		return withPhase(s, obs, v1beta1.TransferRunning, state.Reason, state.Message)
	}
}

// progressOf returns the progress of a Job, or the last one that is known. It is nil until a
// container has run.
func progressOf(last *v1beta1.TransferProgress, state JobState, complete bool) *v1beta1.TransferProgress {
	var p v1beta1.TransferProgress
	switch o, r := state.Outcome, state.Progress; {
	case o != nil:
		p = v1beta1.TransferProgress{Items: o.Items, TotalItems: o.TotalItems, Bytes: o.Bytes, ItemsPerSecond: o.ItemsPerSecond}
	case r != nil:
		p = v1beta1.TransferProgress{Items: r.Items, TotalItems: r.TotalItems, Bytes: r.Bytes, ItemsPerSecond: r.ItemsPerSecond}
	case last != nil || !state.Started:
		return last
	}
	p.Percent = percent(p.Items, p.TotalItems)
	if complete {
		p.Percent = 100
	}
	return &p
}

// percent returns the share of the items that were copied. It is less than 100 until the
// transfer is complete, as the total may still grow.
func percent(items, total int64) int32 {
	if total <= 0 {
		return 0
	}
	return int32(min(99, max(0, float64(items)*100/float64(total)))) //nolint:gosec // 0 to 99
}

// withPhase returns a status with a phase and its conditions.
func withPhase(s v1beta1.TransferStatus, obs Observation, phase v1beta1.TransferPhase, reason, message string) v1beta1.TransferStatus {
	if !reasonForm.MatchString(reason) { // a Job's pod may report anything
		reason = v1beta1.ReasonJobFailed
	}
	message = text.Truncate(message, maxMessage)
	s.ObservedGeneration, s.Phase = obs.Object.GetGeneration(), phase
	succeeded := condition.New(v1beta1.ConditionSucceeded, phase == v1beta1.TransferComplete, reason, message)
	if !s.IsFinished() {
		succeeded.Status = metav1.ConditionUnknown
	}
	s.Conditions = condition.Set(s.Conditions, s.ObservedGeneration, obs.Now, append(condition.Of(health(phase, reason), reason, message), succeeded)...)
	return s
}

// health returns whether a transfer in a phase becomes Complete by itself.
func health(phase v1beta1.TransferPhase, reason string) condition.Health {
	switch {
	case phase == v1beta1.TransferComplete:
		return condition.Ready
	case phase == v1beta1.TransferFailed, reason == v1beta1.ReasonJobCannotStart, reason == v1beta1.ReasonNotAllowed:
		return condition.Stalled
	default:
		return condition.Reconciling
	}
}

// WithStart returns a status that says that a Job which is being deleted has run.
func WithStart(s Status, state JobState) Status {
	s.Progress = progressOf(s.Progress, state, false)
	return s
}

// WithDeletion returns the status of a transfer whose deletion waits. Succeeded stays: it isn't about the deletion.
func WithDeletion(s Status, obs Observation, message string) Status {
	s.Conditions = condition.Set(s.Conditions, obs.Object.GetGeneration(), obs.Now,
		condition.Of(condition.Reconciling, v1beta1.ReasonDeleting, text.Truncate(message, maxMessage))...)
	return s
}

// SnapshotOf returns a snapshot as the status describes it; nil when there is none.
func SnapshotOf(s *snapshotwire.Snapshot, path string) *v1beta1.SnapshotStatus {
	if s == nil {
		return nil
	}
	return &v1beta1.SnapshotStatus{
		Path:          path,
		SnapshotTime:  v1beta1.Time(s.TakenAt),
		Shards:        int32(s.Shards), //nolint:gosec // at most 1000
		Items:         s.Items,
		Bytes:         s.Bytes,
		StoredBytes:   s.StoredBytes,
		FormatVersion: int32(s.FormatVersion), //nolint:gosec // counted from 1
	}
}
