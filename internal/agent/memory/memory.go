// Package memory bounds what the agent uses of the container's memory, which belongs to the items.
package memory

import (
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
)

const (
	// forAll is for everything but a handover.
	forAll = 8 << 20
	// Handover is for the buffers of a handover, in bytes, on both sides. It is reserved for
	// memcached's clients, of which the target has none, and the source soon has none.
	Handover = 16 << 20
	// forClients of the container is not for the table of a handover: memcached allocates
	// buffers for its clients.
	forClients = 16 << 20
)

// Cgroup is the directory of the container's control group. Tests replace it.
var Cgroup = "/sys/fs/cgroup"

// used is what Use lets parts of the agent have, in bytes.
var used struct {
	sync.Mutex
	limited bool
	bytes   int64
}

// Limit limits the agent's own memory to what all need and what Use adds. A test's process is not limited: its garbage collector
// would run all the time.
func Limit() {
	used.Lock()
	used.limited = true
	used.Unlock()
	limit(0)
}

// Use lets a part of the agent have that many bytes more until it calls release. What parts have at the same time adds up. The
// tables of a handover have no pointers, so that the garbage collector reads none of them.
func Use(bytes int64) (release func()) {
	limit(bytes)
	return sync.OnceFunc(func() { limit(-bytes) })
}

func limit(more int64) {
	used.Lock()
	defer used.Unlock()
	used.bytes += more
	if !used.limited {
		return
	}
	percent := 25
	if used.bytes > 0 {
		percent = 50
	}
	debug.SetGCPercent(percent)
	debug.SetMemoryLimit(forAll + used.bytes)
	if used.bytes == 0 {
		debug.FreeOSMemory()
	}
}

// Reserve lets a handover use that many bytes beside its buffers until it calls release, and returns false, and the buffers only, if
// the container has no room for the bytes when memcached has filled its volume.
func Reserve(bytes, volume int64) (release func(), ok bool) {
	free, limited := freeInCgroup(Cgroup, volume)
	if ok = !limited || bytes <= free-forClients; !ok {
		bytes = 0
	}
	return Use(Handover + bytes), ok
}

const (
	// ofAgent is what the agent uses at most without a handover, with its program.
	ofAgent = forAll + 8<<20
	// ofKernel is for page tables and sockets, and least what memcached needs in any case.
	ofKernel = 8 << 20
	least    = 16 << 20
)

// ForMemcached returns how much of the container's memory memcached may allocate besides its volume, and false if the
// container is not limited. forwarded is what the agent uses for the connections of clients.
func ForMemcached(volume, forwarded int64) (bytes int64, limited bool) {
	return forMemcached(Cgroup, volume, forwarded)
}

func forMemcached(dir string, volume, forwarded int64) (bytes int64, limited bool) {
	maximum, limited := limitIn(dir)
	if !limited {
		return 0, false
	}
	return max(maximum-volume-volume/256-forwarded-ofAgent-ofKernel, least), true
}

// limitIn returns the container's limit of memory, and false if it has none.
func limitIn(dir string) (bytes int64, limited bool) {
	for _, v := range versions {
		if bytes, err := readCgroup(dir, v.limit); err == nil {
			return bytes, true
		}
	}
	return 0, false
}

// freeInCgroup returns how much memory the container may still use when memcached has filled its volume, and false if it is
// not limited.
func freeInCgroup(dir string, volume int64) (free int64, limited bool) {
	for _, v := range versions {
		maximum, err := readCgroup(dir, v.limit)
		if err != nil {
			continue
		}
		current, err := readCgroup(dir, v.current)
		if err != nil {
			continue
		}
		if filled, err := readStat(dir, v.stat, v.shmem); err == nil {
			current += max(volume-filled, 0)
		}
		return maximum - current, true
	}
	return 0, false
}

// readCgroup returns an error for no limit too: the text "max", and the largest number of pages in version 1.
func readCgroup(dir, name string) (int64, error) {
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return 0, err
	}
	bytes, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if bytes > math.MaxInt64/2 {
		err = strconv.ErrRange
	}
	return bytes, err
}

// readStat reads a line of a file with a name and a number in each.
func readStat(dir, file, name string) (int64, error) {
	text, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut("\n"+string(text), "\n"+name+" ")
	line, _, _ := strings.Cut(rest, "\n")
	return strconv.ParseInt(line, 10, 64)
}

// versions of control groups: the files with what is limited and used, and the parts of memory.stat that can be reclaimed, and that are in
// volumes.
var versions = []struct{ limit, current, stat, inactive, shmem string }{
	{"memory.max", "memory.current", "memory.stat", "inactive_file", "shmem"},
	{"memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes", "memory/memory.stat", "total_inactive_file", "total_shmem"},
}

// OfContainer returns bytes: NaN for what is unknown, or not limited.
func OfContainer() (workingSet, limit float64) { return ofContainer(Cgroup) }

func ofContainer(dir string) (workingSet, limit float64) {
	workingSet, limit = math.NaN(), math.NaN()
	if bytes, limited := limitIn(dir); limited {
		limit = float64(bytes)
	}
	for _, v := range versions {
		current, err := readCgroup(dir, v.current)
		if err != nil {
			continue
		}
		if inactive, err := readStat(dir, v.stat, v.inactive); err == nil {
			workingSet = float64(max(current-inactive, 0))
		}
	}
	return workingSet, limit
}
