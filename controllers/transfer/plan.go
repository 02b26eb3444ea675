package transfer

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/apiserver"
	"github.com/memcached-operator/memcached-operator/controllers/event"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	snapshotwire "github.com/memcached-operator/memcached-operator/internal/snapshot/wire"
)

const (
	// progressPoll is how often the progress of a Job is read.
	progressPoll = 5 * time.Second
)

// Plan is what a reconcile does.
type Plan struct {
	// Status that the transfer should have. It announces what the actions do.
	Status Status
	// Events of that change.
	Events  []event.Event
	Actions Actions
}

// Actions are the writes after that of the status, and when to reconcile again.
type Actions struct {
	// Finalizer is written before the status.
	Finalizer FinalizerChange
	// Create is a Job to create, or nil.
	Create *batchv1.Job
	// Job is what to do about the Job that exists.
	Job Action
	// EndPod is a pod to delete whose container has failed, and which the Job would wait for as another container runs; nil for none.
	EndPod *corev1.Pod
	// RequeueAfter is when to reconcile again if nothing changes before; 0 is never.
	RequeueAfter time.Duration
}

// FinalizerChange is what to do about the finalizer of a backup.
type FinalizerChange int

// The changes of the finalizer.
const (
	KeepFinalizer FinalizerChange = iota
	AddFinalizer
	RemoveFinalizer
)

// Transfer is what was observed of a backup or a restore, and the functions of it that differ between the two.
type Transfer interface {
	// Common returns what the engine observed.
	Common() Observation
	// Plan returns what to do. rejection is why the API server just rejected a write of the plan before, or nil.
	Plan(rejection error) Plan
	// Blocker returns what keeps the transfer from starting, or nil.
	Blocker() *Blocker
	// Summary says what the Job will do, once nothing blocks it.
	Summary() string
	// NewJob returns the Job that copies.
	NewJob() *batchv1.Job
	// Store that the Job reads or writes.
	Store() v1beta1.SnapshotStore
	// Record returns a status with the outcome of a Job, and a summary. A failure fails a transfer whose Job succeeded.
	Record(s Status, outcome *snapshotwire.Outcome) (recorded Status, summary, failure string)
}

// Blocker is what keeps a transfer from starting.
type Blocker struct {
	Reason, Message string
	// Transient is true when the transfer waits for it to pass, up to its deadline.
	Transient bool
	// Missing is true when it is transient, and an object that the transfer names doesn't exist. The transfer waits for it as
	// long as a pod waits for a claim or a Secret.
	Missing bool
}

