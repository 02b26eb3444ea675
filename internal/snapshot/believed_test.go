package snapshot

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"testing"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/internal/snapshotapi"
)

func TestAChunkHoldsWhatTheManifestSaysAndNoByteMoreOrLess(t *testing.T) {
	raw := record{key: []byte("key"), size: 5}.append(nil)
	raw = append(raw, "value"...)
	decoder, err := newDecoder()
	if err != nil {
		t.Fatal(err)
	}
	defer decoder.Close()
	for _, difference := range []int{-1, 0, 1} {
		stored, chunk := chunkOf(t, raw, 1)
		chunk.Bytes += difference
		if _, err := decode(decoder, stored, nil, chunk); (err == nil) != (difference == 0) {
			t.Errorf("the manifest says %d bytes more than there are: %v", difference, err)
		}
	}
}

// The operator that wrote it may have had a reason for the number.
func TestTheNextVersionOfTheFormatIsNotRead(t *testing.T) {
	for version, want := range map[int]string{FormatVersion: v1alpha1.ReasonSnapshotCorrupt, FormatVersion + 1: v1alpha1.ReasonSnapshotTooNew, 0: v1alpha1.ReasonSnapshotCorrupt} {
		_, err := decodeManifest(fmt.Appendf(nil, `{"format":%q,"version":%d,"checksum":"","snapshot":{}}`, Format, version))
		if f := snapshotapi.AsFailure(err); f == nil || f.Reason != want {
			t.Errorf("version %d: %v, want %s", version, err, want)
		}
	}
}

// memcached evicts and clients delete, so that some keys are always missing.
func TestAServerLostItsItemsWhenMoreThanHalfOfThemAreGone(t *testing.T) {
	const keys = 10
	for kept, lost := range map[int]bool{0: true, 4: true, 5: false, keys: false} {
		ours, theirs := net.Pipe()
		go func() {
			defer theirs.Close()
			lines := bufio.NewScanner(theirs)
			text := ""
			for n := 0; n < keys && lines.Scan(); n++ {
				if n < kept {
					text += "HD\r\n"
				} else {
					text += "EN\r\n"
				}
			}
			_, _ = theirs.Write([]byte(text))
		}()
		var s sample
		for n := range keys {
			s.latest(fmt.Appendf(nil, "key%d", n))
		}
		if err := s.keptBy(ours, bufio.NewReader(ours)); errors.Is(err, errLost) != lost || err != nil && !lost {
			t.Errorf("of %d keys it has %d: %v", keys, kept, err)
		}
		_ = ours.Close()
	}
}
