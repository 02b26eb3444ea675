// Cluster runs a real Kubernetes on this machine for the tests and the demo: etcd, API server, controller manager,
// scheduler, kubelet, kube-proxy, containerd, CoreDNS and an image registry as plain processes.
//
// A node is a set of Linux namespaces (mount, process, network, host name, IPC). A script is process 1 of them and supervises the
// node's programs (internal/node/conf/init.sh). The host's firewall, mounts and processes stay unchanged, and killing that
// process stops the whole node, which is also how the tests lose one.
//
//	this machine ── mco1 ── node1 ── mco2 ── node2
//	                          ├ cni0: pods of node1; DNS and registry listen on its address
//	                          └ routes for pods, Services and the other nodes
//
// Builds are cached outside of the checkout, by a key of their inputs (internal/cache). The data of a cluster is beside them;
// "down --wipe" deletes it. OLM v0 runs in pods, OLM v1 as processes in the network of node1 (internal/olm).
//
// A claim of the default StorageClass gets a folder of this machine, which all nodes share and every user can write
// to, without a limit of its size.
//
// Nodes pull every image from the registry, whatever host its name has: docker.io/library/memcached:1.6.38 is
// library/memcached:1.6.38 there. Nothing is pulled from the internet.
package main
