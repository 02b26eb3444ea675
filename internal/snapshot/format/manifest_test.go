package format

import (
	"bytes"
	"fmt"
	"slices"
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

func TestManifestRoundTrip(t *testing.T) {
	text, err := sampleManifest().encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := decodeManifest(text)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(sampleManifest(), got); diff != "" {
		t.Error(diff)
	}
	want := &wire.Snapshot{TakenAt: got.TakenAt, Shards: 2, Items: 5, Bytes: 100, StoredBytes: 7, FormatVersion: 1}
	if diff := cmp.Diff(want, got.Describe()); diff != "" {
		t.Error(diff)
	}
}

func TestManifestWithAnyFlippedBitIsRejected(t *testing.T) {
	text, err := sampleManifest().encode()
	if err != nil {
		t.Fatal(err)
	}
	complete, err := decodeManifest(text)
	if err != nil {
		t.Fatal(err)
	}
	for at := range text {
		for bit := range 8 {
			damaged := bytes.Clone(text)
			damaged[at] ^= 1 << bit
			got, err := decodeManifest(damaged)
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
		text, err := m.encode()
		if err != nil {
			t.Fatal(err)
		}
		_, err = decodeManifest(text)
		if f := wire.AsFailure(err); f == nil || f.Reason != wire.ReasonSnapshotCorrupt || !f.Final {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzManifest(f *testing.F) {
	text, err := sampleManifest().encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(`{"format":"memcached-operator/snapshot","version":2}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := decodeManifest(text)
		if err != nil {
			if wire.AsFailure(err) == nil {
				t.Fatalf("unexpected error: %v", err)
			}
			return
		}
		again, err := m.encode()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := decodeManifest(again); err != nil {
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
		_, err := decodeManifest(fmt.Appendf(nil, `{"format":%q,"version":%d,"checksum":"","snapshot":{}}`, Name, version))
		if f := wire.AsFailure(err); f == nil || f.Reason != want {
			t.Errorf("version %d: %v, want %s", version, err, want)
		}
	}
}
