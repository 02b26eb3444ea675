package datadir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/memcached/memfile"
	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
	"github.com/memcached-operator/memcached-operator/internal/memcached/slab"
)

// meta returns testdata/meta/<version>, which that version wrote with -m 64.
func meta(t testing.TB, version string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "meta", version))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestParseMetaFileOfEveryVersion(t *testing.T) {
	for version, hasOldestCAS := range map[string]bool{"1.6.18": true, "1.6.38": false, "1.6.45": false} {
		t.Run(version, func(t *testing.T) {
			file, err := parseMetaFile(meta(t, version))
			if err != nil {
				t.Fatal(err)
			}
			if file.hasOldestCAS != hasOldestCAS || file.Stopped < 1700000000 {
				t.Errorf("oldest CAS %v, stopped %d", file.hasOldestCAS, file.Stopped)
			}
			if differs := file.Geometry.Difference(slab.Of([]string{"-m", "64"}, version)); differs != "" {
				t.Errorf("its arguments differ in %s", differs)
			}
		})
	}
}

func TestParseMetaFileRejectsFilesThatMakeMemcachedAbort(t *testing.T) {
	complete := meta(t, "1.6.45")
	for name, text := range map[string]string{
		"empty":                      "",
		"no tag":                     strings.TrimPrefix(complete, "Tmain\n"),
		"truncated in the last line": strings.TrimSuffix(complete, "0\n"),
		"an empty line":              complete + "\n",
		"an unknown line type":       complete + "Xhello 1\n",
		"a line without a value":     complete + "Khello\n",
		"an invalid size":            strings.Replace(complete, "Kmaxbytes 6", "Kmaxbytes x6", 1),
		"an overflowing size":        strings.Replace(complete, "Kmaxbytes 6", "Kmaxbytes 66666666666666666666", 1),
		"an invalid stop time":       strings.Replace(complete, "Kstop_time 1", "Kstop_time x1", 1),
		"an invalid oldest CAS":      complete + "Koldest_cas x\n",
		"another program's settings": "Tmain\nKname value\n",
	} {
		if _, err := parseMetaFile(text); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	for _, name := range requiredLines {
		without := ""
		for _, line := range strings.SplitAfter(complete, "\n") {
			if !strings.HasPrefix(line, "K"+name+" ") {
				without += line
			}
		}
		if _, err := parseMetaFile(without); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("without %s: %v", name, err)
		}
	}
}

// An adjusted file is valid and needs no second adjustment.
func FuzzMetaFile(f *testing.F) {
	for _, version := range []string{"1.6.18", "1.6.38", "1.6.45"} {
		f.Add(meta(f, version), int64(1_800_000_000), int64(100_000))
	}
	f.Add("", int64(0), int64(0))
	f.Add("Tmain\nKa b\n", int64(0), int64(1))
	f.Fuzz(func(t *testing.T, text string, now, items int64) {
		file, err := parseMetaFile(text)
		// Durations overflow for years beyond that.
		if err != nil || now < 0 || now > 1<<33 || file.Stopped < 0 || file.Stopped > 1<<33 {
			return
		}
		adjusted := file.adjust(time.Unix(now, 0), items)
		again, err := parseMetaFile(adjusted)
		if err != nil || again.Stopped >= max(now, 1) || again.Stopped > file.Stopped || !again.hasOldestCAS || again.Geometry != file.Geometry || again.hashPower < file.hashPower {
			t.Errorf("%q adjusted is %q, %v", text, adjusted, err)
		}
	})
}

// memcached adds the time since the stop to its clock, and rejects a file with less than a second.
func TestAdjustCountsAtLeastOneSecondSinceTheStop(t *testing.T) {
	const stop = 1_800_000_000
	text := meta(t, "1.6.45")
	file, err := parseMetaFile(text)
	if err != nil {
		t.Fatal(err)
	}
	text = strings.Replace(text, fmt.Sprintf("Kstop_time %d", file.Stopped), fmt.Sprintf("Kstop_time %d", stop), 1)
	if file, err = parseMetaFile(text); err != nil {
		t.Fatal(err)
	}
	at := func(second int64, ms int) time.Time { return time.Unix(second, int64(ms)*1e6) }
	for name, c := range map[string]struct {
		now     time.Time
		stopped int64
	}{
		"in the second of the stop":          {at(stop, 300), stop - 1},
		"at the beginning of that second":    {at(stop, 0), stop - 1},
		"at the end of that second":          {at(stop, 999), stop - 1},
		"in the next second":                 {at(stop+1, 0), stop},
		"an hour later":                      {at(stop+3600, 0), stop},
		"with a clock that was set back":     {at(stop-1, 0), stop - 2},
		"with a clock that was set far back": {at(stop-100000, 0), stop - 100001},
	} {
		t.Run(name, func(t *testing.T) {
			text := file.adjust(c.now, 0)
			got, err := parseMetaFile(text)
			if err != nil || got.Stopped != c.stopped || !got.hasOldestCAS {
				t.Errorf("stopped %d, oldest CAS %v, %v; want %d", got.Stopped, got.hasOldestCAS, err, c.stopped)
			}
			if got.adjust(c.now, 0) != text {
				t.Error("the adjusted file needs an adjustment")
			}
		})
	}
}

