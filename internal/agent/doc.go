// Package agent is PID 1 of a memcached container. It runs memcached as its child
// with a restartable cache in a memory volume, so that no planned stop loses items.
//
// # Rules
//
// Every planned stop saves the items. The agent sends SIGUSR1 and nothing after
// it, because a SIGTERM cancels the save. It kills a memcached that does not exit
// within saveTimeout, and logs that the items are lost.
//
// One goroutine, supervisor.run, owns all state and handles one event at a time:
// a signal, a poll of the pod's annotations, the exit of memcached, its first
// response, the end of a drain, a timer. Helpers report to it over channels and
// name the process they report on, so that a late report about an earlier process
// is dropped. HTTP handlers read the state that it publishes.
//
// memcached deletes memory.meta at each start, whether it accepts the file or not.
// So the agent looks beforehand for everything that makes memcached reject the
// file: another slab geometry, a start in the second of the stop, a missing line
// that an older version requires, a truncated file. If this version has not run
// with these arguments before, the agent starts it without the items first. When
// that dry run fails, and also fails with the previous arguments, the container
// exits, and the file stays for the version that wrote it.
//
// While a stop is announced, for a minute, the agent begins no other change. A new version and
// new arguments arrive together, and the next container applies both in one start.
//
// A readiness hold lets the operator fill a shard before clients use it: memcached
// runs, and only /readyz reports that the shard is not ready.
//
// # States
//
//	Starting    → Serving      memcached responded
//	Serving     → Restarting   new arguments, or a requested restart
//	Restarting  → Serving      memcached responded
//	Serving     → Draining     SIGTERM: the pod is being deleted
//	Serving     → Stopping     announced SIGTERM: only the container stops
//	Serving     → Stopping     SIGTERM during a readiness hold: no client is connected
//	Serving     → Stopping     SIGTERM, and memcached does not respond
//	Draining    → Stopping     another pod serves behind the Service, SIGTERM, or a timeout
//	any         → exit != 0    memcached exited unexpectedly, or cannot start
//
// The agent writes to the data volume and the termination log only, so it runs
// with a read-only root file system, as any user, in any image.
//
// # Preflight check
//
// "agent preflight" checks in a pod of its own that an image contains a memcached
// that starts with given arguments, before the operator changes a shard. It always
// terminates, and needs only the image.
package agent
