package memory

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"testing"
)

// cgroup is a directory with these files.
func cgroup(t *testing.T, files map[string]string) string {
	dir := t.TempDir()
	for file, text := range files {
		if err := errors.Join(os.MkdirAll(filepath.Join(dir, filepath.Dir(file)), 0o700), os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestTableOfAHandoverNeedsRoomInTheContainer(t *testing.T) {
	const volume = 100
	for name, c := range map[string]struct {
		files   map[string]string
		free    int64
		limited bool
	}{
		"limited":         {map[string]string{"memory.max": "1000\n", "memory.current": "400\n"}, 600, true},
		"not limited":     {map[string]string{"memory.max": "max\n", "memory.current": "400\n"}, 0, false},
		"no file":         {nil, 0, false},
		"over its limits": {map[string]string{"memory.max": "1000\n", "memory.current": "1400\n"}, -400, true},
		"with few items":  {map[string]string{"memory.max": "1000\n", "memory.current": "400\n", "memory.stat": "anon 370\nshmem 30\n"}, 600 - (volume - 30), true},
		"full of items":   {map[string]string{"memory.max": "1000\n", "memory.current": "400\n", "memory.stat": "anon 270\nshmem 130\n"}, 600, true},
		"version 1": {map[string]string{"memory/memory.limit_in_bytes": "1000\n", "memory/memory.usage_in_bytes": "400\n",
			"memory/memory.stat": "shmem 1\ntotal_shmem 30\n"}, 600 - (volume - 30), true},
		"not limited, version 1": {map[string]string{"memory/memory.limit_in_bytes": "9223372036854771712\n", "memory/memory.usage_in_bytes": "400\n"}, 0, false},
	} {
		dir := cgroup(t, c.files)
		if free, limited := freeInCgroup(dir, volume); free != c.free || limited != c.limited {
			t.Errorf("%s: %d free, limited %t", name, free, limited)
		}
	}
}

func TestMemcachedGetsWhatItsVolumeAndTheAgentLeave(t *testing.T) {
	const mebibyte = 1 << 20
	for name, c := range map[string]struct {
		file, maximum     string
		volume, forwarded int64
		want              int64
		limited           bool
	}{
		"not limited":          {"memory.max", "max", 64 * mebibyte, 0, 0, false},
		"limited":              {"memory.max", "268435456", 128 * mebibyte, 0, (256-128-16-8)*mebibyte - mebibyte/2, true},
		"with a forwarder":     {"memory.max", "268435456", 128 * mebibyte, 24 * mebibyte, (256-128-24-16-8)*mebibyte - mebibyte/2, true},
		"less than its volume": {"memory.max", "67108864", 128 * mebibyte, 0, 16 * mebibyte, true},
		"version 1":            {"memory/memory.limit_in_bytes", "67108864", 128 * mebibyte, 0, 16 * mebibyte, true},
		"no file":              {"none", "", 128 * mebibyte, 0, 0, false},
	} {
		dir := cgroup(t, map[string]string{c.file: c.maximum + "\n"})
		if got, limited := forMemcached(dir, c.volume, c.forwarded); got != c.want || limited != c.limited {
			t.Errorf("%s: %d, limited %t", name, got, limited)
		}
	}
}

func TestMemoryOfTheContainerIsReadFromBothVersionsOfControlGroups(t *testing.T) {
	unknown := math.NaN()
	for name, c := range map[string]struct {
		files             map[string]string
		workingSet, limit float64
	}{
		"version 2": {map[string]string{"memory.max": "1000\n", "memory.current": "400\n", "memory.stat": "anon 1\ninactive_file 100\n"}, 300, 1000},
		"version 1": {map[string]string{"memory/memory.limit_in_bytes": "1000\n", "memory/memory.usage_in_bytes": "400\n",
			"memory/memory.stat": "inactive_file 1\ntotal_inactive_file 100\n"}, 300, 1000},
		"not limited":            {map[string]string{"memory.max": "max\n", "memory.current": "400\n", "memory.stat": "inactive_file 500\n"}, 0, unknown},
		"not limited, version 1": {map[string]string{"memory/memory.limit_in_bytes": "9223372036854771712\n"}, unknown, unknown},
		"no file":                {nil, unknown, unknown},
	} {
		workingSet, limit := ofContainer(cgroup(t, c.files))
		for _, of := range [][2]float64{{workingSet, c.workingSet}, {limit, c.limit}} {
			if got, want := of[0], of[1]; got != want && !(math.IsNaN(got) && math.IsNaN(want)) {
				t.Errorf("%s: %v and %v, want %v and %v", name, workingSet, limit, c.workingSet, c.limit)
			}
		}
	}
}

func TestLimitIsTheSumOfWhatPartsUse(t *testing.T) {
	limit := func() int64 { return debug.SetMemoryLimit(-1) }
	before := limit()
	t.Cleanup(func() { used.limited = false; debug.SetMemoryLimit(before); debug.SetGCPercent(100) })
	if Use(1 << 20)(); limit() != before {
		t.Errorf("without Limit, the limit is %d", limit())
	}
	Limit()
	table, ok := Reserve(1<<20, 0)
	forwarder := Use(3 << 20)
	if all := int64(forAll + Handover + 4<<20); !ok || limit() != all {
		t.Errorf("%d bytes, want %d, %t", limit(), all, ok)
	}
	table()
	table()
	if rest := int64(forAll + 3<<20); limit() != rest {
		t.Errorf("after the handover %d bytes, want %d", limit(), rest)
	}
	if forwarder(); limit() != forAll {
		t.Errorf("in the end %d bytes, want %d", limit(), int64(forAll))
	}
}