func TestAdjustEnlargesTheHashTable(t *testing.T) {
	file, err := parseMetaFile(meta(t, "1.6.45")) // a table of 2^16
	if err != nil {
		t.Fatal(err)
	}
	for items, want := range map[int64]int64{
		0: 16, 1000: 16, 78_000: 16, 79_000: 17, 98_305: 17, 157_000: 17, 158_000: 18, 1_000_000: 20, 1 << 60: 32,
	} {
		text := file.adjust(time.Unix(file.Stopped+1, 0), items)
		got, err := parseMetaFile(text)
		if err != nil || got.hashPower != want {
			t.Errorf("%d items: a table of 2^%d, want 2^%d: %v", items, got.hashPower, want, err)
		}
	}
}

// It stands still while memcached gets no processor time between its last tick and the save.
func TestCatchUpCountsWhatTheClockMissedToTheTimeSinceTheStop(t *testing.T) {
	file, err := parseMetaFile(meta(t, "1.6.45"))
	if err != nil {
		t.Fatal(err)
	}
	stop := time.Unix(file.Stopped, 0)
	right := stop.Add(-time.Duration(file.Clock) * time.Second)
	for name, c := range map[string]struct {
		zero time.Time
		now  time.Time
		want int64
	}{
		"a clock that is right":          {right, stop.Add(time.Second), 0},
		"a clock that is 6 s behind":     {right.Add(-6 * time.Second), stop.Add(time.Second), 6},
		"an exit long after the save":    {right.Add(-6 * time.Second), stop.Add(time.Minute), 6},
		"a reading that was itself late": {right.Add(3 * time.Second), stop.Add(time.Second), 0},
	} {
		t.Run(name, func(t *testing.T) {
			text := file.catchUp(protocol.Clock{Zero: c.zero}, c.now)
			got, err := parseMetaFile(text)
			if err != nil || file.Stopped-got.Stopped != c.want || got.Clock != file.Clock {
				t.Errorf("the stop is %d s earlier, %v; want %d", file.Stopped-got.Stopped, err, c.want)
			}
		})
	}
}

func TestClockAdvancesWhileMemcachedIsStopped(t *testing.T) {
	zero := protocol.Clock{Zero: time.Unix(1000, 0), Started: 1000}
	file := MetaFile{Clock: 164, started: 1000, Stopped: 1164, oldestLive: 90}
	flushed, late := file, file
	flushed.oldestCAS = 7 // before 1.6.25
	late.Clock = 158      // it stood still for 6 seconds before it stopped
	for name, c := range map[string]struct {
		file MetaFile
		now  int64
		want memfile.Clock
	}{
		"at once":                  {file, 1164, memfile.Clock{Clock: zero, Now: 164, OldestLive: 90}},
		"later":                    {file, 1174, memfile.Clock{Clock: zero, Now: 174, OldestLive: 90}},
		"the wall clock was reset": {file, 11, memfile.Clock{Clock: zero, Now: 164, OldestLive: 90}},
		"before 1.6.25":            {flushed, 1164, memfile.Clock{Clock: zero, Now: 164, OldestLive: 90, OldestCAS: 7}},
	} {
		if got := c.file.clockAt(time.Unix(c.now, 0)); got != c.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if late.clockAt(time.Unix(1164, 0)).Best(zero) != zero {
		t.Error("a better reading of the clock is not used")
	}
}

func TestUnreadCASSeedIsNoDamage(t *testing.T) {
	dir := t.TempDir()
	if err := SeedCAS(dir); err != nil {
		t.Fatal(err)
	}
	got, err := Read(dir)
	if err != nil || got.File != nil || got.Ran || got.damage != "" {
		t.Errorf("got %+v, %v", got, err)
	}
	if _, err := os.Stat(MetaPath(dir)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the seed is still there: %v", err)
	}
}

func TestCASOfEachPodBeginsElsewhere(t *testing.T) {
	seen := map[string]bool{}
	for range 20 {
		dir := t.TempDir()
		if err := SeedCAS(dir); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(dir, "memory.meta"))
		if err != nil {
			t.Fatal(err)
		}
		var base uint64
		if n, err := fmt.Sscanf(string(text), "Tmain\nKcurrent_cas %d\n", &base); n != 1 || err != nil || base < 1<<40 || base > 1<<60 || base%(1<<40) != 0 {
			t.Errorf("%q: base %d, %v", text, base, err)
		}
		seen[string(text)] = true
	}
	if len(seen) < 15 {
		t.Errorf("20 pods have only %d different counters", len(seen))
	}
}
