// Package network has the addresses of nodes, and their links to this machine.
package network

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/host"
)

// The cluster's networks, in a rarely used part of 10.0.0.0/8.
const (
	PodNetwork     = "10.117.0.0/16" // node N has 10.117.N.0/24
	ServiceNetwork = "10.118.0.0/16"
	APIServiceIP   = "10.118.0.1"    // the Service "kubernetes"
	linkNetwork    = "10.119.0.0/24" // between this machine and node1, and node1 and the others
)

// Node is a node by its addresses.
type Node struct {
	Name    string
	Number  int    // 1 has the control plane, DNS and the registry
	Addr    string // the node's end of its link
	Peer    string // the other end: on this machine for node1, on node1 for the others
	Link    string // the other end's interface
	Pods    string // network of the node's pods
	Gateway string // the node's address in it
}

// Nodes are all nodes that there can be. Each has certificates.
var Nodes = []Node{number(1), number(2), number(3), number(4), number(5)}

// First is the node with the control plane.
var First = Nodes[0]

func number(n int) Node {
	return Node{
		Name:    fmt.Sprintf("node%d", n),
		Number:  n,
		Addr:    fmt.Sprintf("10.119.0.%d", 4*n+2),
		Peer:    fmt.Sprintf("10.119.0.%d", 4*n+1),
		Link:    fmt.Sprintf("mco%d", n),
		Pods:    fmt.Sprintf("10.117.%d.0/24", n),
		Gateway: fmt.Sprintf("10.117.%d.1", n),
	}
}

// Worker returns the node of a name, if it is one that can come and go.
func Worker(name string) (Node, error) {
	for _, n := range Nodes[1:] {
		if n.Name == name {
			return n, nil
		}
	}
	return Node{}, fmt.Errorf("%q is none of the nodes that can come and go, node2 to node%d", name, len(Nodes))
}

// APIAddress is where the API server listens.
func APIAddress() string { return net.JoinHostPort(First.Addr, "6443") }

// RegistryAddress is the address of the registry for this machine and all nodes.
func RegistryAddress() string { return net.JoinHostPort(First.Gateway, "5000") }

// Check returns an error when this machine is in one of the cluster's networks.
func Check() error {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return err
	}
	for _, a := range addrs {
		taken, err := netip.ParsePrefix(a.String())
		if err != nil {
			continue // not an IP network
		}
		for _, own := range []string{PodNetwork, ServiceNetwork, linkNetwork} {
			if netip.MustParsePrefix(own).Overlaps(taken) {
				return fmt.Errorf("this machine is in the network %s, and the cluster wants %s: is a cluster from another cache folder running?", taken, own)
			}
		}
	}
	return nil
}

// Link connects a node, whose process 1 is pid, to node1, whose process 1 is first. It connects node1 itself to this machine, and
// routes pods and Services there, so that tests and an operator on this machine reach them.
func Link(n Node, pid, first int) error {
	routes := []string{n.Pods}
	if n == First {
		first, routes = 0, []string{PodNetwork, ServiceNetwork, linkNetwork}
	}
	// The link of a lost node can stay for a moment.
	_ = ip(first, "link del "+n.Link)
	commands := []string{
		"link add " + n.Link + " type veth peer name eth0 netns " + strconv.Itoa(pid),
		"addr add " + n.Peer + "/30 dev " + n.Link,
		"link set " + n.Link + " up",
	}
	for _, route := range routes {
		commands = append(commands, "route replace "+route+" via "+n.Addr)
	}
	return ip(first, commands...)
}

// Unlink removes the link of node1 with its routes, earlier than the kernel does after the end of the node.
func Unlink() { _ = ip(0, "link del "+First.Link) }

// ip runs commands of the program ip in the network of a process; 0 is this one.
func ip(pid int, commands ...string) error {
	for _, c := range commands {
		words := strings.Fields("ip " + c)
		if pid != 0 {
			words = append([]string{"nsenter", "-t", strconv.Itoa(pid), "-n"}, words...)
		}
		if err := host.Run(words[0], words[1:]...); err != nil {
			return err
		}
	}
	return nil
}
