// Cluster runs a real Kubernetes on this machine for the tests and the demo:
// etcd, API server, controller manager, scheduler, kubelet, kube-proxy,
// containerd, CoreDNS and an image registry as plain processes.
//
// A node is a set of Linux namespaces (mount, process, network, host name,
// IPC). This program runs itself as process 1 of them and supervises what
// belongs to the node. So the host's firewall, mounts and processes stay as
// they are, and killing that one process ends all of a node, which is also how
// the tests lose one.
//
//	this machine ── mco0 ── node1 ── mco2 ── node2
//	                          ├ cni0: pods of node1; DNS and registry listen on its address
//	                          └ routes for pods, Services and the other nodes
//
// Everything that takes long is built once into a cache outside the checkout,
// under a key made of its inputs (see cache.go). What a cluster writes while
// it runs lies beside it and goes away with "down --wipe".
//
// "olm up" installs the Operator Lifecycle Manager there, built from its module
// and from the chart in it (see olm.go). "olmv1 up" runs OLM v1, catalogd and
// operator-controller, as two processes in the network of node1 (see olmv1.go).
//
// A claim of the default StorageClass gets a folder of this machine, which all nodes
// see and every user may write to, whatever size it asks for; it goes with the claim.
// Images of a server of S3 and of a busybox are there for tests of what they store.
//
// Images come from the registry alone. Nodes ask it for every name, whatever
// the host in it: docker.io/library/memcached:1.6.38 is library/memcached:1.6.38
// there. A name that nobody loaded is "not found" at once, and nothing is ever
// pulled from the internet.
package main
