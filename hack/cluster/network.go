package main

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"
)

// The cluster's networks, in a rarely used part of 10.0.0.0/8.
const (
	podNetwork     = "10.117.0.0/16" // node N has 10.117.N.0/24
	serviceNetwork = "10.118.0.0/16"
	apiServiceIP   = "10.118.0.1"    // the Service "kubernetes"
	linkNetwork    = "10.119.0.0/24" // between this machine and node1, and node1 and the others
)

// maxNodes is the number of certificates for nodes.
const maxNodes = 5

type node struct {
	Name    string
	Number  int    // 1 has the control plane, DNS and the registry
	Addr    string // the node's end of its link
	Peer    string // the other end: on this machine for node1, on node1 for the others
	Link    string // the other end's interface
	Pods    string // network of the node's pods
	Gateway string // the node's address in it
}

func nodeNumber(n int) node {
	return node{
		Name:    fmt.Sprintf("node%d", n),
		Number:  n,
		Addr:    fmt.Sprintf("10.119.0.%d", 4*n+2),
		Peer:    fmt.Sprintf("10.119.0.%d", 4*n+1),
		Link:    fmt.Sprintf("mco%d", n),
		Pods:    fmt.Sprintf("10.117.%d.0/24", n),
		Gateway: fmt.Sprintf("10.117.%d.1", n),
	}
}

var firstNode = nodeNumber(1)

func workerNode(name string) (node, error) {
	for n := 2; n <= maxNodes; n++ {
		if w := nodeNumber(n); w.Name == name {
			return w, nil
		}
	}
	return node{}, fmt.Errorf("%q is none of the nodes that can come and go, node2 to node%d: %w", name, maxNodes, errUsage)
}

// checkNetworks returns an error when this machine is in one of the cluster's networks.
func checkNetworks() error {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return err
	}
	for _, a := range addrs {
		taken, err := netip.ParsePrefix(a.String())
		if err != nil {
			continue // not an IP network
		}
		for _, own := range []string{podNetwork, serviceNetwork, linkNetwork} {
			if netip.MustParsePrefix(own).Overlaps(taken) {
				return fmt.Errorf("this machine is in the network %s, and the cluster wants %s: is a cluster from another cache folder running?", taken, own)
			}
		}
	}
	return nil
}

// linkFirst connects node1, whose process 1 is pid, to this machine, and routes pods and Services there, so that
// tests and an operator on this machine reach them.
func linkFirst(n node, pid int) error {
	if _, err := net.InterfaceByName(n.Link); err == nil {
		return nil
	}
	return ip(
		"link add "+n.Link+" type veth peer name eth0 netns "+strconv.Itoa(pid),
		"addr add "+n.Peer+"/30 dev "+n.Link,
		"link set "+n.Link+" up",
		"route replace "+podNetwork+" via "+n.Addr,
		"route replace "+serviceNetwork+" via "+n.Addr,
		"route replace "+linkNetwork+" via "+n.Addr,
	)
}

// unlinkFirst removes that link with its routes, earlier than the kernel does after the end of the node.
func unlinkFirst(n node) {
	if _, err := net.InterfaceByName(n.Link); err == nil {
		_ = ip("link del " + n.Link) // or the kernel was faster
	}
}

func linkWorker(n node, pid, first int) error {
	// The link of a lost node can stay on node1 for a moment.
	_ = runProgram("nsenter", "-t", strconv.Itoa(first), "-n", "ip", "link", "del", n.Link)
	if err := ip(fmt.Sprintf("link add %s netns %d type veth peer name eth0 netns %d", n.Link, first, pid)); err != nil {
		return err
	}
	return ipIn(first,
		"addr add "+n.Peer+"/30 dev "+n.Link,
		"link set "+n.Link+" up",
		"route replace "+n.Pods+" via "+n.Addr,
	)
}

func ip(commands ...string) error { return ipIn(0, commands...) }

// ipIn runs commands of the program ip in the network of a process; 0 is this one.
func ipIn(pid int, commands ...string) error {
	for _, c := range commands {
		words := strings.Fields("ip " + c)
		if pid != 0 {
			words = append([]string{"nsenter", "-t", strconv.Itoa(pid), "-n"}, words...)
		}
		if err := runProgram(words[0], words[1:]...); err != nil {
			return err
		}
	}
	return nil
}

var errNoLink = errors.New("the link eth0 is not there yet")

func waitForLink() error {
	return waitFor(20*time.Second, func() error {
		if _, err := net.InterfaceByName("eth0"); err != nil {
			return errNoLink
		}
		return nil
	})
}
