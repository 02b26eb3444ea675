// Package memcached applies the specs of Memcacheds.
//
// A reconcile has four phases, each in the file of its name:
//
//	observe   all reads: objects from the cache, missing names from the API server, agents
//	          of shards that have started or are being updated        → observation
//	plan      pure functions of the observation                        → plan with its Actions
//	apply     all writes, in the order of the Actions                  → result
//	status    pure: observation, plan, result → status; one write, and the events after it
//
// The types enforce it: only observer has a reader, only writer and statusWriter have a
// writer, and no planner has a receiver. The planners, in the order in which makePlan calls
// them:
//
//	finalbackup     the finalizer, and the backup before a Memcached is deleted
//	bootstrap       fills a new Memcached before its shards become ready
//	refill          fills a shard that was lost
//	preflight       checks an image on the nodes before any shard is updated
//	plan_rollout    what package rollout decides by: the next step for one shard, or a gate
//	plan_step       the step as writes, and as desired states of the shards
//	discovery       the list of shards that clients with auto discovery read
//	binding         the Secret that workloads are bound to
//	plan_resources  the objects that are missing or not up to date; scaling in
//
// A reconcile of a large Memcached looks up and writes a part of its objects (batch), and the
// next one follows behind those of other Memcacheds. Stopping after any write is what a kill
// does, too.
//
// Package shard determines a shard's state from what was observed of it, and package
// resources builds the desired objects. Backups and restores are the work of other
// controllers; this one creates their objects and waits.
//
// The operator decides only by what is stored in the API server, so it may be killed between
// any two writes. What it keeps in memory saves work (applycache, statusdebounce).
//
// Rules: a failed read from the API ends the reconcile without a write to the status; an
// agent that doesn't answer is an observation, not an error; the operator neither writes nor
// deletes objects of other owners; when nothing has changed, it writes nothing.
package memcached
