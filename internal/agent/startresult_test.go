package agent

import (
	"strings"
	"testing"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/agent/wire"
)

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
			got := assessStart(c.before, c.rejection, c.items, at)
			if got.Result != c.want || !strings.Contains(got.Reason, c.reason) || got.Items != c.items || got.At != at || got.ItemsBefore != c.before.itemsBefore() {
				t.Errorf("got %+v, want %s with %q", got, c.want, c.reason)
			}
		})
	}
}