// Reject returns a blocker that fails the transfer.
func Reject(reason, format string, args ...any) *Blocker {
	return &Blocker{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// WaitFor returns a blocker that the transfer waits for.
func WaitFor(reason, format string, args ...any) *Blocker {
	return &Blocker{Reason: reason, Message: fmt.Sprintf(format, args...), Transient: true}
}

// WaitForMissing returns a blocker of an object that doesn't exist: no tool that applies several objects has to know their order.
func WaitForMissing(reason, format string, args ...any) *Blocker {
	b := WaitFor(reason, format, args...)
	b.Missing = true
	return b
}

// Unreachable returns the blocker of a Memcached whose status doesn't list the servers of all shards in their order, or that doesn't
// control the Service of one of these shards, so that its name can lead to the server of another owner; else nil. None named is all.
func (obs Observation) Unreachable(shards ...int32) *Blocker {
	m := obs.Memcached
	if !resources.HasServers(m, resources.Listed(m)) {
		return WaitFor(v1beta1.ReasonShardsStarting, "status.servers of Memcached %s doesn't list all of its shards yet", m.Name)
	}
	for ordinal := range m.Status.Servers {
		name := resources.ShardName(m.Name, ordinal)
		controls := func(s corev1.Service) bool { return s.Name == name && metav1.IsControlledBy(&s, m) }
		if (len(shards) == 0 || slices.Contains(shards, int32(ordinal))) && !slices.ContainsFunc(obs.Services, controls) { //nolint:gosec // at most 128 by the CRD
			blocker := WaitFor(v1beta1.ReasonShardsStarting, "Memcached %s doesn't manage a Service %s", m.Name, name)
			if m.DeletionTimestamp == nil { // otherwise it gets none
				blocker.Message += " yet. Delete another one of that name, and if the Memcached is paused, set spec.paused to false"
			}
			return blocker
		}
	}
	return nil
}

// NotAllowed returns the blocker of a Job that would use a Secret, a ServiceAccount or another setting of the shards' pods that
// the operator's settings don't allow, else nil. A Job logs in to the shards, whose image its user can choose, with what the Secret of the Memcached contains.
func (obs Observation) NotAllowed(store v1beta1.SnapshotStore) *Blocker {
	restrictions := obs.Options.Restrictions
	if violation := cmp.Or(restrictions.PodViolation(&obs.Memcached.Spec.Pod), restrictions.SecretViolation(obs.Memcached)); violation != "" {
		return WaitFor(v1beta1.ReasonNotAllowed, "Memcached %s: %s", obs.Memcached.Name, violation)
	}
	if violation := obs.Options.Restrictions.StoreViolation(store); violation != "" {
		return WaitFor(v1beta1.ReasonNotAllowed, "%s", violation)
	}
	return nil
}

// MakePlan returns what to do about a transfer that isn't being deleted.
func MakePlan(t Transfer, rejection error) Plan {
	obs := t.Common()
	was, summary := obs.LastStatus(), ""
	var p Plan
	switch {
	case was.IsFinished():
		return Plan{Status: was, Actions: obs.cleanup(was.CompletionTime)}
	case was.Phase == v1beta1.TransferRunning:
		p, summary = planRunning(t, was, rejection)
	default:
		p = planStart(t, was)
	}
	reason := transferOf(obs.Object).reasons[p.Status.Phase]
	switch {
	case p.Status.Phase == was.Phase:
	case p.Status.Phase == v1beta1.TransferRunning:
		p.Events = []event.Event{event.Normal(reason, "%s", p.Status.Message())}
	case p.Status.Phase == v1beta1.TransferComplete:
		p.Events = []event.Event{event.Normal(reason, "%s", summary)}
	case p.Status.Phase == v1beta1.TransferFailed:
		p.Events = []event.Event{event.Warning(reason, "%s: %s", p.Status.Reason(), p.Status.Message())}
	}
	return p
}

// planStart plans a transfer that isn't Running yet.
func planStart(t Transfer, s Status) Plan {
	obs := t.Common()
	if blocker := t.Blocker(); blocker != nil {
		return planBlocked(obs, s, blocker)
	}
	s.TransferStatus = begin(s.TransferStatus, obs, t.Summary())
	return Plan{Status: s}
}

// planBlocked lets a transfer without a Job wait for what blocks it until its deadline, or fails it. One that waits is not Running, since
// updates, and other restores, wait for those that are.
func planBlocked(obs Observation, s Status, blocker *Blocker) Plan {
	deadline := v1beta1.Seconds(transferOf(obs.Object).deadlineSeconds, v1beta1.DefaultTransferDeadlineSeconds)
	if blocker.Missing {
		deadline = min(deadline, StuckTimeout)
	}
	left := obs.Object.GetCreationTimestamp().Add(deadline).Sub(obs.Now)
	switch {
	case !blocker.Transient, blocker.Missing && left <= 0:
		s.TransferStatus = finish(s.TransferStatus, obs, v1beta1.TransferFailed, blocker.Reason, blocker.Message)
	case left <= 0:
		s.TransferStatus = finish(s.TransferStatus, obs, v1beta1.TransferFailed, v1beta1.ReasonDeadlineExceeded, "it could not start within its deadline: "+blocker.Message)
	default:
		s.JobName, s.StartTime = "", nil
		s.TransferStatus = withPhase(s.TransferStatus, obs, v1beta1.TransferPending, blocker.Reason, blocker.Message)
		return Plan{Status: s, Actions: Actions{RequeueAfter: left}}
	}
	return Plan{Status: s}
}

// planRunning plans a transfer that is Running. It returns a summary of what the Job did.
func planRunning(t Transfer, s Status, rejection error) (p Plan, summary string) {
	obs := t.Common()
	object, state := transferOf(obs.Object), Evaluate(obs.Job, t.Store())
	s.TransferStatus = next(s.TransferStatus, obs, state)
	if state.Outcome != nil {
		var failure string
		if s, summary, failure = t.Record(s, state.Outcome); failure != "" {
			s.TransferStatus = finish(s.TransferStatus, obs, v1beta1.TransferFailed, v1beta1.ReasonJobFailed, failure)
		}
	}
	switch {
	case s.IsFinished():
		return Plan{Status: s, Actions: Actions{Job: obs.Job.stop()}}, summary
	case state.Stage != Absent && !object.status.IsActive(obs.Now, object.deadlineSeconds): // such as on a node that doesn't respond
		s.TransferStatus = finish(s.TransferStatus, obs, v1beta1.TransferFailed, v1beta1.ReasonDeadlineExceeded,
			fmt.Sprintf("Job %s did not stop after its deadline. Check the node of its pod, and create another %s", s.JobName, object.kind))
		return Plan{Status: s}, summary
	case state.Stage == Absent: // a Job that was observed before would have failed the transfer
		return planJob(t, s, rejection), summary
	default:
		return Plan{Status: s, Actions: Actions{Job: actionFor(s.TransferStatus, obs.Job, state), EndPod: state.EndPod, RequeueAfter: progressPoll}}, summary
	}
}

// planJob plans the Job of a transfer that is Running, unless something blocks it by now: the operator may have been away
// since the transfer started.
func planJob(t Transfer, s Status, rejection error) Plan {
	obs, blocker := t.Common(), t.Blocker()
	switch {
	case apiserver.IsTerminating(rejection):
		return Plan{Status: s}
	case rejection != nil:
		s.TransferStatus = withPhase(s.TransferStatus, obs, v1beta1.TransferRunning, v1beta1.ReasonJobCannotStart, rejection.Error())
		return Plan{Status: s, Actions: Actions{RequeueAfter: apiserver.RejectionRecheck}}
	case blocker != nil:
		return planBlocked(obs, s, blocker)
	}
	return Plan{Status: s, Actions: Actions{Create: t.NewJob(), RequeueAfter: progressPoll}}
}
