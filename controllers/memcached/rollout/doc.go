// Package rollout decides how a change of the spec rolls out to the running shards: which one
// step to take next, for which shard, or which gate blocks it.
//
// Next is a pure function of the observed state and keeps nothing between calls. The caller
// takes the step, observes again, and calls Next again, so a crash between any two steps changes
// nothing. A rollback is only another target.
//
// Three revisions say where a shard stands:
//
//	target    what its pod has to become (Shard.Target): the spec's revision, and what is requested
//	          of this shard alone, which is to move to another node, or to restart for a certificate
//	template  its ReplicaSet's: the revision of the next pod (Shard.Template)
//	pod       the one that was last applied to the pod (Pod.Revision)
//
//	pod = template = target   up to date
//	pod = template ≠ target   outdated. A pod that is lost comes back with the old revision
//	pod = target ≠ template   updated in place and not verified yet. On success the template is
//	                          promoted to the pod's revision, on failure the pod is rolled back
//	                          to the template's
//	template = target ≠ pod   being replaced. A second pod is created, and the first one is
//	                          deleted once the second serves
//	three different ones      the spec changed in between. Once the pod is stable, the template
//	                          is promoted to its revision
//
// The last two also arise when the pod was updated in place. It is then rolled back in place,
// and no second pod is created.
//
// A change is applied to a shard by one of four methods:
//
//	Live      labels, annotations               nothing restarts
//	Restart   memcached's arguments             memcached restarts with its items
//	Recreate  the image                         its container restarts with its items
//	Replace   what items can't be kept across   a new pod starts, empty or with a handover
//
// A second pod that can receive the items of the first one runs and doesn't serve. It is requested to
// receive them then (StepHandOver), and the first one keeps serving until the second does. Another
// second pod serves at once. The first one is deleted then (StepDrain), even while paused: clients
// may reach both pods, which have different items.
//
// Rules:
//   - The operator makes at most one shard unavailable at a time. It changes no shard while
//     another one is unavailable or in transition.
//   - An image passes a preflight check on every node that needs it before a shard is changed.
//   - No shard starts empty unannounced, nor while a restore writes into the shards. A restore
//     doesn't start while a shard is being replaced.
//   - A shard on which the update fails is rolled back, and the others are not changed.
package rollout
