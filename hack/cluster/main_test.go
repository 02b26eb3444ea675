package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/cache"
	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/node"
	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/olm"
)

func TestBadArguments(t *testing.T) {
	t.Setenv(cache.Variable, t.TempDir())
	for _, line := range []string{
		"", "frobnicate", "up now", "down now", "down --wope", "status x", "build", "logs", "kubeconfig x", "logs a b",
		"node", "node add node1", "node add node99", "node grow", "node add node2 node3",
		"olm", "olm down", "olm up now", "olmv1", "olmv1 up now", "olmv1 grow",
		"load", "load ref", "load ref a b", "load ref tar --dir d", "load ref --dir d --label novalue",
		"image", "image build", "image build -t ref -o tar", "image build -t ref .", "image build -t ref -o tar --build-arg x .", "image push tar", node.InitCommand, olm.V1InitCommand,
	} {
		if err := run(strings.Fields(line)); !errors.Is(err, errUsage) {
			t.Errorf("cluster %s: error %v, want one that names the usage", line, err)
		}
	}
}

func TestUsageNamesEveryCommand(t *testing.T) {
	for name := range commands {
		if !strings.Contains(usage, "\n  "+name) {
			t.Errorf("help does not name %s", name)
		}
	}
}
