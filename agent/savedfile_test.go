package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/geometry"
)

// testdata/meta/<version> is what that version wrote with -m 64.
func meta(t testing.TB, version string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "meta", version))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestSavedFilesOfEveryVersion(t *testing.T) {
	for version, hasOldestCAS := range map[string]bool{"1.6.18": true, "1.6.38": false, "1.6.45": false} {
		t.Run(version, func(t *testing.T) {
			file, err := parseSavedFile(meta(t, version))
			if err != nil {
				t.Fatal(err)
			}
			if file.hasOldestCAS != hasOldestCAS || file.stopped < 1700000000 {
				t.Errorf("oldest CAS %v, stopped %d", file.hasOldestCAS, file.stopped)
			}
			if differs := file.geometry.Difference(geometry.Of([]string{"-m", "64"}, version)); differs != "" {
				t.Errorf("the arguments that made it differ in %s", differs)
			}
		})
	}
}

func TestASavedFileThatMemcachedWouldChokeOn(t *testing.T) {
	whole := meta(t, "1.6.45")
	for name, text := range map[string]string{
		"empty":                      "",
		"no tag":                     strings.TrimPrefix(whole, "Tmain\n"),
		"cut in the last line":       strings.TrimSuffix(whole, "0\n"),
		"an empty line":              whole + "\n",
		"a line of another kind":     whole + "Xhello 1\n",
		"a line without a value":     whole + "Khello\n",
		"a size that is no number":   strings.Replace(whole, "Kmaxbytes 6", "Kmaxbytes x6", 1),
		"a size beyond any number":   strings.Replace(whole, "Kmaxbytes 6", "Kmaxbytes 66666666666666666666", 1),
		"a stop that is no number":   strings.Replace(whole, "Kstop_time 1", "Kstop_time x1", 1),
		"another program's settings": "Tmain\nKname value\n",
	} {
		if _, err := parseSavedFile(text); err == nil {
			t.Errorf("%s: taken for whole", name)
		}
	}
	for _, name := range requiredLines {
		without := ""
		for _, line := range strings.SplitAfter(whole, "\n") {
			if !strings.HasPrefix(line, "K"+name+" ") {
				without += line
			}
		}
		if _, err := parseSavedFile(without); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("without %s: %v", name, err)
		}
	}
}

// What is read can be read again after it was made fit, and then fits at once.
func FuzzSavedFile(f *testing.F) {
	for _, version := range []string{"1.6.18", "1.6.38", "1.6.45"} {
		f.Add(meta(f, version), int64(1_800_000_000), int64(100_000))
	}
	f.Add("", int64(0), int64(0))
	f.Add("Tmain\nKa b\n", int64(0), int64(1))
	f.Fuzz(func(t *testing.T, text string, now, items int64) {
		file, err := parseSavedFile(text)
		// Years beyond what a clock can show are not told from each other.
		if err != nil || now < 0 || now > 1<<33 || file.stopped < 0 || file.stopped > 1<<33 {
			return
		}
		fit, wait := file.fit(time.Unix(now, 0), items)
		if wait < 0 || wait > clockStep {
			t.Errorf("a wait of %s", wait)
		}
		again, err := parseSavedFile(fit)
		if err != nil || !again.hasOldestCAS || again.geometry != file.geometry || again.hashPower < file.hashPower {
			t.Errorf("%q made fit is %q, %v", text, fit, err)
		}
	})
}

func TestWhenAndHowASavedFileFits(t *testing.T) {
	const stop = 1_800_000_000
	text := meta(t, "1.6.45")
	file, err := parseSavedFile(text)
	if err != nil {
		t.Fatal(err)
	}
	text = strings.Replace(text, fmt.Sprintf("Kstop_time %d", file.stopped), fmt.Sprintf("Kstop_time %d", stop), 1)
	if file, err = parseSavedFile(text); err != nil {
		t.Fatal(err)
	}
	at := func(second int64, ms int) time.Time { return time.Unix(second, int64(ms)*1e6) }
	for name, c := range map[string]struct {
		now     time.Time
		wait    time.Duration
		stopped int64
	}{
		"in the second of the stop":         {at(stop, 300), 700 * time.Millisecond, stop},
		"at its very beginning":             {at(stop, 0), time.Second, stop},
		"at its very end":                   {at(stop, 999), time.Millisecond, stop},
		"in the second after it":            {at(stop+1, 0), 0, stop},
		"an hour after it":                  {at(stop+3600, 0), 0, stop},
		"with a clock that lags a little":   {at(stop-1, 0), 2 * time.Second, stop},
		"with a clock that was set back":    {at(stop-2, 0), 0, stop - 3},
		"with a clock that was set far off": {at(stop-100000, 0), 0, stop - 100001},
	} {
		t.Run(name, func(t *testing.T) {
			text, wait := file.fit(c.now, 0)
			got, err := parseSavedFile(text)
			if err != nil || wait != c.wait || got.stopped != c.stopped || !got.hasOldestCAS {
				t.Errorf("wait %s, stopped %d, oldest CAS %v, %v; want %s, %d", wait, got.stopped, got.hasOldestCAS, err, c.wait, c.stopped)
			}
			if again, _ := got.fit(c.now.Add(wait), 0); again != text {
				t.Error("what was made fit does not fit")
			}
		})
	}
}

