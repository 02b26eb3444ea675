package agent

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
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
		"too large metadata":                    {map[string]string{"memory": "", "memory.meta": complete + strings.Repeat("K", maxMetaFileBytes)}, false, true, true},
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
