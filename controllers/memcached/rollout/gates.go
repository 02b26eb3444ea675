package rollout

import "fmt"

// Gate names what blocks the update of a shard.
type Gate string

// The gates, in the order of evaluation.
const (
	GatePaused                   Gate = "Paused"
	GateUpdateStrategyInvalid    Gate = "UpdateStrategyInvalid"
	GateUpdateFailed             Gate = "UpdateFailed"
	GateUpdatePathNotAllowed     Gate = "UpdatePathNotAllowed"
	GateImageNotVerified         Gate = "ImageNotVerified"
	GateSecretInvalid            Gate = "SecretInvalid"
	GateScaling                  Gate = "Scaling"
	GateShardInTransition        Gate = "ShardInTransition"
	GateShardUnavailable         Gate = "ShardUnavailable"
	GateMinPeriodNotElapsed      Gate = "MinPeriodNotElapsed"
	GateOutsideMaintenanceWindow Gate = "OutsideMaintenanceWindow"
	GateHitRatioNotRecovered     Gate = "HitRatioNotRecovered"
	GateRestoreRunning           Gate = "RestoreRunning"
	GateEmptyStartNotAnnounced   Gate = "EmptyStartNotAnnounced"
)

// A gate reports whether it blocks the update of a shard, and decides how. Each is named for
// what it finds wrong.
type gate func(Input, Shard) (d Decision, blocked bool)

// gates block a shard whose update hasn't started, in the order of evaluation. Before them come
// paused and an invalid strategy, which block every step, and updateFailed.
var gates = []gate{
	pathForbidden,            // the update isn't allowed by the spec
	imageUnverified,          // the image hasn't passed its preflight checks
	secretInvalid,            // the shard can't use a Secret
	scaling,                  // items move to other shards
	shardInTransition,        // a shard is starting, moving, or yet to report its start
	shardUnavailable,         // a shard is missing or doesn't serve
	minPeriodNotElapsed,      // the previous shard was updated too recently
	outsideMaintenanceWindow, // no maintenance window is open
	hitRatioNotRecovered,     // clients of the previous shard still miss too much
	restoreRunning,           // a restore writes items that a new pod would not have
	emptyStartUnannounced,    // the status doesn't say yet that the shard will be replaced
}

func updateFailed(in Input) (Decision, bool) {
	for _, s := range in.Shards {
		if s.Failed != "" {
			return needIntervention(blockedBy(s, GateUpdateFailed, s.Failed)), true
		}
	}
	return Decision{}, false
}

func pathForbidden(_ Input, s Shard) (Decision, bool) {
	reason := s.ToTarget.Forbidden
	return needIntervention(blockedBy(s, GateUpdatePathNotAllowed, reason)), reason != ""
}

func imageUnverified(in Input, s Shard) (Decision, bool) {
	d := blockedBy(s, GateImageNotVerified, in.PreflightReason)
	switch in.Preflight {
	case Needed:
		d.Step = StepPreflight
	case Refused:
		d = needIntervention(d)
	case NotNeeded, Done:
		return Decision{}, false
	case Underway:
	}
	return d, s.ToTarget.Method == Recreate
}

func secretInvalid(_ Input, s Shard) (Decision, bool) {
	reason := s.ToTarget.SecretError
	return requeueAfter(blockedBy(s, GateSecretInvalid, reason), progressPoll), reason != ""
}

func scaling(in Input, s Shard) (Decision, bool) {
	return blockedBy(s, GateScaling, "waiting until the number of shards has changed"), in.Scaling && !s.Leaves
}

func shardInTransition(in Input, s Shard) (Decision, bool) {
	for _, other := range in.Shards {
		if state := transitionOf(other); state != "" && delays(other, s) {
			return blockedBy(s, GateShardInTransition, fmt.Sprintf("waiting for shard %s, which %s", other.Name, state)), true
		}
	}
	return Decision{}, false
}

// delays reports whether a shard that doesn't serve delays the update of s.
func delays(other, s Shard) bool { return !other.Unlisted || other.Name == s.Name }

// transitionOf describes what a shard has to finish first; empty when nothing.
func transitionOf(s Shard) string {
	switch {
	case s.Pod.State == Starting && s.Pod.Reason != "":
		return "isn't ready: " + s.Pod.Reason
	case s.Pod.State == Starting:
		return "is starting"
	case s.Pod.Terminating:
		return "is moving to another pod"
	case s.PredecessorTerminating:
		return "has a former pod that is still terminating"
	case s.Pod.State == Serving && s.Pod.Outcome == Pending:
		return "hasn't reported whether it started warm or cold"
	}
	return ""
}

func shardUnavailable(in Input, s Shard) (Decision, bool) {
	if in.MissingShard != "" {
		return blockedBy(s, GateShardUnavailable, fmt.Sprintf("waiting until shard %s is created", in.MissingShard)), true
	}
	for _, other := range in.Shards {
		if other.Pod.State != Serving && delays(other, s) {
			return blockedBy(s, GateShardUnavailable,
				fmt.Sprintf("waiting for shard %s; at most one shard may be unavailable at a time", other.Name)), true
		}
	}
	return Decision{}, false
}

func minPeriodNotElapsed(in Input, s Shard) (Decision, bool) {
	left := in.MinPeriod - in.SinceUpdate
	if in.SinceUpdate < 0 || left <= 0 || s.Leaves {
		return Decision{}, false
	}
	d := blockedBy(s, GateMinPeriodNotElapsed,
		fmt.Sprintf("waiting until %s have passed since the update of the previous shard", in.MinPeriod))
	return requeueAfter(d, left), true
}

func outsideMaintenanceWindow(in Input, s Shard) (Decision, bool) {
	d := blockedBy(s, GateOutsideMaintenanceWindow, "waiting for the next maintenance window")
	return requeueAfter(d, in.WindowOpensIn), in.WindowOpensIn > 0 && !s.Leaves
}

func hitRatioNotRecovered(in Input, s Shard) (Decision, bool) {
	r := in.Recovery
	if r == nil || s.Leaves || r.Requests >= r.MinRequests && r.Now >= r.Share*r.Before {
		return Decision{}, false
	}
	goal := fmt.Sprintf("recover to %.0f%% of its previous value (%.1f%%), in a minute with at least %d lookups", 100*r.Share, 100*r.Before, r.MinRequests)
	d := blockedBy(s, GateHitRatioNotRecovered, fmt.Sprintf("waiting for shard %s's hit ratio to %s", r.Shard, goal))
	if r.Waited >= r.Timeout {
		d = needIntervention(withMessage(d, fmt.Sprintf("within %s, shard %s's hit ratio didn't %s", r.Timeout, r.Shard, goal)))
	}
	return requeueAfter(d, progressPoll), !d.NeedsIntervention || !r.Continue
}

func restoreRunning(in Input, s Shard) (Decision, bool) {
	d := blockedBy(s, GateRestoreRunning, fmt.Sprintf("waiting until MemcachedRestore %s has finished", in.RestoreRunning))
	return d, s.ToTarget.Method == Replace && in.RestoreRunning != ""
}

func emptyStartUnannounced(_ Input, s Shard) (Decision, bool) {
	d := blockedBy(s, GateEmptyStartNotAnnounced, "the shard will be replaced")
	return d, s.ToTarget.Method == Replace && !s.ToTarget.ReplacementAnnounced
}
