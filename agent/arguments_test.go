package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

func TestArgumentsAreAJSONArrayOfStrings(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []string
		err  string
	}{
		"words":                    {`["-m","64"]`, []string{"-m", "64"}, ""},
		"no words":                 {`[]`, nil, ""},
		"no annotation":            {"", nil, ""},
		"null":                     {"null", nil, ""},
		"a trailing line end":      {"[\"-v\"]\n", []string{"-v"}, ""},
		"a shell's words":          {"-m 64", nil, "JSON array"},
		"numbers":                  {`["-m",64]`, nil, "JSON array"},
		"half an array":            {`["-m"`, nil, "JSON array"},
		"something after it":       {`["-v"] ["-v"]`, nil, "something follows"},
		"a NUL byte":               {`["a\u0000b"]`, nil, "NUL byte"},
		"-e":                       {`["-e","/x"]`, nil, "-e is not possible"},
		"-d in a word with others": {`["-vd"]`, nil, "-d is not possible"},
		"--version":                {`["--version"]`, nil, "-V is not possible"},
		"-e as the value of -P":    {`["-P","-e"]`, []string{"-P", "-e"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parseArguments(c.text)
			if c.err == "" && (err != nil || !slices.Equal(got, c.want)) {
				t.Errorf("got %q, %v, want %q", got, err, c.want)
			}
			if c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
				t.Errorf("error %v, want %q in it", err, c.err)
			}
		})
	}
}

func FuzzArguments(f *testing.F) {
	f.Add(`["-m","64"]`)
	f.Add(`["--memory-file=/x"]`)
	f.Fuzz(func(t *testing.T, text string) {
		words, err := parseArguments(text)
		if err != nil {
			return
		}
		// What was read can be noted and read again.
		again, err := json.Marshal(words)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := parseArguments(string(again)); err != nil || !slices.Equal(got, words) {
			t.Errorf("%q read again is %q, %v", words, got, err)
		}
	})
}

func TestEndpoints(t *testing.T) {
	for args, want := range map[string]endpoint{
		"":                                       {"tcp", "127.0.0.1:11211", true},
		"-p 5":                                   {"tcp", "127.0.0.1:5", true},
		"-p 5 -l 10.0.0.1":                       {"tcp", "10.0.0.1:5", true},
		"-l 10.0.0.1:6,10.0.0.2":                 {"tcp", "10.0.0.1:6", true},
		"-l 10.0.0.1 -l 10.0.0.2":                {"tcp", "10.0.0.1:11211", true},
		"-l 0.0.0.0":                             {"tcp", "127.0.0.1:11211", true},
		"-l ::":                                  {"tcp", "[::1]:11211", true},
		"-l [::1]:6":                             {"tcp", "[::1]:6", true},
		"-s /tmp/socket -p 5":                    {"unix", "/tmp/socket", true},
		"-Z":                                     {"tcp", "127.0.0.1:11211", false},
		"-Z -l 10.0.0.1,notls:127.0.0.1:6":       {"tcp", "127.0.0.1:6", true},
		"-Z -l mtls:10.0.0.1:7":                  {"tcp", "10.0.0.1:7", false},
		"-S":                                     {"tcp", "127.0.0.1:11211", false},
		"-B binary":                              {"tcp", "127.0.0.1:11211", false},
		"-B ascii --port=9":                      {"tcp", "127.0.0.1:9", true},
		"-S -Z -l notls:127.0.0.1:6,10.0.0.1:11": {"tcp", "127.0.0.1:6", false},
	} {
		if got := endpointOf(strings.Fields(args)); got != want {
			t.Errorf("%q: %+v, want %+v", args, got, want)
		}
	}
}

func FuzzEndpoints(f *testing.F) {
	f.Add("-p", "5", "-vvS")
	f.Add("-l", "10.0.0.1:6,[::1]:7", "-Z")
	f.Add("--listen=notls:127.0.0.1:6;10.0.0.1", "-Bbinary", "-s/x")
	f.Fuzz(func(t *testing.T, a, b, c string) {
		if e := endpointOf([]string{a, b, c}); e.network != "tcp" && e.network != "unix" {
			t.Errorf("%q: %+v", []string{a, b, c}, e)
		}
	})
}
