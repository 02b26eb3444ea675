package format

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"gocloud.dev/blob/fileblob"
)

// What a Job has by default, in bytes, and the Go runtime's limit that the operator sets for it.
const (
	jobMemory   = 128 << 20
	jobGoMemory = "96MiB"
)

// largeManifest returns a manifest of about so many MiB, as a save creates it.
func largeManifest(mebibytes int) *Manifest {
	m := sampleManifest()
	m.Shards = nil
	for ordinal := range 4 {
		shard := Shard{Ordinal: ordinal, Chunks: []Chunk{}}
		for i := range mebibytes << 20 / 4 / 85 {
			shard.Chunks = append(shard.Chunks, Chunk{Items: 10_000, Bytes: 2_097_000, Stored: 1_234_567, Checksum: Checksum(i) << 40})
			shard.Items += 10_000
		}
		m.Shards = append(m.Shards, shard)
	}
	return m
}

// childVariable makes the test's program write and read a manifest of so many MiB.
const childVariable = "TEST_MANIFEST_MEBIBYTES"

func TestManifestOfAnySizeFitsIntoMemoryOfJob(t *testing.T) {
	if size := os.Getenv(childVariable); size != "" {
		writeAndReadManifest(t, size)
		return
	}
	for _, mebibytes := range []int{20, 40, 63} {
		t.Run(fmt.Sprintf("%d MiB", mebibytes), func(t *testing.T) {
			child := exec.Command(os.Args[0], "-test.run=^"+strings.Split(t.Name(), "/")[0]+"$", "-test.v")
			child.Env = append(os.Environ(), childVariable+"="+strconv.Itoa(mebibytes), "GOGC=", "GOMEMLIMIT="+jobGoMemory, "TMPDIR="+t.TempDir())
			out, err := child.CombinedOutput()
			if t.Logf("%s", out); err != nil {
				t.Error(err)
			}
		})
	}
}

func writeAndReadManifest(t *testing.T, size string) {
	mebibytes, err := strconv.Atoi(size)
	if err != nil {
		t.Fatal(err)
	}
	bucket, err := fileblob.OpenBucket(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer bucket.Close()
	m := largeManifest(mebibytes)
	chunks := len(m.Shards[3].Chunks)
	if err := m.Write(t.Context(), bucket, "s"); err != nil {
		t.Fatal(err)
	}
	about, err := bucket.Attributes(t.Context(), "s/"+ManifestName)
	if err != nil || about.Size>>20 < int64(mebibytes)*9/10 {
		t.Fatalf("it has %d bytes, %v", about.Size, err)
	}
	m, err = Find(t.Context(), bucket, "s")
	if err != nil || len(m.Shards) != 4 || len(m.Shards[3].Chunks) != chunks {
		t.Fatalf("%d shards, %v", len(m.Shards), err)
	}
	peak := peakMemory(t)
	t.Logf("%d bytes, %d chunks, peak %d MiB", about.Size, 4*chunks, peak>>20)
	if peak > jobMemory {
		t.Errorf("it needs %d MiB, more than the %d MiB of a Job", peak>>20, jobMemory>>20)
	}
}

// peakMemory returns the highest resident memory of this program in bytes. That of getrusage includes the memory of
// the process that started it.
func peakMemory(t *testing.T) int64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(status), "VmHWM:")
	kibibytes, err := strconv.ParseInt(strings.Fields(after)[0], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return kibibytes << 10
}

func TestManifestThatIsTooLargeIsNotWritten(t *testing.T) {
	var out counter
	if err := largeManifest(maxManifest>>20 + 2).encode(&out); err == nil || out.n > 0 {
		t.Errorf("%v, after %d bytes", err, out.n)
	}
}
