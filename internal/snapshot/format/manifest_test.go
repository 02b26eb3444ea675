package format

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"gocloud.dev/blob/memblob"

	"github.com/memcached-operator/memcached-operator/internal/snapshot/wire"
)

func sampleManifest() *Manifest {
	at := time.Date(2026, 11, 21, 15, 0, 0, 0, time.UTC)
	return &Manifest{
		TaskID: "7", TakenAt: at, CreatedAt: at.Add(time.Minute), Folder: "a1b2",
		Memcached: wire.Memcached{Namespace: "shop", Name: "<cache> & more", UID: "8", Version: "1.6.45"},
		Shards: []Shard{
			{Ordinal: 0, Items: 5, Bytes: 100, Gone: 1, Stale: 2, Unnamed: 3, Chunks: []Chunk{
				{Items: 3, Bytes: 90, Stored: 4, Checksum: checksum([]byte("zero"))}, {Items: 2, Bytes: 50, Stored: 3, Checksum: checksum([]byte("one"))},
			}},
			{Ordinal: 1, Chunks: []Chunk{}},
		},
	}
}

func encoded(m *Manifest) ([]byte, error) {
	var b bytes.Buffer
	err := m.encode(&b)
	return b.Bytes(), err
}

func TestManifestRoundTrip(t *testing.T) {
	text, err := encoded(sampleManifest())
	if err != nil {
		t.Fatal(err)
	}
	got, err := decodeManifest(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(sampleManifest(), got); diff != "" {
		t.Error(diff)
	}
	if want := `{"format":"memcached-operator/snapshot","version":1,"checksum":"` + checksum(snapshotText(t)).String() + `","snapshot":` + string(snapshotText(t)) + "}\n"; string(text) != want {
		t.Errorf("it is written as\n%s, not\n%s", text, want)
	}
	want := &wire.Snapshot{TakenAt: got.TakenAt, Shards: 2, Items: 5, Bytes: 100, StoredBytes: 7, FormatVersion: 1}
	if diff := cmp.Diff(want, got.Describe()); diff != "" {
		t.Error(diff)
	}
}

// snapshotText returns the sample as encoding/json writes it in one piece.
func snapshotText(t *testing.T) []byte {
	t.Helper()
	text, err := json.Marshal(sampleManifest())
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// Another program may have formatted it: the checksum is of the bytes as they are.
func TestManifestWithWhiteSpaceIsRead(t *testing.T) {
	for name, snapshot := range map[string]string{
		"compact":  string(snapshotText(t)),
		"indented": strings.ReplaceAll(strings.ReplaceAll(string(snapshotText(t)), ":", " :\t"), ",\"", " ,\n \""),
	} {
		snapshot = strings.ReplaceAll(strings.ReplaceAll(snapshot, "15 :\t00 :\t00", "15:00:00"), "15 :\t01 :\t00", "15:01:00")
		snapshot = strings.ReplaceAll(snapshot, "xxh64 :\t", "xxh64:")
		for _, space := range []string{"", " ", "\n\t  "} {
			text := "{ \"format\" : \"" + Name + "\", \"later\": [1, {}], \"version\":1,\"checksum\":\"" + checksum([]byte(snapshot)).String() +
				"\",\"snapshot\"" + space + ":" + space + snapshot + space + "}" + space
			got, err := decodeManifest(strings.NewReader(text))
			if err != nil {
				t.Errorf("%s with %q: %v\n%s", name, space, err, text)
			} else if diff := cmp.Diff(sampleManifest(), got); diff != "" {
				t.Errorf("%s with %q: %s", name, space, diff)
			}
		}
	}
}

func TestManifestWithAnyFlippedBitIsRejected(t *testing.T) {
	text, err := encoded(sampleManifest())
	if err != nil {
		t.Fatal(err)
	}
	complete, err := decodeManifest(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	for at := range text {
		for bit := range 8 {
			damaged := bytes.Clone(text)
			damaged[at] ^= 1 << bit
			got, err := decodeManifest(bytes.NewReader(damaged))
			// JSON names are case-insensitive, and white space is ignored.
			if err == nil && !cmp.Equal(got, complete) {
				t.Fatalf("bit %d of byte %d changes it without an error: %s", bit, at, damaged)
			}
			if f := wire.AsFailure(err); err != nil && (f == nil || !f.Final || !slices.Contains([]string{
				wire.ReasonSnapshotCorrupt, wire.ReasonSnapshotTooNew, wire.ReasonSnapshotOwnedByOther}, f.Reason)) {
				t.Fatalf("bit %d of byte %d: %v", bit, at, err)
			}
		}
	}
}

func TestManifestsThatNoSaveWritesAreRejected(t *testing.T) {
	for name, change := range map[string]func(*Manifest){
		"no shards":                       func(m *Manifest) { m.Shards = nil },
		"the parent folder":               func(m *Manifest) { m.Folder = ".." },
		"a path as the folder":            func(m *Manifest) { m.Folder = "../../other/a" },
		"no folder":                       func(m *Manifest) { m.Folder = "" },
		"shards in another order":         func(m *Manifest) { m.Shards[0].Ordinal = 1 },
		"a chunk that is too large":       func(m *Manifest) { m.Shards[0].Chunks[0].Bytes = maxChunk + 1 },
		"an empty chunk":                  func(m *Manifest) { m.Shards[0].Chunks[0].Bytes = 0 },
		"a negative count":                func(m *Manifest) { m.Shards[0].Chunks[0].Items = -1 },
		"a stored size that is too large": func(m *Manifest) { m.Shards[0].Chunks[0].Stored = maxStored + 1 },
		"items that do not add up":        func(m *Manifest) { m.Shards[0].Items++ },
	} {
		m := sampleManifest()
		change(m)
		text, err := encoded(m)
		if err != nil {
			t.Fatal(err)
		}
		_, err = decodeManifest(bytes.NewReader(text))
		if f := wire.AsFailure(err); f == nil || f.Reason != wire.ReasonSnapshotCorrupt || !f.Final {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A manifest is read in a Job with 128 MiB of memory.
func TestManifestThatWouldUseUpTheMemoryIsReadNoFurther(t *testing.T) {
	text, err := encoded(sampleManifest())
	if err != nil {
		t.Fatal(err)
	}
	before, _, _ := bytes.Cut(text, []byte(`"shards":[`))
	for name, c := range map[string]struct{ begin, repeat string }{
		"chunks":        {`"shards":[{"chunks":[`, `{},`},
		"shards":        {`"shards":[`, `{},`},
		"unknown field": {`"other":"`, `x`},
		"known field":   {`"taskID":"`, `x`},
		"white space":   {``, ` `},
	} {
		rest := strings.NewReader(strings.Repeat(c.repeat, 8<<20))
		_, err := decodeManifest(io.MultiReader(bytes.NewReader(before), strings.NewReader(c.begin), rest))
		if f := wire.AsFailure(err); f == nil || f.Reason != wire.ReasonSnapshotCorrupt || rest.Size()-int64(rest.Len()) > 4*maxField {
			t.Errorf("%s: %v after %d bytes", name, err, rest.Size()-int64(rest.Len()))
		}
	}
}

func FuzzManifest(f *testing.F) {
	text, err := encoded(sampleManifest())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(`{"format":"memcached-operator/snapshot","version":2}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := decodeManifest(bytes.NewReader(text))
		if err != nil {
			if wire.AsFailure(err) == nil {
				t.Fatalf("unexpected error: %v", err)
			}
			return
		}
		again, err := encoded(m)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := decodeManifest(bytes.NewReader(again)); err != nil {
			t.Fatalf("%s written again: %v", text, err)
		}
	})
}

func TestVerifyChunks(t *testing.T) {
	cases := map[string]struct {
		objects  map[string]string
		complete bool
	}{
		"all":                      {map[string]string{"s/a1b2/000000/000000000.zst": "zero", "s/a1b2/000000/000000001.zst": "one"}, true},
		"all and other objects":    {map[string]string{"s/a1b2/000000/000000000.zst": "zero", "s/a1b2/000000/000000000.zst.tmp": "x", "s/a1b2/000000/000000001.zst": "one", "s/a1b2/000000/000000002.zst": "x", "s/a1b2/000001/000000000.zst": "x"}, true},
		"the first is missing":     {map[string]string{"s/a1b2/000000/000000001.zst": "one"}, false},
		"the last is missing":      {map[string]string{"s/a1b2/000000/000000000.zst": "zero"}, false},
		"one is truncated":         {map[string]string{"s/a1b2/000000/000000000.zst": "zer", "s/a1b2/000000/000000001.zst": "one"}, false},
		"none":                     {nil, false},
		"those of another attempt": {map[string]string{"s/ffff/000000/000000000.zst": "zero", "s/ffff/000000/000000001.zst": "one"}, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			bucket := memblob.OpenBucket(nil)
			for object, content := range c.objects {
				if err := bucket.WriteAll(t.Context(), object, []byte(content), nil); err != nil {
					t.Fatal(err)
				}
			}
			err := sampleManifest().VerifyChunks(t.Context(), bucket, "s", nil)
			if f := wire.AsFailure(err); c.complete != (err == nil) || err != nil && f.Reason != wire.ReasonSnapshotCorrupt {
				t.Errorf("%v", err)
			}
			if err := sampleManifest().VerifyChunks(t.Context(), bucket, "s", func(shard int) bool { return shard == 1 }); err != nil {
				t.Errorf("shard 1 only, which has no chunks: %v", err)
			}
		})
	}
}

func TestOnlyKnownVersionsAreRead(t *testing.T) {
	for version, want := range map[int]string{Version: wire.ReasonSnapshotCorrupt, Version + 1: wire.ReasonSnapshotTooNew, 0: wire.ReasonSnapshotCorrupt} {
		_, err := decodeManifest(strings.NewReader(fmt.Sprintf(`{"format":%q,"version":%d,"checksum":"","snapshot":{}}`, Name, version)))
		if f := wire.AsFailure(err); f == nil || f.Reason != want {
			t.Errorf("version %d: %v, want %s", version, err, want)
		}
	}
}
