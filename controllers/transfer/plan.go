package transfer

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers/apiserver"
	"github.com/memcached-operator/memcached-operator/controllers/event"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	snapshotwire "github.com/memcached-operator/memcached-operator/internal/snapshot/wire"
)

const (
	// progressPoll is how often the progress of a Job is read.
	progressPoll = 5 * time.Second
)

// Plan is what a reconcile writes, in this order.
type Plan struct {
	// Object with the finalizers and the status that it should have.
	Object client.Object
	// Events to record when Object is written.
	Events []event.Event
	// Create builds the objects to create, the Job last; nil when there are none.
	Create func() ([]client.Object, error)
	// Job is what to do about the Job that exists.
	Job Action
	// RequeueAfter is when to reconcile again if nothing changes before; 0 is never.
	RequeueAfter time.Duration
}

// Transfer is what differs between backups and restores.
type Transfer interface {
	// Common returns what the engine observed.
	Common() Observation
	// Blocker returns what keeps the transfer from starting, or nil.
	Blocker() *Blocker
	// Summary says what the Job will do, once nothing blocks it.
	Summary() string
	// Objects returns what the Job needs and doesn't exist yet, and then the Job.
	Objects() ([]client.Object, error)
	// Store that the Job reads or writes.
	Store() v1alpha1.SnapshotStore
	// Record writes the outcome of a Job into the status of the object, and returns a
	// summary. A failure fails a transfer whose Job succeeded.
	Record(client.Object, *snapshotwire.Outcome) (summary, failure string)
}

// Blocker is what keeps a transfer from starting.
type Blocker struct {
	Reason, Message string
	// Transient is true when the transfer waits for it to pass, up to its deadline.
	Transient bool
	// Withdraws is true when a transfer that is Running, but has no Job, becomes Pending again,
	// so that what blocks it doesn't wait for it in turn.
	Withdraws bool
}

