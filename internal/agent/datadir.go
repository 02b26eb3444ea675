package agent

import (
	"fmt"
	"os"
	"syscall"
)

// dataOverhead is the space for the agent's and memcached's metadata, a few KiB.
const dataOverhead = 1 << 20

// checkVolumeSize returns an error if the data volume is too small for all items.
// SIGBUS kills memcached when a tmpfs is full before memcached's own limit.
func checkVolumeSize(dir string, maxBytes int64) error {
	var volume syscall.Statfs_t
	if err := syscall.Statfs(dir, &volume); err != nil {
		return fmt.Errorf("reading the size of the data volume %s: %w", dir, err)
	}
	total := int64(volume.Blocks) * volume.Bsize
	// A tmpfs without a limit has no blocks.
	if need := maxBytes + dataOverhead; total > 0 && total < need {
		return fmt.Errorf("the data volume has %d MiB, but memcached with -m %d needs %d MiB: "+
			"it would crash when the volume is full", total>>20, maxBytes>>20, need>>20)
	}
	return nil
}

// checkWritable returns an error if memcached cannot create its files.
func checkWritable(dir string) error {
	probe, err := os.CreateTemp(dir, ".agent-")
	if err != nil {
		return fmt.Errorf("the data directory must be writable: %w", err)
	}
	_ = probe.Close()
	return os.Remove(probe.Name())
}
