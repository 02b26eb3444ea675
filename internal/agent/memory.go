package agent

import (
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
)

const (
	// memoryLimit is for everything but a handover.
	memoryLimit = 8 << 20
	// handoverMemory is for the buffers of a handover, on both sides. It is reserved for
	// memcached's clients, of which the target has none, and the source soon has none.
	handoverMemory = 16 << 20
	// freeMemory of the container is not for the table of a handover: memcached allocates
	// buffers for its clients.
	freeMemory = 16 << 20
	// cgroupDir is what a container sees of its control group.
	cgroupDir = "/sys/fs/cgroup"
)

// setMemoryLimit limits the agent's own memory to that for everything but a handover, and
// that much more for a handover. The table of a handover has no pointers, so that the
// garbage collector reads none of it.
func setMemoryLimit(more int64) {
	percent := 25
	if more > 0 {
		percent = 100
	}
	debug.SetGCPercent(percent)
	debug.SetMemoryLimit(memoryLimit + more)
	if more == 0 {
		debug.FreeOSMemory()
	}
}

// freeInCgroup returns how much memory the container may still use, and false if it is
// not limited.
func freeInCgroup(dir string) (free int64, limited bool) {
	maximum, err := readCgroup(dir, "memory.max")
	if err != nil {
		return 0, false
	}
	current, err := readCgroup(dir, "memory.current")
	if err != nil {
		return 0, false
	}
	return maximum - current, true
}

// readCgroup returns an error for the text "max" too.
func readCgroup(dir, name string) (int64, error) {
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
}

// memoryOfCgroup returns NaN for what is unknown, or not limited.
func memoryOfCgroup(dir string) (workingSet, limit float64) {
	workingSet, limit = math.NaN(), math.NaN()
	if bytes, err := readCgroup(dir, "memory.max"); err == nil {
		limit = float64(bytes)
	}
	current, err := readCgroup(dir, "memory.current")
	if err != nil {
		return workingSet, limit
	}
	text, err := os.ReadFile(filepath.Join(dir, "memory.stat"))
	if err != nil {
		return workingSet, limit
	}
	_, rest, _ := strings.Cut("\n"+string(text), "\ninactive_file ")
	line, _, _ := strings.Cut(rest, "\n")
	inactive, err := strconv.ParseInt(line, 10, 64)
	if err != nil {
		return workingSet, limit
	}
	return float64(max(current-inactive, 0)), limit
}
