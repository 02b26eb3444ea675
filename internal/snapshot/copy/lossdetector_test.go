package copy

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
)

func TestShardLostItsItemsIfMoreThanHalfOfTheSampleIsMissing(t *testing.T) {
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
		var d lossDetector
		for n := range keys {
			d.replaceOldest(fmt.Appendf(nil, "key%d", n))
		}
		if err := d.check(newConn(ours, 4096)); errors.Is(err, errLost) != lost || err != nil && !lost {
			t.Errorf("of %d keys it has %d: %v", keys, kept, err)
		}
		_ = ours.Close()
	}
}

func TestLossDetectorKeepsTheLatestOrAUniformSample(t *testing.T) {
	var latest, uniform lossDetector
	for i := range 1000 {
		latest.replaceOldest(fmt.Appendf(nil, "key-%d", i))
		uniform.addUniformly(fmt.Appendf(nil, "key-%d", i))
	}
	for _, key := range latest.keys {
		if number := strings.TrimPrefix(string(key), "key-"); len(number) != 3 || number < "936" {
			t.Errorf("%q is not one of the latest", key)
		}
	}
	old := 0
	for _, key := range uniform.keys {
		if len(strings.TrimPrefix(string(key), "key-")) < 3 || string(key) < "key-500" {
			old++
		}
	}
	if old < 10 || old > 54 {
		t.Errorf("%d of %d keys are of the first half", old, sampleSize)
	}
}
