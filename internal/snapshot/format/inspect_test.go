package format

import (
	"strings"
	"testing"

	"gocloud.dev/blob/memblob"
)

func TestInspectPrintsNoControlCharacters(t *testing.T) {
	bucket := memblob.OpenBucket(nil)
	m := sampleManifest()
	m.Shards = []Shard{{Chunks: []Chunk{}}}
	m.Memcached.Name, m.Memcached.Namespace, m.TaskID = "cache\x1b]0;title\a", "shop\n", "\u009b2J"
	if err := m.Write(t.Context(), bucket, "s\x1b[2J"); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := Inspect(t.Context(), bucket, "s\x1b[2J", &out, InspectOptions{Chunks: true}); err != nil {
		t.Fatal(err)
	}
	if err := List(t.Context(), bucket, &out); err != nil {
		t.Fatal(err)
	}
	for _, c := range []string{"\x1b", "\a", "\u009b", "shop\n"} {
		if strings.Contains(out.String(), c) {
			t.Errorf("%q is printed as it is in %q", c, out.String())
		}
	}
	if !strings.Contains(out.String(), "version 1.6.45\n") {
		t.Errorf("what is harmless is quoted: %s", out.String())
	}
}
