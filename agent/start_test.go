package main

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/agentapi"
)

func TestHowAStartIsJudged(t *testing.T) {
	at := time.Unix(1_800_000_010, 0)
	file := &savedFile{stopped: 1_800_000_000}
	last := lastStop{At: time.Unix(1_800_000_000, 0), Items: 100}
	for name, c := range map[string]struct {
		before  saved
		refusal string
		items   int64
		want    agentapi.StartResult
		reason  string
	}{
		"all items are there":             {saved{file: file, ran: true, last: last}, "", 100, agentapi.StartWarm, "took up the items"},
		"some ran out meanwhile":          {saved{file: file, ran: true, last: last}, "", 3, agentapi.StartWarm, "took up the items"},
		"none were there before":          {saved{file: file, ran: true}, "", 0, agentapi.StartWarm, "took up the items"},
		"none of many are there":          {saved{file: file, ran: true, last: last}, "", 0, agentapi.StartCold, "none of the 100 saved items"},
		"memcached refused them":          {saved{file: file, ran: true, last: last}, "restart incompatible", 0, agentapi.StartCold, "refused what it had saved: restart incompatible"},
		"nothing was ever there":          {saved{}, "no metadata save file", 0, agentapi.StartCold, "first start of this pod"},
		"it ended without a save":         {saved{ran: true, last: last}, "no metadata save file", 0, agentapi.StartCold, "did not save before its last stop"},
		"what was saved was cut short":    {saved{ran: true, damage: "it is empty", last: last}, "", 0, agentapi.StartCold, "removed: it is empty"},
		"items came between the two":      {saved{ran: true}, "", 5, agentapi.StartCold, "did not save"},
		"a word of it that is no refusal": {saved{file: file, ran: true, last: last}, "", 100, agentapi.StartWarm, "took up"},
	} {
		t.Run(name, func(t *testing.T) {
			got := judgeStart(c.before, c.refusal, c.items, at)
			if got.Result != c.want || !strings.Contains(got.Reason, c.reason) || got.Items != c.items || got.At != at || got.ItemsBefore != c.before.itemsBefore() {
				t.Errorf("got %+v, want %s with %q", got, c.want, c.reason)
			}
		})
	}
}

// The lines are those of 1.6.18 to 1.6.45.
func TestWhatMemcachedSaysOfItsItems(t *testing.T) {
	for name, c := range map[string]struct{ text, refusal, last string }{
		"nothing":                               {"", "", ""},
		"a line of a newer version passed over": {"[restart] unknown/unhandled key: oldest_cas\n", "", "[restart] unknown/unhandled key: oldest_cas"},
		"another setting": {
			"[restart] restart incompatible due to setting for [maxbytes] [old value: 67108864]\n[restart] missing some metadata lines\n[restart] failed to validate metadata, starting with a clean cache\n",
			"restart incompatible due to setting for [maxbytes] [old value: 67108864]", "[restart] failed to validate metadata, starting with a clean cache"},
		"a line that an old version demands": {
			"[restart] missing some metadata lines\n[restart] failed to validate metadata, starting with a clean cache\n",
			"failed to validate metadata, starting with a clean cache", "[restart] failed to validate metadata, starting with a clean cache"},
		"extstore": {"[restart] memory restart with extstore not presently supported.\n",
			"memory restart with extstore not presently supported.", "[restart] memory restart with extstore not presently supported."},
		"a last line without an end": {"one\ntwo", "", "two"},
		"empty lines":                {"one\n\n \n", "", "one"},
		"a very long line":           {strings.Repeat("x", 10_000) + "\n", "", strings.Repeat("x", saidLine)},
	} {
		t.Run(name, func(t *testing.T) {
			s := &said{out: io.Discard}
			// However it arrives.
			for i := range len(c.text) {
				if _, err := s.Write([]byte(c.text[i : i+1])); err != nil {
					t.Fatal(err)
				}
			}
			if s.refusal() != c.refusal || s.lastLine() != c.last {
				t.Errorf("refusal %q, last line %q", s.refusal(), s.lastLine())
			}
		})
	}
}

func TestARestartBeginsLateInASecond(t *testing.T) {
	for ms, want := range map[int]time.Duration{0: 850, 849: 1, 850: 0, 851: 0, 999: 0} {
		if got := untilLateInSecond(time.Unix(1_800_000_000, int64(ms)*1e6)); got != want*time.Millisecond {
			t.Errorf("at %d ms: %s, want %d ms", ms, got, want)
		}
	}
}
