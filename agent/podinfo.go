package main

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/agentapi"
)

// lookInterval is how often the pod's annotations are read. Reading four small
// files in memory costs a few microseconds, and needs none of the care that
// watching would: the kubelet exchanges them all by a rename of a symbolic link
// two levels up, and a missed event would be a missed order.
const lookInterval = 200 * time.Millisecond

// podInfo is what the pod's annotations say.
type podInfo struct {
	arguments string
	restart   string
	stop      string
	hold      string
}

// readPodInfo reads a downward-API volume. A missing file is an absent
// annotation, as an empty one is.
func readPodInfo(dir string) (podInfo, error) {
	var info podInfo
	for _, file := range []struct {
		name string
		to   *string
	}{
		// The kubelet may exchange all of them between two reads. Were the stop read
		// last, one that is withdrawn together with the arguments that it holds back
		// would set them free.
		{agentapi.StopFile, &info.stop},
		{agentapi.ArgumentsFile, &info.arguments},
		{agentapi.RestartFile, &info.restart},
		{agentapi.HoldFile, &info.hold},
	} {
		// All annotations of a pod together have 256 KiB.
		text, err := readBounded(filepath.Join(dir, file.name), 256<<10)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return podInfo{}, fmt.Errorf("reading the pod's annotations: %w", err)
		}
		*file.to = strings.TrimSpace(text)
	}
	return info, nil
}

// announcedBound is how long a new container waits for the arguments that were
// announced to it. The kubelet starts it without waiting until their file is up to
// date, which is a matter of some 100 ms.
const announcedBound = 2 * time.Second

// readAnnounced reads a downward-API volume, at a start that a token announced once
// the arguments are there that the token tells of. Else memcached would start
// with the former ones, and again with these.
func readAnnounced(dir, token string) (podInfo, error) {
	for end := time.Now().Add(announcedBound); ; time.Sleep(20 * time.Millisecond) {
		info, err := readPodInfo(dir)
		if err != nil || agentapi.AnnouncedArguments(token, info.arguments) || time.Now().After(end) {
			return info, err
		}
	}
}
