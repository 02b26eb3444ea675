// Package memcached applies the specs of Memcacheds.
//
// A reconcile has four phases:
//
//	observe   all reads: objects from the cache, missing names from the API server, agents
//	          of shards that have started or are being updated        → plan.Observation
//	plan      package plan: pure functions of the observation         → plan.Plan with its Actions
//	apply     all writes, in the order of the Actions                 → plan.Result
//	status    package status: pure; observation, plan and result      → status; one write, and
//	          the events after it
//
// This package contains what isn't pure: observe, apply, and the controller that calls them and
// the two packages. Only observer has a reader, and only writer and statusWriter have a writer.
//
// Package shard determines a shard's state from what was observed of it, package rollout
// decides the next step of an update, package preflight checks an image on the nodes before any
// shard is updated, and package resources builds the desired objects. They are pure, too.
// Backups and restores are the work of other controllers; this one creates their objects and
// waits.
//
// The operator decides only by what is stored in the API server, so it may be killed between
// any two writes. What it keeps in memory saves work (applycache).
//
// Rules: a failed read from the API ends the reconcile without a write to the status; an
// agent that doesn't answer is an observation, not an error; the operator neither writes nor
// deletes objects of other owners; when nothing has changed, it writes nothing.
package memcached
