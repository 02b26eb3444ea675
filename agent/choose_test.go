package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/geometry"
)

// A change to arguments that memcached could go over to is tried with memcached
// itself, in test/process; here are those that need no trial.
func TestWhatANewAgentStartsWith(t *testing.T) {
	at := time.Unix(1_800_000_000, 0)
	fileOf := func(args ...string) *savedFile { return &savedFile{geometry: geometry.Of(args, "1.6.45")} }
	m64, m128 := []string{"-m", "64"}, []string{"-m", "128"}
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
		"the same as before":                       {`["-m","64"]`, saved{file: fileOf(m64...), last: lastStop{At: at, Arguments: m64}}, m64, nil, "", ""},
		"more memory, and items that were saved":   {`["-m","128"]`, saved{file: fileOf(m64...), last: lastStop{At: at, Arguments: m64}}, m64, nil, "replacement of the pod", ""},
		"nonsense, and items that were saved":      {"x", saved{file: fileOf(m64...), last: lastStop{At: at, Arguments: m64}}, m64, nil, "JSON array", ""},
		"more memory, and nothing saved":           {`["-m","128"]`, saved{last: lastStop{At: at, Arguments: m64}}, m128, m64, "", ""},
		"nonsense, and nothing saved":              {"x", saved{last: lastStop{At: at, Arguments: m64}}, m64, nil, "JSON array", ""},
		"a note that is not of what was saved":     {`["-m","128"]`, saved{file: fileOf(m128...), last: lastStop{At: at, Arguments: m64}}, m128, m64, "", ""},
		"items of unknown arguments":               {`["-m","128"]`, saved{file: fileOf(m64...)}, m128, nil, "", ""},
		"back to no words, and items of no words":  {"", saved{file: fileOf(), last: lastStop{At: at}}, nil, nil, "", ""},
		"extstore, which keeps no items by itself": {`["-o","ext_path=/x:1m"]`, saved{file: fileOf(), last: lastStop{At: at, Arguments: []string{"-o", "ext_path=/x:1m"}}}, []string{"-o", "ext_path=/x:1m"}, nil, "", ""},
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
