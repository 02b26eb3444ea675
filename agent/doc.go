// The agent is PID 1 of a memcached container. It starts memcached as its
// child with a restartable cache in a memory volume and owns its life, so that
// no planned stop costs the items.
//
// # Rules
//
// Every planned stop is a save: SIGUSR1 and nothing after it, since a SIGTERM
// cancels the save. A memcached that does not end is killed after a bound, and
// that is logged as the loss it is.
//
// One goroutine, supervisor.run, owns all state and takes one event at a time:
// a signal, a look at the pod's annotations, the end of the child, the child's
// first answer, the end of a drain, a timer. Helpers report to it over
// channels and name the child they speak of, so that a late word about an
// earlier one is dropped. HTTP handlers read what it published.
//
// memcached removes memory.meta at each start, accepted or not. So whatever
// would make it refuse the file is looked for before it starts: another slab
// geometry, a start in the second of the stop, a line that an older version
// demands, a file that was cut short. A version that did not run with these
// arguments before is tried without the items first; one that does not start ends
// the container, and leaves the file to the version that wrote it.
//
// While a stop is announced nothing else is begun. A new version and new arguments
// come together, and the next container starts once, with both.
//
// A shard may be held while it is filled: memcached runs, and /readyz alone says
// that it does not serve.
//
// # States
//
//	Starting    → Serving      memcached answered
//	Serving     → Restarting   other arguments, or a restart was asked for
//	Restarting  → Serving
//	Serving     → Draining     SIGTERM: the pod goes
//	Serving     → Stopping     SIGTERM that was announced: only the container goes
//	Serving     → Stopping     SIGTERM while it is held: nobody asks it
//	Draining    → Stopping     another pod answers at the Service, or a bound
//	any         → exit != 0    memcached ended by itself, or cannot start
//
// The agent writes into the data volume and the termination log only, so it
// runs with a read-only root, under any uid, in any image.
//
// # Proof
//
// "agent prove" shows in a pod of its own that an image holds a memcached that
// starts with given arguments, before any shard is touched. It always ends, and
// needs nothing but the image.
package main
