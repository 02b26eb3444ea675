package protocol

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/memcached-operator/memcached-operator/internal/testnumbers"
)

// testdata/answers/<version>/<name> are answers of real servers to one request each.
func answers(t testing.TB) map[string][]byte {
	t.Helper()
	files, err := filepath.Glob("testdata/answers/*/*")
	if err != nil || len(files) == 0 {
		t.Fatalf("no recorded answers: %v", err)
	}
	all := map[string][]byte{}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all[strings.TrimPrefix(file, "testdata/answers/")] = content
	}
	return all
}

func reader(answer []byte) *bufio.Reader {
	return bufio.NewReaderSize(bytes.NewReader(answer), MaxLine)
}

// All versions answer alike, except for version and CAS.
func TestRecordedAnswers(t *testing.T) {
	versions := []string{"1.6.18", "1.6.38", "1.6.45"}
	clientError := func(message string) error { return &ClientError{Message: message} }
	cases := map[string]struct {
		read func(*bufio.Reader) (any, error)
		want any
		err  error
	}{
		"set-bad":      {read: head, err: clientError("bad command line format")},
		"set-toolarge": {read: head, err: &ServerError{Message: "object too large for cache"}},
		"key-long":     {read: head, err: clientError("bad command line format")},
		"mg-miss":      {read: head, want: Head{Code: MetaMiss}},
		"mg-head":      {read: head, want: Head{Code: MetaHit, TTL: -1, Flags: 5}},
		"ms-notstored": {read: head, want: Head{Code: MetaNotStored}},
		"ms-exists":    {read: head, want: Head{Code: MetaExists}},
		"ms-missing":   {read: head, want: Head{Code: MetaNotFound}},
		"mg-badflags":  {read: head, err: clientError("duplicate flag")},
		"unknown":      {read: version, err: ErrUnknownCommand},
		"maxconns":     {read: version, err: &ServerError{Message: "Too many open connections"}},
		"auth-version": {read: version, err: clientError("unauthenticated")},
		"auth-stats":   {read: stats, err: clientError("unauthenticated")},
	}
	all := answers(t)
	for name, c := range cases {
		for _, v := range versions {
			t.Run(name+" of "+v, func(t *testing.T) {
				answer, ok := all[v+"/"+name]
				if !ok {
					t.Fatal("not recorded")
				}
				got, err := c.read(reader(answer))
				if c.err != nil {
					if !sameError(err, c.err) {
						t.Fatalf("error %v, want %v", err, c.err)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				if c.want != nil && got != c.want {
					t.Errorf("got %#v, want %#v", got, c.want)
				}
			})
		}
	}
	for _, v := range versions {
		t.Run("version, stats and settings of "+v, func(t *testing.T) {
			got, err := ReadVersion(reader(all[v+"/version"]))
			if err != nil || got != v {
				t.Errorf("version %q, %v", got, err)
			}
			s, err := ReadStats(reader(all[v+"/stats"]))
			if err != nil {
				t.Fatal(err)
			}
			general := ParseGeneral(s)
			if general.Version != v || general.PID == 0 || general.Items != 1 || general.MaxBytes != 64<<20 ||
				general.Bytes == 0 || general.Connections == 0 || general.Uptime == 0 ||
				general.Lookups != 3 || general.Hits != 2 {
				t.Errorf("general stats %+v", general)
			}
			s, err = ReadStats(reader(all[v+"/settings"]))
			if err != nil {
				t.Fatal(err)
			}
			settings, err := ParseSettings(s)
			if err != nil {
				t.Fatal(err)
			}
			if want := (Settings{ItemSizeMax: 1 << 20, CAS: true, Evictions: true}); settings != want {
				t.Errorf("settings %+v, want %+v", settings, want)
			}
			for _, group := range []string{"items", "slabs"} {
				if s, err := ReadStats(reader(all[v+"/"+group])); err != nil || len(s) < 10 {
					t.Errorf("%s: %d stats, %v", group, len(s), err)
				}
			}
		})
	}
}

func head(r *bufio.Reader) (any, error)    { return ReadHead(r) }
func version(r *bufio.Reader) (any, error) { return ReadVersion(r) }
func stats(r *bufio.Reader) (any, error)   { return ReadStats(r) }

func sameError(got, want error) bool {
	return got != nil && (errors.Is(got, want) || got.Error() == want.Error())
}

func TestLimitsAndTruncatedAnswers(t *testing.T) {
	cases := map[string]struct {
		answer string
		read   func(*bufio.Reader) (any, error)
		want   error
	}{
		"an endless line":                           {"VERSION " + strings.Repeat("1", MaxLine), version, ErrTooLong},
		"a long line":                               {"VERSION " + strings.Repeat("1", 5000) + "\r\n", version, nil},
		"more stats than any version has":           {strings.Repeat("STAT a 1\r\n", MaxStats+1), stats, ErrTooLong},
		"the answer to another request":             {"STORED\r\n", head, ErrMalformed},
		"a stat without a name":                     {"STAT  1\r\n", stats, ErrMalformed},
		"an answer that ends within a line":         {"VERSION 1.6", version, io.ErrUnexpectedEOF},
		"no answer":                                 {"", version, io.EOF},
		"no answer after half the stats":            {"STAT a 1\r\n", stats, io.EOF},
		"an empty line, as 1.6.45 sends after some": {"\r\n", version, ErrMalformed},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if _, err := c.read(reader([]byte(c.answer))); !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
}

func TestMissingOrInvalidSettingsAreMalformed(t *testing.T) {
	answer := answers(t)["1.6.45/settings"]
	for _, name := range []string{"item_size_max", "cas_enabled", "evictions"} {
		for _, value := range []string{"", "nonsense"} {
			s, err := ReadStats(reader(answer))
			if err != nil {
				t.Fatal(err)
			}
			s[name] = value
			if _, err := ParseSettings(s); !errors.Is(err, ErrMalformed) {
				t.Errorf("%s = %q: %v", name, value, err)
			}
		}
	}
}

func TestNumbersAreNeitherNegativeNorTooLarge(t *testing.T) {
	for text, want := range map[string]int64{
		"-5": 0, "-9223372036854775808": 0, "9223372036854775807": 0, "18446744073709551615": 0, "1e3": 0, "": 0, "12": 12, "9007199254740992": maxStat,
	} {
		s := Stats{}
		for _, name := range []string{"pid", "uptime", "curr_items", "bytes", "limit_maxbytes", "curr_connections", "cmd_get", "cmd_touch", "get_hits", "touch_hits"} {
			s[name] = text
		}
		general := ParseGeneral(s)
		testnumbers.Each(&general, func(name string, n float64) {
			sums := name == ".Lookups" || name == ".Hits"
			if sums && n != 2*float64(want) || !sums && n != float64(want) {
				t.Errorf("%s is %v for %q", name, n, text)
			}
		})
	}
}
