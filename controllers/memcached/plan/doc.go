// Package plan decides what to do about an observation. Its functions are pure: they have no
// client and no clock.
//
//	plan         Make, which calls the planners, and its result, the Plan
//	actions      the writes that a planner wants
//
// The planners, in the order in which Make calls them:
//
//	finalbackup  the finalizer, and the backup before a Memcached is deleted
//	bootstrap    fills a new Memcached from a snapshot
//	refill       fills a shard that was lost
//	scaling      which items move when the number of shards changes, or are deleted (purge)
//	rollout      the next step for one shard, or a gate: what package rollout decides by
//	step         the step as writes (podpatch), and what is rehearsed before and repeated after it
//	discovery    the list of shards that clients with auto discovery read
//	desired      the shards after the step
//	resources    the objects that are missing or not up to date
//	binding      the Secret that workloads are bound to
//	deletions    the objects that the spec disables, and the shards beyond the size
//	preflight    the pods that have checked images
//	agents       when to query agents again
//
// No planner modifies the result of another one: it takes it as an argument. The methods of
// Scaling fill their own.
package plan
