package agent

import (
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/agent/datadir"
	"github.com/memcached-operator/memcached-operator/internal/agent/process"
	"github.com/memcached-operator/memcached-operator/internal/agent/secrets"
	"github.com/memcached-operator/memcached-operator/internal/memcached/slab"
)

// Here every dry run fails.
func TestNewAgentSelectsArgumentsThatKeepTheSavedItems(t *testing.T) {
	at := time.Unix(1_800_000_000, 0)
	metaFor := func(words ...string) *datadir.MetaFile { return &datadir.MetaFile{Geometry: slab.Of(words, "1.6.45")} }
	m64, m128 := []string{"-m", "64"}, []string{"-m", "128"}
	stopOf := func(version string, args ...string) datadir.Stop {
		return datadir.Stop{At: at, Version: version, Arguments: args}
	}
	ext := []string{"-o", "ext_path=/x:1m"}
	login := []string{"-m", "64", "-Y", "users"}
	const off = `{"auth":"Disabled"}`
	for name, c := range map[string]struct {
		text      string
		saved     datadir.Saved
		want      []string
		fallback  []string
		rejection string
		err       string
	}{
		"the first start":                                     {`["-m","64"]`, datadir.Saved{}, m64, nil, "", ""},
		"the first start without arguments":                   {"", datadir.Saved{}, nil, nil, "", ""},
		"the first start with invalid text":                   {"x", datadir.Saved{}, nil, nil, "", "JSON array"},
		"unchanged arguments":                                 {`["-m","64"]`, datadir.Saved{File: metaFor(m64...), Last: stopOf("1.6.45", m64...)}, m64, nil, "", ""},
		"more memory, with saved items":                       {`["-m","128"]`, datadir.Saved{File: metaFor(m64...), Last: stopOf("1.6.45", m64...)}, m64, nil, "require a new pod", ""},
		"invalid text, with saved items":                      {"x", datadir.Saved{File: metaFor(m64...), Last: stopOf("1.6.45", m64...)}, m64, nil, "JSON array", ""},
		"more memory, without saved items":                    {`["-m","128"]`, datadir.Saved{Last: stopOf("1.6.45", m64...)}, m128, m64, "", ""},
		"invalid text, without saved items":                   {"x", datadir.Saved{Last: stopOf("1.6.45", m64...)}, m64, nil, "JSON array", ""},
		"saved items that fit no arguments":                   {`["-m","128"]`, datadir.Saved{File: metaFor("-m", "96"), Last: stopOf("1.6.45", m64...)}, m128, m64, "", ""},
		"saved items of unknown arguments":                    {`["-m","128"]`, datadir.Saved{File: metaFor(m64...)}, m128, nil, "", ""},
		"invalid text, with saved items of unknown arguments": {"x", datadir.Saved{File: metaFor(m64...)}, nil, nil, "", "JSON array"},
		"no arguments, with saved items of no arguments":      {"", datadir.Saved{File: metaFor(), Last: stopOf("1.6.45")}, nil, nil, "", ""},
		"extstore, which never reloads items":                 {`["-o","ext_path=/x:1m"]`, datadir.Saved{File: metaFor(), Last: stopOf("1.6.45", ext...)}, ext, nil, "", ""},
		"a new version that does not start":                   {`["-m","64"]`, datadir.Saved{File: metaFor(m64...), Last: stopOf("1.6.38", m64...)}, nil, nil, "", "memcached 1.6.45 does not start, so the items stay for the version that saved them: starting memcached"},
		"a new version that does not start, and invalid text": {"x", datadir.Saved{File: metaFor(m64...), Last: stopOf("1.6.38", m64...)}, nil, nil, "", "the items stay for the version"},
		"a new version that does not start, and more memory":  {`["-m","128"]`, datadir.Saved{File: metaFor(m64...), Last: stopOf("1.6.38", m64...)}, nil, nil, "", "the items stay for the version"},
		"a new version, without saved items":                  {`["-m","64"]`, datadir.Saved{Last: stopOf("1.6.38", m64...)}, m64, nil, "", ""},
		"a new version that does not start, and saved items that fit only the new arguments": {
			`["-m","128"]`, datadir.Saved{File: metaFor(m128...), Last: stopOf("1.6.38", m64...)}, nil, nil, "", "the items stay for the version"},
		"no login any more, with saved items":    {`["-m","64"]`, datadir.Saved{File: metaFor(login...), Last: stopOf("1.6.45", login...)}, login, nil, "restore spec.auth", ""},
		"no login any more, without saved items": {`["-m","64"]`, datadir.Saved{Last: stopOf("1.6.45", login...)}, login, nil, "restore spec.auth", ""},
		"no login any more, after a crash":       {`["-m","64"]`, datadir.Saved{Last: datadir.Stop{Version: "1.6.45", Arguments: login}}, login, nil, "restore spec.auth", ""},
		"no login, as the spec states":           {`["-m","64"]` + off, datadir.Saved{Last: datadir.Stop{Version: "1.6.45", Arguments: login}}, m64, login, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			info := podInfo{arguments: c.text}
			if text, ok := strings.CutSuffix(c.text, off); ok {
				info = podInfo{arguments: text, protection: off}
			}
			got, err := selectStartArgs(binary{Binary: process.Binary{Path: "/nonexistent", Version: "1.6.45", Start: process.Start}, secrets: secrets.NewSet(secrets.Volumes{}, "", "", 0, slog.New(slog.DiscardHandler))}, info, c.saved)
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("error %v, want %q in it", err, c.err)
				}
				return
			}
			var fallback []string
			if got.fallback != nil {
				fallback = *got.fallback
			}
			if err != nil || !slices.Equal(got.arguments, c.want) || !slices.Equal(fallback, c.fallback) || (got.fallback != nil) != (c.fallback != nil) {
				t.Errorf("got %+v with fallback %q, %v", got, fallback, err)
			}
			if !strings.Contains(got.rejection, c.rejection) || (got.rejection == "") != (c.rejection == "") {
				t.Errorf("rejection %q, want %q in it", got.rejection, c.rejection)
			}
		})
	}
}
