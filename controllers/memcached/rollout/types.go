package rollout

import "time"

// Class says how a change reaches a shard.
type Class int

// The classes, each more than the one before.
const (
	Nothing Class = iota
	Live
	Restart
	Recreate
	Replace
)

func (c Class) String() string {
	return [...]string{"nothing", "live", "restart", "recreate", "replace"}[c]
}

// State says whether a pod serves.
type State int

// The states. A broken pod will not serve by itself, and no memcached runs in it.
const (
	Absent State = iota
	Starting
	Serving
	Broken
)

func (s State) String() string {
	return [...]string{"absent", "starting", "serving", "broken"}[s]
}

// Outcome says what came of a pod's last change.
type Outcome int

// The outcomes. A pod that was never changed is Settled once it is known how its
// memcached started.
const (
	Pending Outcome = iota
	Settled
	// Cold: it serves what was asked for, and lost its items on the way.
	Cold
	// Wrong: it serves something else than was asked for.
	Wrong
)

func (o Outcome) String() string {
	return [...]string{"pending", "settled", "cold", "wrong"}[o]
}

// Progress is that of a preparation.
type Progress int

// The progress: a preparation that is not needed, is to begin, goes on, is done,
// or cannot be done.
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
	// Revision that it was last asked to be.
	Revision string
	State    State
	// Going: somebody ends it. It may still serve.
	Going bool
	// Outcome of its last change, with a sentence where that is Cold or Wrong or the
	// pod is Broken.
	Outcome Outcome
	Why     string
	// InPlace: it was brought from the template to its revision in place, which is the
	// way back too.
	InPlace bool
}

// Change is what it takes to bring a shard's pod to a revision.
type Change struct {
	Class Class
	// What changes, for a person: "1.6.38 → 1.6.45".
	What string
	// Forbidden says why it must not be done, and what to do; empty when it may.
	Forbidden string
	// Resize of the pod's resources in place, with the kubelet's sentence.
	Resize    Progress
	ResizeWhy string
	// Proof of the image on every node that needs it, with a sentence.
	Proof    Progress
	ProofWhy string
	// Announced: the shard's agent knows that the next stop ends the container and
	// not the pod.
	Announced bool
	// Told: the status says that the shard will start empty.
	Told bool
}

// Shard is what is seen of one shard.
type Shard struct {
	Name     string
	Template string
	// Pod that holds the shard. While there are two, the one that is to go.
	Pod Pod
	// Next is the pod that is to take over; nil while there is none.
	Next *Pod
	// Leaving: a pod that held the shard before still ends, or is one too many.
	Leaving bool
	// Failed says why the target failed on this shard; empty when it did not.
	Failed string
	// Forward is what it takes to bring the pod to the target, Back to its template.
	Forward, Back Change
	// Announcement: a stop stands announced and has not come.
	Announcement bool
	// Astray: the pod was given resources that it is not to have.
	Astray bool
}

// Recovery is how the clients of the shard that was changed last do.
type Recovery struct {
	Shard string
	// Before and Now are hit ratios from 0 to 1, Requests what Now comes of.
	Before, Now float64
	Requests    int64
	// Share of Before that Now has to reach, of MinRequests at least.
	Share       float64
	MinRequests int64
	// Waited since the change, at most Timeout; then Continue or ask for a person.
	Waited, Timeout time.Duration
	Continue        bool
}

// Input is all that Next decides by.
type Input struct {
	Target string
	// Shards by ordinal.
	Shards []Shard
	// Unmade is the first shard that is asked for and not there yet; empty when all are.
	Unmade string
	Paused bool
	// Invalid says why the spec cannot be brought about; empty when it can.
	Invalid string
	// AcceptCold: go on when a shard comes back without its items.
	AcceptCold bool
	// SinceLast is the time since a shard was last changed, and MinBetween the least
	// until the next is. Never changed is negative.
	SinceLast, MinBetween time.Duration
	// OpensIn is the time until the next maintenance window opens; 0 in one, or when
	// there are none.
	OpensIn time.Duration
	// Recovery is nil unless it is waited for.
	Recovery *Recovery
}

// Step is what to do.
type Step string

// The steps.
const (
	// StepNone: nothing is to be done, or a gate holds.
	StepNone Step = ""
	// StepAwait: nothing but to wait for a shard that is being changed.
	StepAwait Step = "Await"
	// StepProve has the image proven on the nodes.
	StepProve Step = "Prove"
	// StepResize gives the pod its resources.
	StepResize Step = "Resize"
	// StepAnnounce tells the shard's agent of the stop to come.
	StepAnnounce Step = "Announce"
	// StepWithdraw takes back what was begun for a spec that is no more: an announcement,
	// or resources.
	StepWithdraw Step = "Withdraw"
	// StepChange changes the pod in place.
	StepChange Step = "Change"
	// StepConfirm has the template follow the pod.
	StepConfirm Step = "Confirm"
	// StepNote notes on the shard that the target failed.
	StepNote Step = "Note"
	// StepSurge has the template follow the target and a second pod made of it.
	StepSurge Step = "Surge"
	// StepRetire ends the first pod of two.
	StepRetire Step = "Retire"
	// StepRemake has the template follow the target and a broken pod ended.
	StepRemake Step = "Remake"
)

// Decision is one step for one shard, or the gate that holds it.
type Decision struct {
	// Shard that is concerned; empty when all is as it should be.
	Shard string
	Step  Step
	// Back: the step leads to the template, not to the target.
	Back bool
	// Gate that holds, one of Gates.
	Gate string
	// Change that is on its way.
	Change Change
	// Message for a person.
	Message string
	// NeedsPerson: it does not go on by itself.
	NeedsPerson bool
	// After is when to look again where nothing else will tell; 0 is never.
	After time.Duration
}

// Done says whether every shard is as it should be.
func (d Decision) Done() bool { return d.Shard == "" }
