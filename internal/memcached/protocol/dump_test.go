package protocol

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// readDump returns one text per item of a dump.
func readDump(r *bufio.Reader) (items []string, err error) {
	dump := NewDumpReader(r)
	for {
		listed, err := dump.Next()
		if errors.Is(err, io.EOF) {
			return items, nil
		}
		if err != nil {
			return items, err
		}
		items = append(items, fmt.Sprintf("%q %d %d %d", listed.Key, listed.Expires, listed.Accessed, listed.Size))
	}
}

func TestRecordedDumps(t *testing.T) {
	// When each was recorded.
	began := map[string]int64{"1.6.18": 1795274628, "1.6.38": 1795274663, "1.6.45": 1795274696}
	for version, at := range began {
		all := answers(t)
		got, err := readDump(reader(all[version+"/metadump"]))
		want := []string{
			fmt.Sprintf(`"a b\x00\xff%%" 0 %d 68`, at), fmt.Sprintf(`"st" %d %d 63`, at+50, at), fmt.Sprintf(`"foo" %d %d 68`, at+100, at),
		}
		if err != nil || strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("%s lists %v, %v; want %v", version, got, err, want)
		}
		if got, err := readDump(reader(all[version+"/metadump-empty"])); err != nil || len(got) != 0 {
			t.Errorf("%s, empty, lists %v, %v", version, got, err)
		}
		for _, name := range []string{"metadump-forbidden", "metadump-disabled"} {
			if _, err := readDump(reader(all[version+"/"+name])); !errors.Is(err, ErrDumpDisabled) && !errors.Is(err, ErrCrawlerDisabled) {
				t.Errorf("%s of %s: %v", name, version, err)
			}
		}
	}
	if _, err := readDump(reader(answers(t)["1.6.45/metadump-busy"])); !errors.Is(err, ErrBusy) {
		t.Errorf("busy: %v", err)
	}
}

func TestReadDump(t *testing.T) {
	const line = "key=a exp=-1 la=5 cas=2 fetch=no cls=1 size=67\n"
	long := strings.Repeat("k", MaxKey)
	escaped := strings.Repeat("%00", MaxKey)
	cases := map[string]struct {
		answer string
		want   int
		err    error
	}{
		"unknown fields":               {"key=a exp=1 la=5 size=67 new=x more\nEND\r\n", 1, nil},
		"the longest key":              {"key=" + long + " exp=1\nEND\r\n", 1, nil},
		"the longest line":             {"key=" + escaped + " exp=18446744073 la=18446744073 cas=18446744073709551615 fetch=yes cls=255 size=18446744073 flags=18446744073709551615 ext_page=4294967295 ext_offset=4294967295\nEND\r\n", 1, nil},
		"a key that is too long":       {"key=" + long + "k exp=1\nEND\r\n", 0, ErrMalformed},
		"a truncated escape":           {"key=%0 exp=1\nEND\r\n", 0, ErrMalformed},
		"an invalid escape":            {"key=%zz exp=1\nEND\r\n", 0, ErrMalformed},
		"no key":                       {"key= exp=1\nEND\r\n", 0, ErrMalformed},
		"no number":                    {"key=a exp=x\nEND\r\n", 0, ErrMalformed},
		"a number that is too large":   {"key=a exp=99999999999999999999\nEND\r\n", 0, ErrMalformed},
		"an end without END":           {line, 1, io.ErrUnexpectedEOF},
		"an end within a line":         {line + "key=b exp", 1, io.ErrUnexpectedEOF},
		"no answer":                    {"", 0, io.ErrUnexpectedEOF},
		"locked halfway":               {line + "ERROR locked try again later\r\n", 1, ErrBusy},
		"locked after OK":              {"OK\r\nERROR locked try again later\r\n", 0, ErrBusy},
		"nothing to crawl":             {"NOTSTARTED no items to crawl\r\n", 0, nil},
		"an endless line":              {"key=" + strings.Repeat("k", 70_000), 0, ErrTooLong},
		"OK between items":             {line + "OK\r\n", 1, ErrMalformed},
		"a server without dumps":       {"ERROR\r\n", 0, ErrUnknownCommand},
		"a server with authentication": {"CLIENT_ERROR unauthenticated\r\n", 0, &ClientError{Message: "unauthenticated"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := readDump(bufio.NewReader(strings.NewReader(c.answer)))
			if len(got) != c.want || c.err == nil && err != nil || c.err != nil && !sameError(err, c.err) {
				t.Errorf("%d items, %v; want %d, %v", len(got), err, c.want, c.err)
			}
		})
	}
}

func TestDumpNeedsNoAllocationPerItem(t *testing.T) {
	text := strings.Repeat("key=some%20key exp=-1 la=1795274628 cas=2 fetch=no cls=1 size=68 flags=0 \n", 10_000) + "END\r\n"
	r := bufio.NewReader(nil)
	allocations := testing.AllocsPerRun(10, func() {
		r.Reset(strings.NewReader(text))
		dump := NewDumpReader(r)
		for {
			if _, err := dump.Next(); err != nil {
				return
			}
		}
	})
	if allocations > 10 {
		t.Errorf("%.0f allocations for 10000 items", allocations)
	}
}

