package datadir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
)

func TestItemsBeforeIgnoresTheRecordOfAnotherStop(t *testing.T) {
	file := &MetaFile{Stopped: 1_800_000_000}
	stopAt := func(second int64) Stop { return Stop{At: time.Unix(second, 0), Items: 7} }
	for name, c := range map[string]struct {
		saved Saved
		want  int64
	}{
		"recorded at the save":        {Saved{File: file, Last: stopAt(1_800_000_000)}, 7},
		"recorded before a slow save": {Saved{File: file, Last: stopAt(1_800_000_000 - 20)}, 7},
		"recorded at an earlier save": {Saved{File: file, Last: stopAt(1_800_000_000 - 60)}, 0},
		"no record":                   {Saved{File: file}, 0},
		"no saved items":              {Saved{Last: stopAt(1_800_000_000)}, 0},
	} {
		if got := c.saved.ItemsBefore(); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

func TestReadSavedDataRemovesUnusableMetadata(t *testing.T) {
	complete := meta(t, "1.6.45")
	for name, c := range map[string]struct {
		files                map[string]string
		usable, ran, damaged bool
	}{
		"nothing":                               {nil, false, false, false},
		"memory only":                           {map[string]string{"memory": ""}, false, true, false},
		"memory and metadata":                   {map[string]string{"memory": "", "memory.meta": complete}, true, true, false},
		"metadata without memory":               {map[string]string{"memory.meta": complete}, false, false, true},
		"truncated metadata":                    {map[string]string{"memory": "", "memory.meta": complete[:50]}, false, true, true},
		"too large metadata":                    {map[string]string{"memory": "", "memory.meta": complete + strings.Repeat("K", 64<<10)}, false, true, true},
		"an unreadable record of the last stop": {map[string]string{"memory": "", "memory.meta": complete, "last-stop.json": "{"}, true, true, false},
		"a partial file of the agent":           {map[string]string{"memory": "", "memory.meta": complete, "memory.meta.part": "T"}, true, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for name, text := range c.files {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			got, err := Read(dir)
			if err != nil || (got.File != nil) != c.usable || got.Ran != c.ran || (got.damage != "") != c.damaged {
				t.Errorf("got %+v, %v", got, err)
			}
			if _, err := os.Stat(MetaPath(dir)); c.damaged != (errors.Is(err, os.ErrNotExist) && c.files["memory.meta"] != "") {
				t.Errorf("memory.meta: %v", err)
			}
		})
	}
}

func TestItemsOfAnInterruptedHandoverAreRemoved(t *testing.T) {
	for phase, c := range map[wire.Phase]struct{ ran, damaged bool }{
		wire.PhaseReceiving: {false, false},
		wire.PhaseServing:   {true, true}, // clients have used the pod, so that it must not receive older items
	} {
		dir := t.TempDir()
		for name, text := range map[string]string{"memory": "items", "memory.meta": meta(t, "1.6.45")} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := MarkReception(dir, phase); err != nil {
			t.Fatal(err)
		}
		for range 2 { // the second container may be interrupted too
			got, err := Read(dir)
			if err != nil || got.File != nil || got.Ran != c.ran || (got.damage != "") != c.damaged {
				t.Errorf("%s: %+v, %v", phase, got, err)
			}
			for _, path := range []string{MemoryPath(dir), MetaPath(dir)} {
				if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
					t.Errorf("%s: %s still exists: %v", phase, path, err)
				}
			}
		}
		if err := errors.Join(UnmarkReception(dir), UnmarkReception(dir)); err != nil {
			t.Error(err)
		}
		if got, err := Read(dir); err != nil || got.Ran || got.damage != "" {
			t.Errorf("%s, and complete: %+v, %v", phase, got, err)
		}
	}
}

func TestLastStopSurvivesWriteAndRead(t *testing.T) {
	dir := t.TempDir()
	want := Stop{At: time.Unix(1_800_000_000, 0).UTC(), Items: 5, Version: "1.6.45", Arguments: []string{"-m", "64"}, Announced: "token"}
	if err := WriteStop(dir, want); err != nil {
		t.Fatal(err)
	}
	if got := readLastStop(dir); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestStartIsWarmIfMemcachedLoadedTheSavedItems(t *testing.T) {
	at := time.Unix(1_800_000_010, 0)
	file := &MetaFile{Stopped: 1_800_000_000}
	last := Stop{At: time.Unix(1_800_000_000, 0), Items: 100}
	for name, c := range map[string]struct {
		before    Saved
		rejection string
		items     int64
		want      wire.StartResult
		reason    string
	}{
		"all items are loaded":                 {Saved{File: file, Ran: true, Last: last}, "", 100, wire.StartWarm, "loaded the saved items"},
		"some items expired":                   {Saved{File: file, Ran: true, Last: last}, "", 3, wire.StartWarm, "loaded the saved items"},
		"none were saved":                      {Saved{File: file, Ran: true}, "", 0, wire.StartWarm, "loaded the saved items"},
		"none of many are loaded":              {Saved{File: file, Ran: true, Last: last}, "", 0, wire.StartCold, "loaded none of the 100 saved items"},
		"memcached rejected them":              {Saved{File: file, Ran: true, Last: last}, "restart incompatible", 0, wire.StartCold, "rejected the saved items: restart incompatible"},
		"this pod never ran":                   {Saved{}, "no metadata save file", 0, wire.StartCold, "first start of this pod"},
		"memcached exited without a save":      {Saved{Ran: true, Last: last}, "no metadata save file", 0, wire.StartCold, "did not save its items at its last stop"},
		"memory.meta is truncated":             {Saved{Ran: true, damage: "it is empty", Last: last}, "", 0, wire.StartCold, "removed: it is empty"},
		"clients wrote items during the start": {Saved{Ran: true}, "", 5, wire.StartCold, "did not save"},
		"memcached printed another message":    {Saved{File: file, Ran: true, Last: last}, "", 100, wire.StartWarm, "loaded the saved items"},
	} {
		t.Run(name, func(t *testing.T) {
			got := AssessStart(c.before, c.rejection, &protocol.General{Items: c.items}, at)
			if got.Result != c.want || !strings.Contains(got.Reason, c.reason) || got.Items != c.items || got.At != at || got.ItemsBefore != c.before.ItemsBefore() {
				t.Errorf("got %+v, want %s with %q", got, c.want, c.reason)
			}
		})
	}
	got := AssessStart(Saved{File: file, Ran: true, Last: last}, "", nil, at)
	if got.Result != wire.StartWarm || got.Items != 100 {
		t.Errorf("without statistics: %+v", got)
	}
	if got := AssessStart(Saved{File: file, Ran: true, Last: last}, "restart incompatible", nil, at); got.Result != wire.StartCold || got.Items != 0 {
		t.Errorf("without statistics, after a rejection: %+v", got)
	}
}
