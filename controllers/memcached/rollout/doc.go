// Package rollout decides how a change of the spec reaches the shards that run:
// which one step to take next, for which shard, or what holds it back.
//
// Next is a pure function of what is seen and keeps nothing between calls. Whoever
// calls it takes the step, looks again, and calls it again; a crash between any two
// steps changes nothing. Rolling back is only another target.
//
// Three revisions tell where a shard stands:
//
//	target    what the spec asks for now
//	template  what the shard's ReplicaSet would make its next pod of
//	pod       what the pod was last asked to be
//
//	pod = template = target   done
//	pod = template ≠ target   to be changed; a pod that is lost now comes back as it was
//	pod = target ≠ template   changed in place and not yet verified. Verified, the template
//	                          follows the pod; failed, the pod goes back to the template
//	template = target ≠ pod   being replaced: a second pod is made, and the first goes
//	                          when that one serves
//	three different ones      the target changed on the way: the template follows the pod
//	                          once that has settled
//
// Of the last two a pod that was changed in place is another case than one that is
// replaced: the way back is in place too, and no second pod is to come.
//
// A change reaches a shard in one of four classes:
//
//	Live      labels, annotations                 nothing restarts
//	Restart   memcached's arguments               memcached restarts, with its items
//	Recreate  the image                           its container restarts, with its items
//	Replace   what memcached cannot take along    another pod, which starts empty
//
// Between the moment at which a second pod serves and the one at which the first
// goes (StepRetire) is the place for the hand-over of its items.
//
// Rules: at most one shard is out by our doing; no shard is touched while another
// is out or unsettled; an image is proven on every node that needs it before any
// shard is touched; nothing starts empty that was not told of before; a failed shard
// is taken back and the others are left alone.
package rollout
