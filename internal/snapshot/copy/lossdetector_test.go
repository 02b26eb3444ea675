package copy

import (
	"bufio"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/memcached/fake"
)

// checked checks keys of a server that has the first ones.
func checked(d *lossDetector, keys, first int) error {
	ours, theirs := fake.Pipe()
	defer ours.Close()
	go func() {
		defer theirs.Close()
		for lines := bufio.NewScanner(theirs); lines.Scan(); {
			answer := "EN\r\n"
			if n, _ := strconv.Atoi(strings.TrimPrefix(strings.Fields(lines.Text())[1], "key")); n < first {
				answer = "HD\r\n"
			}
			_, _ = theirs.Write([]byte(answer))
		}
	}()
	for n := range keys {
		d.add(fmt.Appendf(nil, "key%d", n), 0)
	}
	return d.check(newConn(ours, 4096))
}

func TestShardLostItsItemsIfMoreThanHalfOfTheSampleIsMissing(t *testing.T) {
	const keys = 10
	for kept, lost := range map[int]bool{0: true, 4: true, 5: false, keys: false} {
		if err := checked(&lossDetector{}, keys, kept); errors.Is(err, errLost) != lost || err != nil && !lost {
			t.Errorf("of %d keys it has %d: %v", keys, kept, err)
		}
	}
}

// A server that takes over lacks what the former one stored while both served. Few keys don't show that, and a full cache evicts them later.
func TestLatestKeysDecideWhetherTheNextServerLostItems(t *testing.T) {
	const started = 1 // of the former server
	now := time.Now()
	for name, c := range map[string]struct {
		detector lossDetector
		keys     int
		lost     bool
	}{
		"the latest keys":           {lossDetector{storedOn: started, storedAt: now}, 2 * sampleSize, true},
		"an hour later":             {lossDetector{storedOn: started, storedAt: now.Add(-time.Hour)}, 2 * sampleSize, false},
		"one key of the latest":     {lossDetector{storedOn: started, storedAt: now}, sampleSize + 1, false},
		"keys that are only copied": {lossDetector{}, 2 * sampleSize, false},
	} {
		if err := checked(&c.detector, c.keys, sampleSize); errors.Is(err, errLost) != c.lost || err != nil && !c.lost {
			t.Errorf("%s: %v", name, err)
		}
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
