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

// What memcached itself refuses is asked of it in test/process; this is what the
// person is told.
func TestADifferenceNamesItsOption(t *testing.T) {
	for name, c := range map[string]struct {
		to   string
		want string
	}{
		"equal":           {"-m 64 -t 9 -c 5", ""},
		"memory":          {"-m 65", "the memory limit (-m), 67108864 before and now 68157440"},
		"item size":       {"-I 2m", "the largest item (-I), 1048576 before and now 2097152"},
		"growth factor":   {"-f 1.5", "the slab sizes (-f or -o slab_sizes), 1.25 before and now 1.5"},
		"slab sizes":      {"-f 1.5 -o slab_sizes=1-2", "the slab sizes (-f or -o slab_sizes), 1.25 before and now 1-2"},
		"smallest item":   {"-n 9", "the smallest item (-n), 48 before and now 9"},
		"CAS":             {"-C", "CAS (-C), true before and now false"},
		"reassign":        {"-o no_slab_reassign", "slab reassignment (-o slab_reassign or no_modern), true before and now false"},
		"chunk max":       {"-o slab_chunk_max=256", "the largest chunk (-o slab_chunk_max, no_chunked_items or no_modern), 524288 before and now 262144"},
		"extstore":        {"-o ext_path=/x:1m", "extstore (-o ext_path), with which memcached keeps no items over a restart"},
		"the first of it": {"-m 65 -n 9", "the memory limit (-m), 67108864 before and now 68157440"},
	} {
		t.Run(name, func(t *testing.T) {
			from, to := geometryOf(nil, "1.6.45"), geometryOf(strings.Fields(c.to), "1.6.45")
			if got := from.difference(to); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestOlder(t *testing.T) {
	for version, want := range map[string]bool{
		"1.6.18": true, "1.6.23": true, "1.6.24": false, "1.6.45": false, "1.5.99": true, "1.10.0": false, "2.0.0": false, "1.6.24-rc1": false,
	} {
		if got := older(version, 1, 6, 24); got != want {
			t.Errorf("%s is older than 1.6.24: %v", version, got)
		}
	}
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
