// Package simtest simulates a Kubernetes cluster in memory for tests: an API server, and small models of who acts on its
// objects. Nothing in it happens by itself, so that a test decides what happens next, and its clock is set by hand.
//
//	apiserver   an API server that gives objects identity, age, versions, generation and the
//	            owners of their fields
//	server      an API server with all versions of every object
//	env         a namespace of a test that reconciles step by step
//	kubernetes  the ReplicaSet controller, the scheduler, the garbage collector, the node controller,
//	            and who backs up and restores
//	kubelet     the kubelet, the agent, and a memcached that holds items
//
// A model may be wrong: tests in test/apiserver and test/e2e compare it with a real API server and a real cluster.
package simtest
