package memcache

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
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

func reader(answer []byte) *bufio.Reader { return bufio.NewReader(bytes.NewReader(answer)) }

// Every version answers these alike but for its version and CAS values.
func TestRealAnswers(t *testing.T) {
	versions := []string{"1.6.18", "1.6.38", "1.6.45"}
	const limit = 1 << 20
	clientError := func(message string) error { return &ClientError{Message: message} }
	cases := map[string]struct {
		read func(*bufio.Reader) (any, error)
		want any
		err  error
	}{
		"set":         {read: stored},
		"add-exists":  {read: stored, err: ErrNotStored},
		"cas-exists":  {read: stored, err: ErrExists},
		"cas-missing": {read: stored, err: ErrNotFound},
		"set-bad":     {read: stored, err: clientError("bad command line format")},
		"set-toolarge": {read: stored,
			err: &ServerError{Message: "object too large for cache"}},
		"get": {read: item(limit), want: &Item{Key: "a", Flags: 5, Value: []byte("hi")}},
		"get-miss": {read: func(r *bufio.Reader) (any, error) {
			item, err := ReadItem(r, limit)
			return item == nil, err
		}, want: true},
		"key-long":     {read: item(limit), err: clientError("bad command line format")},
		"mn":           {read: meta(limit), want: Meta{Code: MetaNoOp}},
		"mg-miss":      {read: meta(limit), want: Meta{Code: MetaMiss}},
		"mg-head":      {read: meta(limit), want: Meta{Code: MetaHit, Flags: []string{"t-1", "f5"}}},
		"ms-notstored": {read: meta(limit), want: Meta{Code: MetaNotStored}},
		"ms-exists":    {read: meta(limit), want: Meta{Code: MetaExists}},
		"ms-missing":   {read: meta(limit), want: Meta{Code: MetaNotFound}},
		"mg-badflags":  {read: meta(limit), err: clientError("duplicate flag")},
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
				if c.want != nil && !alike(got, c.want) {
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
			want := Settings{MaxBytes: 64 << 20, MaxConns: 1024, Threads: 4, ItemSizeMax: 1 << 20, ChunkSize: 48,
				SlabChunkMax: 512 << 10, GrowthFactor: 1.25, CAS: true, Evictions: true, SlabReassign: true, MemoryFile: settings.MemoryFile}
			if settings != want || !strings.HasPrefix(settings.MemoryFile, "/dev/shm/memcached/memory") {
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

func stored(r *bufio.Reader) (any, error)  { return nil, ReadStored(r) }
func version(r *bufio.Reader) (any, error) { return ReadVersion(r) }
func stats(r *bufio.Reader) (any, error)   { return ReadStats(r) }
func item(limit int) func(*bufio.Reader) (any, error) {
	return func(r *bufio.Reader) (any, error) { return ReadItem(r, limit) }
}
func meta(limit int) func(*bufio.Reader) (any, error) {
	return func(r *bufio.Reader) (any, error) { return ReadMeta(r, limit) }
}

// alike compares with nil and empty slices taken as equal.
func alike(a, b any) bool {
	if x, ok := a.(Meta); ok {
		if y := b.(Meta); len(x.Flags) == 0 && len(y.Flags) == 0 {
			return x.Code == y.Code && bytes.Equal(x.Value, y.Value)
		}
	}
	return reflect.DeepEqual(a, b)
}

func sameError(got, want error) bool {
	return got != nil && (errors.Is(got, want) || got.Error() == want.Error())
}

func TestBounds(t *testing.T) {
	cases := map[string]struct {
		answer string
		read   func(*bufio.Reader) (any, error)
		want   error
	}{
		"a line that never ends":                    {"VERSION " + strings.Repeat("1", MaxLine), version, ErrTooLong},
		"a longer line than a reader's buffer":      {"VERSION " + strings.Repeat("1", 5000) + "\r\n", version, nil},
		"more stats than any version has":           {strings.Repeat("STAT a 1\r\n", MaxStats+1), stats, ErrTooLong},
		"a value over the caller's limit":           {"VALUE a 0 11\r\nhello world\r\nEND\r\n", item(10), ErrTooLong},
		"a meta value over the caller's limit":      {"VA 11\r\nhello world\r\n", meta(10), ErrTooLong},
		"a gigabyte announced and never sent":       {"VA 1073741824\r\n", meta(1 << 30), io.ErrUnexpectedEOF},
		"a value longer than it said":               {"VALUE a 0 1\r\nhello\r\nEND\r\n", item(10), ErrMalformed},
		"a negative length":                         {"VALUE a 0 -1\r\n", item(10), ErrMalformed},
		"a length beyond any number":                {"VA 99999999999999999999\r\n", meta(10), ErrMalformed},
		"an answer to someone else's question":      {"STORED\r\n", item(10), ErrMalformed},
		"a stat without a name":                     {"STAT  1\r\n", stats, ErrMalformed},
		"a line without CR":                         {"VERSION 1.6.45\n", version, ErrMalformed},
		"an answer cut in the middle of a line":     {"VERSION 1.6", version, io.ErrUnexpectedEOF},
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

func TestSettingsThatAreMissingOrNonsense(t *testing.T) {
	answer := answers(t)["1.6.45/settings"]
	for _, name := range []string{"maxbytes", "chunk_size", "cas_enabled", "growth_factor"} {
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

func TestKeys(t *testing.T) {
	for key, ok := range map[string]bool{
		"a": true, strings.Repeat("k", 250): true, "schlüssel": true,
		"": false, strings.Repeat("k", 251): false, "a b": false, "a\r\nflush_all": false, "a\x00": false, "a\x7f": false,
	} {
		if err := CheckKey(key); (err == nil) != ok {
			t.Errorf("key %.20q: %v", key, err)
		}
	}
}