// An item that is escaped as memcached does and listed again is the same.
func FuzzDump(f *testing.F) {
	fuzzAnswers(f, func(t *testing.T, r *bufio.Reader) error {
		dump := NewDumpReader(r)
		for {
			listed, err := dump.Next()
			if err != nil {
				if errors.Is(err, ErrBusy) || errors.Is(err, ErrDumpDisabled) || errors.Is(err, ErrCrawlerDisabled) {
					return nil
				}
				return err
			}
			if len(listed.Key) == 0 || len(listed.Key) > MaxKey || listed.Expires < 0 || listed.Accessed < 0 || listed.Size < 0 {
				t.Fatalf("%+v", listed)
			}
			text := fmt.Sprintf("key=%s exp=%d la=%d size=%d\nEND\r\n", url.PathEscape(string(listed.Key)), listed.Expires, listed.Accessed, listed.Size)
			again, err := NewDumpReader(bufio.NewReader(strings.NewReader(text))).Next()
			if err != nil || !bytes.Equal(again.Key, listed.Key) || again.Expires != listed.Expires || again.Accessed != listed.Accessed || again.Size != listed.Size {
				t.Fatalf("%+v listed again is %+v, %v", listed, again, err)
			}
		}
	})
}

func TestDumpStartsAgainWhileMemcachedCannotListItsKeys(t *testing.T) {
	t.Parallel()
	const idle = "STAT lru_crawler_running 0\r\nEND\r\n"
	server := serve(t, "ERROR Too many open connections\r\n", "STAT lru_crawler_running 1\r\nEND\r\n", idle, "ERROR locked try again later\r\n", idle, "CLIENT_ERROR lru crawler disabled\r\n",
		idle, "key=a exp=-1 la=1 cas=7 fetch=no cls=1 size=64\r\nERROR locked try again later\r\n",
		idle, "key=a exp=-1 la=1 cas=8 fetch=no cls=1 size=64\r\nEND\r\n")
	var visited []uint64
	err := server.Dump(t.Context(), time.Minute, func(item Listed) error {
		visited = append(visited, item.CAS)
		return nil
	})
	if err != nil || !slices.Equal(visited, []uint64{7, 8}) {
		t.Errorf("visited %v: %v", visited, err)
	}
}

func TestDumpWaitsUntilTheHashTableHasGrown(t *testing.T) {
	t.Parallel()
	stats := func(version string, power int) string {
		return fmt.Sprintf("STAT version %s\r\nSTAT curr_items 98305\r\nSTAT hash_power_level %d\r\nEND\r\n", version, power)
	}
	for version, answers := range map[string][]string{
		"1.6.27": {stats("1.6.27", 16), stats("1.6.27", 17), "END\r\n"},
		"1.6.28": {stats("1.6.28", 16), "END\r\n"},
	} {
		// An answer to another request is malformed.
		if err := serve(t, answers...).Dump(t.Context(), time.Minute, func(Listed) error { return nil }); err != nil {
			t.Errorf("%s: %v", version, err)
		}
	}
}

// growing is an old memcached that never grows its hash table, as with -o no_hashexpand.
type growing struct{ answers bytes.Buffer }

func (g *growing) Write(request []byte) (int, error) {
	if string(request) == DumpRequest {
		g.answers.WriteString("key=a exp=-1 la=1 cas=2 fetch=no cls=1 size=64\r\nEND\r\n")
	} else {
		g.answers.WriteString("STAT version 1.6.18\r\nSTAT curr_items 98305\r\nSTAT hash_power_level 16\r\nEND\r\n")
	}
	return len(request), nil
}

func (g *growing) Read(p []byte) (int, error) { return g.answers.Read(p) }

func TestDumpOfAHashTableThatNeverGrows(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g, n := &growing{}, 0
		if err := ReadDump(g, bufio.NewReader(g), func(Listed) error { n++; return nil }); n != 1 || err != nil {
			t.Errorf("%d items, %v", n, err)
		}
	})
}

func TestDumpStops(t *testing.T) {
	t.Parallel()
	errEnd := errors.New("end")
	const item = "key=a exp=-1 la=1 cas=7 fetch=no cls=1 size=64\r\n"
	for name, c := range map[string]struct {
		canceled bool
		answer   string
		want     error
	}{
		"when the visitor returns an error":    {false, item, errEnd},
		"with its context":                     {true, "", errEnd},
		"when memcached sends nothing in time": {false, "", os.ErrDeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				if c.canceled {
					cancel(errEnd)
				}
				err := serve(t, "END\r\n", c.answer).Dump(ctx, time.Minute, func(Listed) error { return errEnd })
				if !errors.Is(err, c.want) {
					t.Errorf("%v, want %v", err, c.want)
				}
			})
		})
	}
}
