package rollout

import "time"

// Method is how a change is applied to a shard.
type Method int

// The methods, from the least to the most disruptive one.
const (
	None Method = iota
	Live
	Restart
	Recreate
	Replace
)

func (m Method) String() string {
	return [...]string{"", "Live", "Restart", "Recreate", "Replace"}[m]
}

// State is whether a pod serves.
type State int

// The states. A Broken pod doesn't run memcached and will not serve by itself. A Receiving one runs
// it without clients, and will serve when it has the items of the pod before it, which it receives
// as soon as that is requested, or that one is being deleted.
const (
	Absent State = iota
	Starting
	Serving
	Broken
	Receiving
)

func (s State) String() string {
	return [...]string{"absent", "starting", "serving", "broken", "receiving"}[s]
}

// Outcome is the result of a pod's last update.
type Outcome int

// The outcomes. A pod that was never updated is Verified once its start is known.
const (
	Pending Outcome = iota
	Verified
	// Cold pods serve the update and lost their items.
	Cold
	// Mismatched pods serve something other than the update.
	Mismatched
)

func (o Outcome) String() string {
	return [...]string{"pending", "verified", "cold", "mismatched"}[o]
}

// Progress is how far a preparation of an update is.
type Progress int

// The progress of a preparation. A Refused one can't be done.
const (
	NotNeeded Progress = iota
	Needed
	Underway
	Done
	Refused
)

func (p Progress) String() string {
	return [...]string{"not needed", "needed", "underway", "done", "refused"}[p]
}

// Pod is one pod of a shard.
type Pod struct {
	// Revision that was last applied to it.
	Revision string
	State    State
	// Terminating pods may still serve.
	Terminating bool
	// Outcome of the last update, with a Reason if it is Cold or Mismatched. The pod has a
	// Reason, too, when it is Broken.
	Outcome Outcome
	Reason  string
	// InPlace is whether the pod was updated in place from the template's revision. It is then
	// rolled back in place, too.
	InPlace bool
}

// Change is what it takes to bring a shard's pod to another revision.
type Change struct {
	Method Method
	// Description of what changes, such as "1.6.38 → 1.6.45".
	Description string
	// Forbidden is why the spec doesn't allow the change, and what to do; empty when it does.
	Forbidden string
	// Resize of the pod's resources in place, with the kubelet's message.
	Resize       Progress
	ResizeReason string
	// StopAcknowledged is whether the agent knows that the next stop terminates the container
	// and not the pod.
	StopAcknowledged bool
	// HandsOver is whether a replacement receives the items of the pod, unless that fails.
	HandsOver bool
	// KeepsItems is whether the update fails if the replacement starts without the items of the pod.
	KeepsItems bool
	// SecretError is why the shard can't use a Secret that the change requires; empty if it can, or if
	// the change requires none.
	SecretError string
	// ReplacementAnnounced is whether the status says that the shard will be replaced, or is.
	ReplacementAnnounced bool
}

// Shard is the observed state of one shard.
type Shard struct {
	Name string
	// Target is the revision that the pod has to become, and Template that from which the ReplicaSet creates the
	// next pod.
	Target, Template string
	// Pod that runs the shard; of two, the one that will be deleted.
	Pod Pod
	// Next is the pod that is to take over; nil while there is none.
	Next *Pod
	// HandsOver is whether Next was requested to take over the items of Pod, which isn't deleted until it has.
	HandsOver bool
	// PredecessorTerminating is whether a former or surplus pod of the shard still terminates.
	PredecessorTerminating bool
	// Failed is why the update failed on this shard; empty when it didn't.
	Failed string
	// ToTarget is what it takes to bring the pod to the target, Rollback to the template.
	ToTarget, Rollback Change
	// Leaves is whether the pod's node is about to go: nothing delays the replacement of the pod that can be avoided.
	Leaves bool
	// Unlisted is whether no client knows the shard yet. It delays no update of another one.
	Unlisted bool
	// StopAnnounced is whether a stop is announced to the agent and hasn't happened.
	StopAnnounced bool
	// AgentRetry is the least time after which the pod's agent, which doesn't answer, is queried
	// again.
	AgentRetry time.Duration
	// ResourcesDrifted is whether the pod was resized for a spec that has changed since.
	ResourcesDrifted bool
}

// Recovery is how the hit ratio of the shard that was updated last recovers.
type Recovery struct {
	Shard string
	// Before and Now are hit ratios from 0 to 1, Now of the last Requests.
	Before, Now float64
	Requests    int64
	// Share of Before that Now has to reach over at least MinRequests.
	Share       float64
	MinRequests int64
	// Waited is the time since the update. After Timeout the rollout continues if Continue is
	// set, and otherwise needs intervention.
	Waited, Timeout time.Duration
	Continue        bool
}

// Input is everything that Next decides by.
type Input struct {
	// Shards by ordinal.
	Shards []Shard
	// Preflight check of the target's image on every node where a container will be recreated for it, with a message.
	Preflight       Progress
	PreflightReason string
	// MissingShard is the first one that clients know and that has yet to be created; empty when all exist.
	MissingShard string
	Paused       bool
	// Invalid is why the update strategy can't be followed; empty when it can.
	Invalid string
	// AllowItemLoss continues when a shard loses the items that it should have kept.
	AllowItemLoss bool
	// SinceUpdate is the time since the last update of a shard; negative if there was none.
	// MinPeriod has to pass before the next one.
	SinceUpdate, MinPeriod time.Duration
	// WindowOpensIn is the time until the next maintenance window opens; 0 while one is open, or
	// when there are none.
	WindowOpensIn time.Duration
	// Recovery is nil unless the rollout waits for one.
	Recovery *Recovery
	// Scaling is whether items move to other shards.
	Scaling bool
	// RestoreRunning is the name of a restore that writes into the shards; empty when there is none.
	RestoreRunning string
}
