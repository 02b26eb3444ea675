package main

import (
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func TestSpecRendersAndReadsBack(t *testing.T) {
	d := dirsUnder(t.TempDir())
	s := d.spec(nodeNumber(2), builds{kubernetes: "/k", coredns: "/c"})
	s.Plugins = "/plugins" // of this machine, which may have none
	path, err := s.write()
	if err != nil {
		t.Fatal(err)
	}
	again, err := readSpec(path)
	if err != nil || !reflect.DeepEqual(again, s) {
		t.Errorf("read back %+v, %v; want %+v", again, err, s)
	}
	files, err := os.ReadDir("conf")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != len(confPlaces) {
		t.Errorf("%d templates and %d places for them", len(files), len(confPlaces))
	}
	for name, place := range confPlaces {
		content := string(read(t, filepath.Join(s.Conf, place)))
		if content == "" || strings.Contains(content, "{{") {
			t.Errorf("%s was not rendered:\n%s", name, content)
		}
	}
	kubelet := string(read(t, filepath.Join(s.Conf, "kubelet.yaml")))
	for _, want := range []string{"node2-server.crt", "clusterDNS: [" + firstNode.Gateway + "]", "cgroupRoot: /" + cgroupName(nodeNumber(2))} {
		if !strings.Contains(kubelet, want) {
			t.Errorf("kubelet's configuration lacks %s:\n%s", want, kubelet)
		}
	}
}

func TestComponents(t *testing.T) {
	d := dirsUnder("/cache")
	names := func(n int) string {
		var all []string
		for _, c := range d.spec(nodeNumber(n), builds{}).components() {
			all = append(all, c.Name)
		}
		return strings.Join(all, " ")
	}
	if got, want := names(1), "containerd etcd kube-apiserver kube-controller-manager kube-scheduler coredns kubelet kube-proxy"; got != want {
		t.Errorf("node1 runs %s, want %s", got, want)
	}
	if got, want := names(2), "containerd kubelet kube-proxy"; got != want {
		t.Errorf("node2 runs %s, want %s", got, want)
	}
}

func TestNodeAddresses(t *testing.T) {
	pods, links := netip.MustParsePrefix(podNetwork), netip.MustParsePrefix(linkNetwork)
	seen := map[string]string{}
	for _, n := range allNodes() {
		if own := netip.MustParsePrefix(n.Pods); !pods.Contains(own.Addr()) || !own.Contains(netip.MustParseAddr(n.Gateway)) {
			t.Errorf("%s: pods in %s behind %s, all pods are in %s", n.Name, n.Pods, n.Gateway, pods)
		}
		link := netip.PrefixFrom(netip.MustParseAddr(n.Addr), 30)
		if !links.Contains(link.Addr()) || !link.Contains(netip.MustParseAddr(n.Peer)) {
			t.Errorf("%s: %s and %s are not the ends of one link in %s", n.Name, n.Addr, n.Peer, links)
		}
		for _, a := range []string{n.Name, n.Addr, n.Peer, n.Link, n.Pods, link.Masked().String()} {
			if other, taken := seen[a]; taken {
				t.Errorf("%s and %s share %s", n.Name, other, a)
			}
			seen[a] = n.Name
		}
	}
}
