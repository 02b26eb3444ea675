package copy

import (
	"bufio"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/memcached-operator/memcached-operator/internal/memcached/fake"
)

func TestShardLostItsItemsIfMoreThanHalfOfTheSampleIsMissing(t *testing.T) {
	const keys = 10
	for kept, lost := range map[int]bool{0: true, 4: true, 5: false, keys: false} {
		ours, theirs := fake.Pipe()
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
			d.add(fmt.Appendf(nil, "key%d", n), 0)
		}
		if err := d.check(newConn(ours, 4096)); errors.Is(err, errLost) != lost || err != nil && !lost {
			t.Errorf("of %d keys it has %d: %v", keys, kept, err)
		}
		_ = ours.Close()
	}
}

func TestLossDetectorKeepsTheFirstAndTheLatestKeysOrAUniformSample(t *testing.T) {
	var copied, uniform lossDetector
	for i := range 1000 {
		copied.addUniformly(fmt.Appendf(nil, "listed-%d", i), 0)
		uniform.addUniformly(fmt.Appendf(nil, "key-%03d", i), 0)
	}
	for i := range 1000 {
		copied.add(fmt.Appendf(nil, "key-%03d", i), 0)
	}
	for i, k := range copied.keys {
		number, found := strings.CutPrefix(string(k.key), "key-")
		if !found || i < sampleSize && number > "063" || i >= sampleSize && number < "936" {
			t.Errorf("%q is neither one of the first nor of the latest", k.key)
		}
	}
	old := 0
	for _, k := range uniform.keys[:sampleSize] {
		if string(k.key) < "key-500" {
			old++
		}
	}
	if old < 10 || old > 54 {
		t.Errorf("%d of %d keys are of the first half", old, sampleSize)
	}
}

func TestLossDetectorIgnoresExpiredKeys(t *testing.T) {
	ours, theirs := fake.Pipe()
	defer ours.Close()
	defer theirs.Close()
	requests := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(theirs).ReadString('\n')
		requests <- line
		_, _ = theirs.Write([]byte("HD\r\n"))
	}()
	var d lossDetector
	d.add([]byte("expired"), 900)
	d.add([]byte("lives"), 2000)
	c := newConn(ours, 4096)
	c.time = 1000
	if err := d.check(c); err != nil {
		t.Error(err)
	}
	if got := <-requests; got != "mg lives u\r\n" {
		t.Errorf("it requested %q", got)
	}
}
