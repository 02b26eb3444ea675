package node

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/cache"
	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/host"
	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/network"
)

// A cluster in a container of this machine has nodes of the same names.
func TestControlGroupsOfOtherClustersStay(t *testing.T) {
	root := t.TempDir()
	groups := map[string]bool{
		"memcached-operator-node1/kubepods/pod1": true, "cpu/memcached-operator-node1/kubepods": true,
		"memcached-operator-node2": false, "docker/container/memcached-operator-node1/kubepods": false, "cpu/docker/container/memcached-operator-node1": false,
	}
	for group := range groups {
		if err := os.MkdirAll(filepath.Join(root, group), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := removeCgroups(root, network.First); err != nil {
		t.Fatal(err)
	}
	for group, removed := range groups {
		if host.Exists(filepath.Join(root, group)) == removed {
			t.Errorf("%s is removed: %t, want %t", group, !removed, removed)
		}
	}
	for _, own := range []string{"memcached-operator-node1", "cpu/memcached-operator-node1"} {
		if host.Exists(filepath.Join(root, own)) {
			t.Errorf("%s stays", own)
		}
	}
}

// They may be those of a cluster of another cache folder, whose nodes lose what they mounted on a folder that is removed.
func TestMountPointsOfAClusterThatWasNotStartedHereStay(t *testing.T) {
	before := dataDirs
	t.Cleanup(func() { dataDirs = before })
	dataDirs = []string{t.TempDir()}
	if err := Kill(cache.Under(t.TempDir()), network.First); err != nil || !host.Exists(dataDirs[0]) {
		t.Errorf("%s is removed (%v)", dataDirs[0], err)
	}
}
