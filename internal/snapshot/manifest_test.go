package snapshot

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"gocloud.dev/blob/memblob"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/internal/snapshotapi"
)

func someManifest() *Manifest {
	at := time.Date(2026, 11, 21, 15, 0, 0, 0, time.UTC)
	return &Manifest{
		TaskID: "7", TakenAt: at, CreatedAt: at.Add(time.Minute), Folder: "a1b2",
		Memcached: snapshotapi.Memcached{Namespace: "shop", Name: "<cache> & more", UID: "8", Version: "1.6.45"},
		Shards: []Shard{
			{Ordinal: 0, Items: 5, Bytes: 100, Gone: 1, Stale: 2, Unnamed: 3, Chunks: []Chunk{
				{Items: 3, Bytes: 90, Stored: 4, Checksum: checksum([]byte("zero"))}, {Items: 2, Bytes: 50, Stored: 3, Checksum: checksum([]byte("one"))},
			}},
			{Ordinal: 1, Chunks: []Chunk{}},
		},
	}
}

func TestManifest(t *testing.T) {
	text, err := someManifest().encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := decodeManifest(text)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(someManifest(), got); diff != "" {
		t.Error(diff)
	}
	want := &snapshotapi.Snapshot{TakenAt: got.TakenAt, Shards: 2, Items: 5, Bytes: 100, StoredBytes: 7, FormatVersion: 1}
	if diff := cmp.Diff(want, got.describe()); diff != "" {
		t.Error(diff)
	}
}

// Wherever a bit of it is another one, a manifest is refused.
func TestManifestsBits(t *testing.T) {
	text, err := someManifest().encode()
	if err != nil {
		t.Fatal(err)
	}
	whole, err := decodeManifest(text)
	if err != nil {
		t.Fatal(err)
	}
	for at := range text {
		for bit := range 8 {
			damaged := bytes.Clone(text)
			damaged[at] ^= 1 << bit
			got, err := decodeManifest(damaged)
			// A name of JSON may be written otherwise, and the line may end otherwise.
			if err == nil && !cmp.Equal(got, whole) {
				t.Fatalf("bit %d of byte %d changes it without a word: %s", bit, at, damaged)
			}
			if f := snapshotapi.AsFailure(err); err != nil && (f == nil || !f.Final || !slices.Contains([]string{
				v1alpha1.ReasonSnapshotCorrupt, v1alpha1.ReasonSnapshotTooNew, v1alpha1.ReasonSnapshotNotOurs}, f.Reason)) {
				t.Fatalf("bit %d of byte %d: %v", bit, at, err)
			}
		}
	}
}

func TestManifestsThatNoSaveWrites(t *testing.T) {
	for name, change := range map[string]func(*Manifest){
		"no shards":                func(m *Manifest) { m.Shards = nil },
		"a folder elsewhere":       func(m *Manifest) { m.Folder = ".." },
		"a folder below":           func(m *Manifest) { m.Folder = "../../other/a" },
		"no folder":                func(m *Manifest) { m.Folder = "" },
		"shards in another order":  func(m *Manifest) { m.Shards[0].Ordinal = 1 },
		"a chunk that is too big":  func(m *Manifest) { m.Shards[0].Chunks[0].Bytes = MaxChunk + 1 },
		"a chunk of nothing":       func(m *Manifest) { m.Shards[0].Chunks[0].Bytes = 0 },
		"a negative count":         func(m *Manifest) { m.Shards[0].Chunks[0].Items = -1 },
		"more stored than can be":  func(m *Manifest) { m.Shards[0].Chunks[0].Stored = maxStored + 1 },
		"items that do not add up": func(m *Manifest) { m.Shards[0].Items++ },
	} {
		m := someManifest()
		change(m)
		text, err := m.encode()
		if err != nil {
			t.Fatal(err)
		}
		_, err = decodeManifest(text)
		if f := snapshotapi.AsFailure(err); f == nil || f.Reason != v1alpha1.ReasonSnapshotCorrupt || !f.Final {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzManifest(f *testing.F) {
	text, err := someManifest().encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(`{"format":"memcached-operator/snapshot","version":2}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := decodeManifest(text)
		if err != nil {
			if snapshotapi.AsFailure(err) == nil {
				t.Fatalf("an unknown kind of error: %v", err)
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

// Chunks are compared by two fingers, which must not stumble over what else is there.
func TestVerifyChunks(t *testing.T) {
	cases := map[string]struct {
		objects map[string]string
		whole   bool
	}{
		"all":             {map[string]string{"s/a1b2/000000/000000000.zst": "zero", "s/a1b2/000000/000000001.zst": "one"}, true},
		"and others":      {map[string]string{"s/a1b2/000000/000000000.zst": "zero", "s/a1b2/000000/000000000.zst.tmp": "x", "s/a1b2/000000/000000001.zst": "one", "s/a1b2/000000/000000002.zst": "x", "s/a1b2/000001/000000000.zst": "x"}, true},
		"not the first":   {map[string]string{"s/a1b2/000000/000000001.zst": "one"}, false},
		"not the last":    {map[string]string{"s/a1b2/000000/000000000.zst": "zero"}, false},
		"one that is cut": {map[string]string{"s/a1b2/000000/000000000.zst": "zer", "s/a1b2/000000/000000001.zst": "one"}, false},
		"none":            {nil, false},
		"another attempt": {map[string]string{"s/ffff/000000/000000000.zst": "zero", "s/ffff/000000/000000001.zst": "one"}, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			bucket := memblob.OpenBucket(nil)
			for object, content := range c.objects {
				if err := bucket.WriteAll(t.Context(), object, []byte(content), nil); err != nil {
					t.Fatal(err)
				}
			}
			err := verifyChunks(t.Context(), bucket, "s", someManifest(), nil)
			if f := snapshotapi.AsFailure(err); c.whole != (err == nil) || err != nil && f.Reason != v1alpha1.ReasonSnapshotCorrupt {
				t.Errorf("%v", err)
			}
			if err := verifyChunks(t.Context(), bucket, "s", someManifest(), func(shard int) bool { return shard == 1 }); err != nil {
				t.Errorf("shard 1 alone, which has none: %v", err)
			}
		})
	}
}