func TestTheHashTableIsLargeEnough(t *testing.T) {
	file, err := parseSavedFile(meta(t, "1.6.45")) // a table of 2^16
	if err != nil {
		t.Fatal(err)
	}
	for items, want := range map[int64]int64{
		0: 16, 1000: 16, 78_000: 16, 79_000: 17, 98_305: 17, 157_000: 17, 158_000: 18, 1_000_000: 20, 1 << 60: 32,
	} {
		text, _ := file.fit(time.Unix(file.stopped+1, 0), items)
		got, err := parseSavedFile(text)
		if err != nil || got.hashPower != want {
			t.Errorf("%d items: a table of 2^%d, want 2^%d: %v", items, got.hashPower, want, err)
		}
	}
}

func TestItemsBeforeAreThoseOfThisSave(t *testing.T) {
	file := &savedFile{stopped: 1_800_000_000}
	note := func(second int64) lastStop { return lastStop{At: time.Unix(second, 0), Items: 7} }
	for name, c := range map[string]struct {
		saved saved
		want  int64
	}{
		"noted at the save":               {saved{file: file, last: note(1_800_000_000)}, 7},
		"a save that took a while":        {saved{file: file, last: note(1_800_000_000 - 20)}, 7},
		"noted at a save before this one": {saved{file: file, last: note(1_800_000_000 - 60)}, 0},
		"nothing was noted":               {saved{file: file}, 0},
		"nothing was saved":               {saved{last: note(1_800_000_000)}, 0},
	} {
		if got := c.saved.itemsBefore(); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

func TestReadSaved(t *testing.T) {
	whole := meta(t, "1.6.45")
	for name, c := range map[string]struct {
		files              map[string]string
		fits, ran, damaged bool
	}{
		"nothing":                          {nil, false, false, false},
		"memory only":                      {map[string]string{"memory": ""}, false, true, false},
		"memory and metadata":              {map[string]string{"memory": "", "memory.meta": whole}, true, true, false},
		"metadata without memory":          {map[string]string{"memory.meta": whole}, false, false, true},
		"metadata cut short":               {map[string]string{"memory": "", "memory.meta": whole[:50]}, false, true, true},
		"metadata without an end":          {map[string]string{"memory": "", "memory.meta": whole + strings.Repeat("K", maxSavedFile)}, false, true, true},
		"a note that cannot be read":       {map[string]string{"memory": "", "memory.meta": whole, "last-stop.json": "{"}, true, true, false},
		"a rest of a write of the agent's": {map[string]string{"memory": "", "memory.meta": whole, "memory.meta.part": "T"}, true, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for name, text := range c.files {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			got, err := readSaved(dir)
			if err != nil || (got.file != nil) != c.fits || got.ran != c.ran || (got.damage != "") != c.damaged {
				t.Errorf("got %+v, %v", got, err)
			}
			if _, err := os.Stat(metaPath(dir)); c.damaged != (errors.Is(err, os.ErrNotExist) && c.files["memory.meta"] != "") {
				t.Errorf("memory.meta: %v", err)
			}
		})
	}
}

func TestTheNoteOfAStopIsReadAsItWasWritten(t *testing.T) {
	dir := t.TempDir()
	want := lastStop{At: time.Unix(1_800_000_000, 0).UTC(), Items: 5, Version: "1.6.45", Arguments: []string{"-m", "64"}, Announced: "token"}
	if err := writeLastStop(dir, want); err != nil {
		t.Fatal(err)
	}
	if got := readLastStop(dir); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
