package agent

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/agent/wire"
)

// pollInterval is how often the pod's annotations are read. Reading four small
// files in memory costs a few microseconds. A watch is more fragile: the kubelet
// replaces all files by renaming a symbolic link two levels up.
const pollInterval = 200 * time.Millisecond

// podInfo contains the pod's annotations for the agent.
type podInfo struct {
	arguments, restart, stop, holdUntil string
}

// readPodInfo reads a downward-API volume, where an empty file is an absent
// annotation.
func readPodInfo(dir string) (podInfo, error) {
	var info podInfo
	for _, file := range []struct {
		name string
		to   *string
	}{
		// The kubelet may replace all files between two reads. So the stop is read first:
		// when it is withdrawn together with the arguments that it blocks, those are not
		// read without it.
		{wire.StopFile, &info.stop},
		{wire.ArgumentsFile, &info.arguments},
		{wire.RestartFile, &info.restart},
		{wire.HoldFile, &info.holdUntil},
	} {
		// All annotations of a pod together are limited to 256 KiB.
		text, err := readBounded(filepath.Join(dir, file.name), 256<<10)
		if err != nil {
			return podInfo{}, fmt.Errorf("reading the pod's annotations: %w", err)
		}
		*file.to = strings.TrimSpace(text)
	}
	return info, nil
}

// announcedTimeout bounds the wait for announced arguments. The kubelet starts a
// container before it updates their file, which takes some 100 ms.
const announcedTimeout = 2 * time.Second

// awaitAnnouncedArguments reads a downward-API volume once it contains the arguments
// that the token of the last stop announced. This saves a start with the previous
// arguments and a restart with these.
func awaitAnnouncedArguments(dir, token string) (podInfo, error) {
	for deadline := time.Now().Add(announcedTimeout); ; time.Sleep(20 * time.Millisecond) {
		info, err := readPodInfo(dir)
		if err != nil || wire.AnnouncedArguments(token, info.arguments) || time.Now().After(deadline) {
			return info, err
		}
	}
}
