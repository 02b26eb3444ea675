package agent

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
	file := &metaFile{stopped: 1_800_000_000}
	stopAt := func(second int64) lastStop { return lastStop{At: time.Unix(second, 0), Items: 7} }
	for name, c := range map[string]struct {
		saved savedData
		want  int64
	}{
		"recorded at the save":        {savedData{file: file, last: stopAt(1_800_000_000)}, 7},
		"recorded before a slow save": {savedData{file: file, last: stopAt(1_800_000_000 - 20)}, 7},
		"recorded at an earlier save": {savedData{file: file, last: stopAt(1_800_000_000 - 60)}, 0},
		"no record":                   {savedData{file: file}, 0},
		"no saved items":              {savedData{last: stopAt(1_800_000_000)}, 0},
	} {
		if got := c.saved.itemsBefore(); got != c.want {
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
			got, err := readSavedData(dir)
			if err != nil || (got.file != nil) != c.usable || got.ran != c.ran || (got.damage != "") != c.damaged {
				t.Errorf("got %+v, %v", got, err)
			}
			if _, err := os.Stat(metaPath(dir)); c.damaged != (errors.Is(err, os.ErrNotExist) && c.files["memory.meta"] != "") {
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
		if err := markReception(dir, phase); err != nil {
			t.Fatal(err)
		}
		for range 2 { // the second container may be interrupted too
			got, err := readSavedData(dir)
			if err != nil || got.file != nil || got.ran != c.ran || (got.damage != "") != c.damaged {
				t.Errorf("%s: %+v, %v", phase, got, err)
			}
			for _, path := range []string{memoryPath(dir), metaPath(dir)} {
				if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
					t.Errorf("%s: %s still exists: %v", phase, path, err)
				}
			}
		}
		if err := errors.Join(unmarkReception(dir), unmarkReception(dir)); err != nil {
			t.Error(err)
		}
		if got, err := readSavedData(dir); err != nil || got.ran || got.damage != "" {
			t.Errorf("%s, and complete: %+v, %v", phase, got, err)
		}
	}
}

func TestLastStopSurvivesWriteAndRead(t *testing.T) {
	dir := t.TempDir()
	want := lastStop{At: time.Unix(1_800_000_000, 0).UTC(), Items: 5, Version: "1.6.45", Arguments: []string{"-m", "64"}, Announced: "token"}
	if err := writeLastStop(dir, want); err != nil {
		t.Fatal(err)
	}
	if got := readLastStop(dir); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestStartIsWarmIfMemcachedLoadedTheSavedItems(t *testing.T) {
	at := time.Unix(1_800_000_010, 0)
	file := &metaFile{stopped: 1_800_000_000}
	last := lastStop{At: time.Unix(1_800_000_000, 0), Items: 100}
	for name, c := range map[string]struct {
		before    savedData
		rejection string
		items     int64
		want      wire.StartResult
		reason    string
	}{
		"all items are loaded":                 {savedData{file: file, ran: true, last: last}, "", 100, wire.StartWarm, "loaded the saved items"},
		"some items expired":                   {savedData{file: file, ran: true, last: last}, "", 3, wire.StartWarm, "loaded the saved items"},
		"none were saved":                      {savedData{file: file, ran: true}, "", 0, wire.StartWarm, "loaded the saved items"},
		"none of many are loaded":              {savedData{file: file, ran: true, last: last}, "", 0, wire.StartCold, "loaded none of the 100 saved items"},
		"memcached rejected them":              {savedData{file: file, ran: true, last: last}, "restart incompatible", 0, wire.StartCold, "rejected the saved items: restart incompatible"},
		"this pod never ran":                   {savedData{}, "no metadata save file", 0, wire.StartCold, "first start of this pod"},
		"memcached exited without a save":      {savedData{ran: true, last: last}, "no metadata save file", 0, wire.StartCold, "did not save its items at its last stop"},
		"memory.meta is truncated":             {savedData{ran: true, damage: "it is empty", last: last}, "", 0, wire.StartCold, "removed: it is empty"},
		"clients wrote items during the start": {savedData{ran: true}, "", 5, wire.StartCold, "did not save"},
		"memcached printed another message":    {savedData{file: file, ran: true, last: last}, "", 100, wire.StartWarm, "loaded the saved items"},
	} {
		t.Run(name, func(t *testing.T) {
			got := assessStart(c.before, c.rejection, &protocol.General{Items: c.items}, at)
			if got.Result != c.want || !strings.Contains(got.Reason, c.reason) || got.Items != c.items || got.At != at || got.ItemsBefore != c.before.itemsBefore() {
				t.Errorf("got %+v, want %s with %q", got, c.want, c.reason)
			}
		})
	}
	got := assessStart(savedData{file: file, ran: true, last: last}, "", nil, at)
	if got.Result != wire.StartWarm || got.Items != 100 {
		t.Errorf("without statistics: %+v", got)
	}
	if got := assessStart(savedData{file: file, ran: true, last: last}, "restart incompatible", nil, at); got.Result != wire.StartCold || got.Items != 0 {
		t.Errorf("without statistics, after a rejection: %+v", got)
	}
}
