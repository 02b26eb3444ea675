package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/geometry"
)

// Arguments and versions that memcached could go over to are tried with memcached
// itself, in test/process; here are those that need no trial, and a memcached that
// starts in none.
func TestWhatANewAgentStartsWith(t *testing.T) {
	at := time.Unix(1_800_000_000, 0)
	fileOf := func(args ...string) *savedFile { return &savedFile{geometry: geometry.Of(args, "1.6.45")} }
	m64, m128 := []string{"-m", "64"}, []string{"-m", "128"}
	noteOf := func(version string, args ...string) lastStop {
		return lastStop{At: at, Version: version, Arguments: args}
	}
	ext := []string{"-o", "ext_path=/x:1m"}
	for name, c := range map[string]struct {
		text     string
		before   saved
		want     []string
		fallback []string
		refusal  string
		err      string
	}{
		"the first start":                          {`["-m","64"]`, saved{}, m64, nil, "", ""},
		"the first start without words":            {"", saved{}, nil, nil, "", ""},
		"the first start with nonsense":            {"x", saved{}, nil, nil, "", "JSON array"},
		"the same as before":                       {`["-m","64"]`, saved{file: fileOf(m64...), last: noteOf("1.6.45", m64...)}, m64, nil, "", ""},
		"more memory, and items that were saved":   {`["-m","128"]`, saved{file: fileOf(m64...), last: noteOf("1.6.45", m64...)}, m64, nil, "replacement of the pod", ""},
		"nonsense, and items that were saved":      {"x", saved{file: fileOf(m64...), last: noteOf("1.6.45", m64...)}, m64, nil, "JSON array", ""},
		"more memory, and nothing saved":           {`["-m","128"]`, saved{last: noteOf("1.6.45", m64...)}, m128, m64, "", ""},
		"nonsense, and nothing saved":              {"x", saved{last: noteOf("1.6.45", m64...)}, m64, nil, "JSON array", ""},
		"items that no arguments fit":              {`["-m","128"]`, saved{file: fileOf("-m", "96"), last: noteOf("1.6.45", m64...)}, m128, m64, "", ""},
		"items of unknown arguments":               {`["-m","128"]`, saved{file: fileOf(m64...)}, m128, nil, "", ""},
		"nonsense, and items of unknown arguments": {"x", saved{file: fileOf(m64...)}, nil, nil, "", "JSON array"},
		"back to no words, and items of no words":  {"", saved{file: fileOf(), last: noteOf("1.6.45")}, nil, nil, "", ""},
		"extstore, which keeps no items by itself": {`["-o","ext_path=/x:1m"]`, saved{file: fileOf(), last: noteOf("1.6.45", ext...)}, ext, nil, "", ""},
		"another version that does not start":      {`["-m","64"]`, saved{file: fileOf(m64...), last: noteOf("1.6.38", m64...)}, nil, nil, "", "memcached 1.6.45 does not start, so what was saved is left as it is: starting memcached"},
		"the same, and nonsense":                   {"x", saved{file: fileOf(m64...), last: noteOf("1.6.38", m64...)}, nil, nil, "", "left as it is"},
		"the same, and more memory":                {`["-m","128"]`, saved{file: fileOf(m64...), last: noteOf("1.6.38", m64...)}, nil, nil, "", "left as it is"},
		"the same, and nothing saved":              {`["-m","64"]`, saved{last: noteOf("1.6.38", m64...)}, m64, nil, "", ""},
		"the same, and items that only the new arguments fit": {
			`["-m","128"]`, saved{file: fileOf(m128...), last: noteOf("1.6.38", m64...)}, nil, nil, "", "left as it is"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := choose(program{"/nowhere", "1.6.45"}, t.TempDir(), c.text, c.before)
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
			if !strings.Contains(got.refusal, c.refusal) || (got.refusal == "") != (c.refusal == "") {
				t.Errorf("refusal %q, want %q in it", got.refusal, c.refusal)
			}
		})
	}
}
