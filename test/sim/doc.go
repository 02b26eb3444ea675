// Package sim is a world in memory in which the production reconciler of Memcacheds
// lives, and in which everything that can go wrong does: one goroutine, one clock
// that is set by hand, one seed that decides what happens next.
//
//	apiserver   controller-runtime's fake client over a tracker that gives objects
//	            identity, age, generation and the owners of their fields
//	history     an API server with all versions of every object
//	cache       what the operator's informers hold: each kind as it was some time ago
//	client      the operator's client: it reads from the cache and writes to the API
//	            server, which may refuse, or do it and lose the answer
//	operator    the process: the reconciler and its queue; killed and started again
//	kubernetes  small models of the ReplicaSet controller, the scheduler, the garbage
//	            collector, the node controller, and of who backs up and restores
//	kubelet     a model of the kubelet, the agent, and a memcached that holds items
//	user        people, who edit what the CRD's schema lets them and some of what it
//	            does not, and who meddle with what is the operator's
//	faults      what befalls pods and nodes
//	watch       the promises, looked at after every write and every step
//	end         how everything stands, to be compared with where another way ends
//
// The promises, at any time: at most one shard is out by the operator's doing; no
// object of somebody else is written or ended; what a person wrote of a Memcached
// stays as it is; no shard loses its items by the operator's doing unless a status
// told of it before; no container ends without its agent knowing that the pod stays;
// Available=True means that each shard's Service leads to a ready pod. And when
// faults end: within restWithin seconds everything is as the spec asks, or held for
// a reason that has a name, and then nothing is written for restFor seconds.
//
// A seed whose promise is broken prints its last lines and the command that tells its
// whole story. A bug that a seed found becomes a scenario in scenarios_test.go.
//
// What a model says of Kubernetes may be wrong. The scenarios are played against a
// real API server (real_test.go) and on a cluster (test/e2e), and have to end the same.
package sim