// Reject returns a blocker that fails the transfer.
func Reject(reason, format string, args ...any) *Blocker {
	return &Blocker{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// WaitFor returns a blocker that the transfer waits for.
func WaitFor(reason, format string, args ...any) *Blocker {
	return &Blocker{Reason: reason, Message: fmt.Sprintf(format, args...), Transient: true}
}

// WithdrawFor returns a blocker that the transfer waits for without being Running.
func WithdrawFor(reason, format string, args ...any) *Blocker {
	b := WaitFor(reason, format, args...)
	b.Withdraws = true
	return b
}

// MemcachedNotReady returns the blocker of a Memcached whose status doesn't name the
// servers of all shards, in their order; else nil.
func MemcachedNotReady(m *v1alpha1.Memcached) *Blocker {
	if HasServers(m) {
		return nil
	}
	return WaitFor(v1alpha1.ReasonShardsStarting, "waiting until status.servers of Memcached %s lists all of its shards", m.Name)
}

// HasServers reports whether the status lists a server for each shard, in their order.
func HasServers(m *v1alpha1.Memcached) bool {
	if m.Spec.Size == nil || len(m.Status.Servers) != int(*m.Spec.Size) {
		return false
	}
	for ordinal, server := range m.Status.Servers {
		if !strings.HasPrefix(server, resources.ShardName(m.Name, ordinal)+".") {
			return false
		}
	}
	return true
}

// NotAllowed returns the blocker of a Job that would use a Secret or a ServiceAccount that the operator's settings don't allow,
// else nil. A Job logs in to the shards, whose image its user can choose, with what the Secret of the Memcached contains.
func (obs Observation) NotAllowed(store v1alpha1.SnapshotStore) *Blocker {
	if violation := obs.Options.Restrictions.SecretViolation(obs.Memcached); violation != "" {
		return WaitFor(v1alpha1.ReasonNotAllowed, "Memcached %s: %s", obs.Memcached.Name, violation)
	}
	if violation := obs.Options.Restrictions.StoreViolation(store); violation != "" {
		return WaitFor(v1alpha1.ReasonNotAllowed, "%s", violation)
	}
	return nil
}

// Plan returns a plan that changes nothing.
func (obs Observation) Plan() Plan { return Plan{Object: obs.Object.DeepCopyObject().(client.Object)} }

// Status returns the status that the plan writes.
func (p *Plan) Status() *v1alpha1.TransferStatus { return transferOf(p.Object).status }

// MakePlan returns the next writes of a transfer.
func MakePlan(t Transfer) Plan {
	obs := t.Common()
	p := obs.Plan()
	s := p.Status()
	phase := s.Phase
	summary := ""
	switch {
	case s.IsFinished():
		p.Job = obs.Job.Cleanup()
	case phase == v1alpha1.TransferRunning:
		summary = p.run(t)
	default:
		if blocker := t.Blocker(); blocker != nil {
			p.block(obs, blocker, obs.Object.GetCreationTimestamp().Time, v1alpha1.TransferPending)
		} else {
			*s = begin(*s, obs, t.Summary())
		}
	}
	if s.Phase == phase {
		return p
	}
	reasons := transferOf(p.Object).reasons
	switch s.Phase {
	case v1alpha1.TransferRunning:
		p.Events = []event.Event{event.Normal(reasons[s.Phase], "%s", s.Message)}
	case v1alpha1.TransferComplete:
		p.Events = []event.Event{event.Normal(reasons[s.Phase], "%s", summary)}
	case v1alpha1.TransferFailed:
		p.Events = []event.Event{event.Warning(reasons[s.Phase], "%s: %s", s.Reason, s.Message)}
	}
	return p
}

// block makes a transfer wait for what blocks it, or fails it.
func (p *Plan) block(obs Observation, blocker *Blocker, since time.Time, phase v1alpha1.TransferPhase) {
	s := p.Status()
	deadline := v1alpha1.Seconds(transferOf(p.Object).deadlineSeconds, v1alpha1.DefaultTransferDeadlineSeconds)
	left := since.Add(deadline).Sub(obs.Now)
	switch {
	case !blocker.Transient:
		*s = finish(*s, obs, v1alpha1.TransferFailed, blocker.Reason, blocker.Message)
	case left <= 0:
		*s = finish(*s, obs, v1alpha1.TransferFailed, v1alpha1.ReasonDeadlineExceeded, "it could not start within its deadline: "+blocker.Message)
	default:
		*s = withPhase(*s, obs, phase, blocker.Reason, blocker.Message)
		p.RequeueAfter = left
	}
}

// run plans the next writes of a transfer that has started. It returns a summary of what the Job did.
func (p *Plan) run(t Transfer) (summary string) {
	obs, s := t.Common(), p.Status()
	state := Evaluate(obs.Job, t.Store())
	*s = next(*s, obs, state)
	if state.Outcome != nil {
		var failure string
		if summary, failure = t.Record(p.Object, state.Outcome); failure != "" {
			*s = finish(*s, obs, v1alpha1.TransferFailed, v1alpha1.ReasonJobFailed, failure)
		}
	}
	if s.IsFinished() {
		return summary
	}
	p.RequeueAfter = progressPoll
	if p.Job = actionFor(*s, obs.Job, state); p.Job != CreateJob {
		return summary
	}
	blocker := t.Blocker() // the operator may have been away since the transfer started
	switch {
	case apiserver.IsTerminating(obs.Rejection):
		p.RequeueAfter = 0
	case obs.Rejection != nil:
		*s = withPhase(*s, obs, v1alpha1.TransferRunning, v1alpha1.ReasonJobCannotStart, obs.Rejection.Error())
		p.RequeueAfter = apiserver.RejectionRecheck
	case blocker != nil && blocker.Withdraws:
		s.JobName, s.StartTime = "", nil
		p.block(obs, blocker, obs.Object.GetCreationTimestamp().Time, v1alpha1.TransferPending)
	case blocker != nil:
		p.block(obs, blocker, ptr.Deref(s.StartTime, metav1.Time{}).Time, v1alpha1.TransferRunning)
	default:
		p.Create = t.Objects
	}
	return summary
}
