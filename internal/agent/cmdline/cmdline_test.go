package cmdline

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/agent/wire"
)

func TestParseArgumentsAcceptsAJSONArrayOfStrings(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []string
		err  string
	}{
		"words":                           {`["-m","64"]`, []string{"-m", "64"}, ""},
		"no words":                        {`[]`, nil, ""},
		"no annotation":                   {"", nil, ""},
		"null":                            {"null", nil, ""},
		"a trailing newline":              {"[\"-v\"]\n", []string{"-v"}, ""},
		"shell words":                     {"-m 64", nil, "JSON array"},
		"numbers":                         {`["-m",64]`, nil, "JSON array"},
		"a truncated array":               {`["-m"`, nil, "JSON array"},
		"text after the array":            {`["-v"] ["-v"]`, nil, "unexpected text"},
		"a NUL byte":                      {`["a\u0000b"]`, nil, "NUL byte"},
		"-e":                              {`["-e","/x"]`, nil, "option -e is not allowed"},
		"-d combined with another option": {`["-vd"]`, nil, "option -d is not allowed"},
		"--version":                       {`["--version"]`, nil, "option -V is not allowed"},
		"-e as the value of -P":           {`["-P","-e"]`, []string{"-P", "-e"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Parse(c.text)
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
		words, err := Parse(text)
		if err != nil {
			return
		}
		// Parsed arguments survive the record of a stop.
		encoded, err := json.Marshal(words)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := Parse(string(encoded)); err != nil || !slices.Equal(got, words) {
			t.Errorf("%q encoded and parsed is %q, %v", words, got, err)
		}
	})
}

func TestAddressUsesTheLastPortArgument(t *testing.T) {
	for args, want := range map[string]string{
		"":            "127.0.0.1:11211",
		"-v":          "127.0.0.1:11211",
		"-p 5":        "127.0.0.1:5",
		"-vp5":        "127.0.0.1:5",
		"--port=9":    "127.0.0.1:9",
		"-p 5 -p 6":   "127.0.0.1:6",
		"-o -p -p 7":  "127.0.0.1:7",
		"-p 5 -c 100": "127.0.0.1:5",
	} {
		if got := PlainAddress(strings.Fields(args)); got != want {
			t.Errorf("%q: %s, want %s", args, got, want)
		}
	}
}

func FuzzAddress(f *testing.F) {
	f.Add("-p", "5", "-vvS")
	f.Add("--port=9", "-v", "-p7")
	f.Fuzz(func(t *testing.T, a, b, c string) {
		if got := PlainAddress([]string{a, b, c}); !strings.HasPrefix(got, "127.0.0.1:") {
			t.Errorf("%q: %s", []string{a, b, c}, got)
		}
	})
}

func TestClientsCanUseAllConnections(t *testing.T) {
	const unlimited = math.MaxUint64
	for name, c := range map[string]struct {
		words     []string
		mostFiles uint64
		want      string
	}{
		"default threads":              {[]string{"-c", "1024"}, unlimited, "1060"},
		"many threads":                 {[]string{"-c", "256", "-t", "64"}, unlimited, "592"},
		"the last option counts":       {[]string{"-t", "2", "-c1", "--conn-limit=300", "-t1"}, unlimited, "321"},
		"the node allows no more":      {[]string{"-c", "1024"}, 1030, "1030"},
		"the node allows less":         {[]string{"-c", "1024"}, 1000, "1024"},
		"memcached's default":          {[]string{"-t", "64"}, unlimited, ""},
		"a limit that is not accepted": {[]string{"-c", "0"}, unlimited, ""},
	} {
		got := ForClients(c.words, c.mostFiles)
		want := c.words
		if c.want != "" {
			want = slices.Concat(c.words, []string{"-c", c.want})
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func TestBuffersOfClientsAreBoundedUnlessTheArgumentsSay(t *testing.T) {
	for words, want := range map[string]string{
		"":                                       "-o read_buf_mem_limit=16",
		"-c 1024 -o no_hashexpand":               "-c 1024 -o no_hashexpand -o read_buf_mem_limit=16",
		"-o idle_timeout=9,read_buf_mem_limit=5": "-o idle_timeout=9,read_buf_mem_limit=5",
	} {
		if got := WithBuffers(strings.Fields(words), 32<<20); !slices.Equal(got, strings.Fields(want)) {
			t.Errorf("%q: %q, want %q", words, got, want)
		}
	}
}

func TestVerbosityIsThatOfAllWords(t *testing.T) {
	for words, want := range map[string]int{"-m 64": 0, "-vv": 2, "-v --verbose": 2, "-D v": 0} {
		if got := Verbosity(strings.Fields(words)); got != want {
			t.Errorf("%q: %d, want %d", words, got, want)
		}
	}
}

func TestIdleTimeoutIsThatOfMemcachedsArguments(t *testing.T) {
	for want, words := range map[time.Duration][]string{
		0:                {"-Z", "-o", "ssl_min_version=3"},
		30 * time.Second: {"-o", "hash_algorithm=murmur3,idle_timeout=30"},
		9 * time.Second:  {"-o", "idle_timeout=30", "-o", "idle_timeout=9"},
	} {
		if got := IdleTimeout(words); got != want {
			t.Errorf("%q: %s, want %s", words, got, want)
		}
	}
}

func TestProtectionIsLostOnlyOnPurpose(t *testing.T) {
	both, login, permissive := []string{"-Z", "-Y", "users"}, []string{"-Y", "users"}, []string{"-Z", "-l", "*:11211", "-l", "notls:*:11211"}
	off := func(names ...string) wire.Protections {
		stated := wire.Protections{"of a newer release": "Required"}
		for _, name := range names {
			stated[name] = wire.ProtectionOff
		}
		return stated
	}
	for name, c := range map[string]struct {
		former, words []string
		stated        wire.Protections
		want          string
	}{
		"the first start":                    {nil, nil, nil, ""},
		"none before":                        {[]string{"-v"}, nil, nil, ""},
		"unchanged":                          {both, both, nil, ""},
		"one more":                           {login, both, nil, ""},
		"no login, and nothing states it":    {both, []string{"-Z"}, nil, "set spec.auth.mode to Disabled"},
		"no login, and another is off":       {login, nil, off(wire.ProtectionTLS), "set spec.auth.mode to Disabled"},
		"no login, and that is stated":       {both, []string{"-Z"}, off(wire.ProtectionAuth), ""},
		"no login, though one is required":   {login, nil, wire.Protections{wire.ProtectionAuth: "Required"}, "restore spec.auth"},
		"no TLS, and nothing states it":      {both, login, nil, "set spec.tls.mode to Disabled"},
		"no TLS in any mode":                 {permissive, nil, off(wire.ProtectionAuth), "restore spec.tls"},
		"no TLS, and that is stated":         {permissive, nil, off(wire.ProtectionTLS), ""},
		"TLS for some, which the spec says":  {both, append(permissive, login...), nil, ""},
		"neither, and both is stated":        {both, nil, off(wire.ProtectionAuth, wire.ProtectionTLS), ""},
		"the login is in the value of an -o": {login, []string{"-o", "-Y"}, nil, "log in"},
	} {
		err := Unprotected(c.former, c.words, c.stated)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}
