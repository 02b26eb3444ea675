// Package agent is PID 1 of a memcached container. It runs memcached as its child
// with a restartable cache in a memory volume, so that no planned stop loses items.
//
// # Rules
//
// Every planned stop saves the items. The agent sends SIGUSR1 and nothing after
// it, because a SIGTERM cancels the save. It kills a memcached that does not exit
// within datadir.SaveTimeout, and logs that the items are lost.
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
// What takes too long on an overloaded node is no verdict about the image, the arguments or a Secret
// (process.SlowError), nor is a check that was killed. The agent tries again, or exits with wire.ExitTimedOut, and the items stay.
//
// A bound whose end loses items, or says that another pod is dead, is part of the pod's grace period, or at least ten
// times what its step takes under load. A pod that refuses connections doesn't run, one that is slow does.
//
// While a stop is announced, for a minute, the agent begins no other change. A new version and
// new arguments arrive together, and the next container applies both in one start.
//
// With a key (-handover-key), a pod that is being deleted, or that the operator replaces, hands its items over to the pod
// that replaces it (package handover). The new pod, the target, looks for the other one
// behind the Service at its first start, and becomes ready when it has the items of a
// memcached that has stopped. So no client gets a value that it has changed on the other
// pod, which is why the target starts memcached without items after every incomplete
// handover. It tries five times while the other pod accepts connections, and then serves
// without items. If the other pod was busy with a third one, which may have the items, the target waits until that one serves, and
// receives from there. The other pod, the source, accepts targets while it drains, and one that the operator has requested to
// replace it (wire.ReceiveFile) while it serves. The target also announces a grace period that is shorter than that of the
// source's pod, in which the source hands over what fits (ADR 29). If the target does not take over, it starts memcached again with the saved items.
// A source that isn't being deleted must not exit at the end, since the kubelet would start its container again. It waits for its
// deletion without memcached, since the Service may still lead to it. After 30 s it starts memcached without items, and is a
// target itself, which can get the items back (ADR 26). With -handover-mode
// Available, the target is ready before the other memcached stops: no connection fails, and
// for a few seconds clients can read older values. If either pod is lost then, the
// source stops for good, and the target starts memcached without items. The CAS counter of a
// memcached that starts without items begins at a random number: a client's CAS token of
// the source must not match an item of the target.
//
// # TLS and authentication
//
// memcached's arguments determine whether it serves TLS, and whether clients log in. It loads the certificate and the
// users from Secrets (package secrets) while it runs. A Secret that can't be used changes
// nothing. A restarted container starts with the last certificate that could be used, and a new pod
// rather with one that some clients reject than with none. memcached never removes a CA or a key type
// that it has loaded: the agent reports that a restart is required, and the operator decides when.
//
// memcached never starts with less protection than it had, after a restart or a crash, unless the pod's annotations state
// that the spec switches it off (ADR 25). Until then it runs with the former arguments, as after arguments that are invalid.
//
// No port can serve both TLS and plain connections. While clients are migrated, the agent accepts them, and
// forwards each connection by its first byte.
//
// # Insights
//
// The keys that clients read most, and the addresses of clients, are data of users. They are in
// no metric, log or status. The agent serves them on demand at a Unix socket in the data volume: users
// who may run commands in the pod print them with "agent hotkeys" and "agent connections". The agent
// estimates how much memory is unused from samples of the memory file.
//
// # States
//
//	Starting    → Serving      memcached responded, and there is no other pod to receive items from
//	Starting    → Receiving    memcached responded, and another pod is behind the Service
//	Receiving   → Serving      memcached has the other pod's items, or starts without them
//	Receiving   → Following    the other pod still serves, with -handover-mode Available
//	Following   → Serving      the other pod has stopped, and memcached has the last changes
//	Following   → Receiving    one of the two is lost: memcached starts again, without items
//	Receiving, Following → Stopping  SIGTERM: the items received so far are deleted
//	Serving     → Restarting   new arguments, or a requested restart
//	Restarting  → Serving      memcached responded
//	Serving     → Draining     SIGTERM: the pod is being deleted
//	Serving     → Stopping     announced SIGTERM: only the container stops
//	Serving     → Stopping     SIGTERM, and memcached does not respond
//	Serving     → Draining     a pod that the operator requested to replace this one has connected
//	Draining    → Serving      that pod is lost, and this one is not being deleted
//	Draining    → Stopping     another pod serves behind the Service, SIGTERM, or a timeout
//	Draining    → Stopping     another pod has received the items but for the last changes
//	Stopping    → Restarting   that pod does not take over
//	Starting, Restarting → Draining  memcached responded with its items, and the pod is being deleted
//	Starting, Restarting → Stopping  announced SIGTERM, or SIGTERM without items
//	Stopping    → HandedOver   that pod serves, or may have, and this one is not being deleted
//	HandedOver  → Starting     30 s later: memcached starts without items
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
