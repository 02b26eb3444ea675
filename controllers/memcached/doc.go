// Package memcached applies the specs of Memcacheds.
//
// A reconcile has seven phases:
//
//	observe   all reads that a plan needs: objects from the cache, missing names from the API
//	          server, agents of shards that have started or are being updated  → observation.Observation
//	plan      package plan: pure functions of the observation                  → plan.Plan with its Actions
//	rehearse  a patch that leads to another image, as a dry run: admission may change the
//	          image, which requires another plan                               → plan.Plan
//	confirm   before a disruptive plan, reads from the API server that its
//	          spec is the latest, and that no restore writes into a shard      → yes, or a conflict
//	apply     all writes, in the order of the Actions                          → plan.Result
//	report    package status: pure; observation, plan and result               → status; one write, and
//	          the events after it
//	remember  what saves the next reconcile work                               → memory
//
// This package contains what isn't pure: observe, rehearse, confirm, apply, memory, and the controller that
// calls them and the pure packages. Only observer has a reader, and only writer has a writer,
// except for the status.
//
// Package observation has the types of what is read, and decides what to read. Package shard
// determines a shard's state from what was observed of it, package rollout decides the next step
// of an update, package preflight checks an image on the nodes before any shard is updated, and
// package resources builds the desired objects. They are pure, too.
// Backups and restores are the work of other controllers; this one creates their objects and
// waits.
//
// The operator decides only by what is stored in the API server, so it may be killed between
// any two writes. What it keeps in memory only saves work.
//
// Rules: a failed read from the API ends the reconcile without a write to the status; an
// agent that doesn't answer is an observation, not an error; the operator neither writes nor
// deletes objects of other owners; when nothing has changed, it writes nothing.
package memcached
