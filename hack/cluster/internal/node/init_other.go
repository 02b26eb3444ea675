//go:build !linux

package node

import (
	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/process"
)

// Init can't run here.
func Init(string) error { return process.CanRun() }
