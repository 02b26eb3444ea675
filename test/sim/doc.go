// Package sim runs the production reconciler of Memcacheds in the simulated cluster of internal/simtest, where everything
// that can fail does: one goroutine, one clock that is set by hand, and one seed that decides what happens next.
//
//	cache       the operator's informers: each kind as it was some time ago
//	client      the operator's client: it reads from the cache and writes to the API
//	            server, which may reject a write, or apply it and lose the answer
//	operator    the process: the reconciler and its queue; killed and started again
//	user        a user who edits specs, also in ways that the CRD's schema rejects, and who
//	            changes and deletes what the operator manages
//	faults      faults of pods and nodes
//	watch       the invariants, checked after every write and every step
//	end         the final state, to be compared with that of another path
//	scenarios   what users do, and the bugs that the seeds found
//
// The invariants at any time:
//
//   - The operator makes at most one shard unavailable.
//   - It neither writes nor deletes an object that it doesn't manage.
//   - It doesn't change what the user wrote of a Memcached.
//   - It causes no loss of items that a status hasn't announced.
//   - It deletes no pod that is ready before another pod of its shard is.
//   - No container is stopped for an update without its agent knowing that the pod stays.
//   - Available=True means that each shard's Service selects a ready pod.
//
// And once the faults end: within restWithin seconds everything matches the spec, or is blocked
// for a reason that has a name, and then nothing is written for restFor seconds.
//
// A seed that violates an invariant prints its last lines and the command that prints its
// complete story. A bug that a seed found becomes a scenario in scenarios.go.
package sim
