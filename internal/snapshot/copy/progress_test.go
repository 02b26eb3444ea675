package copy

import (
	"testing"
	"time"
)

func TestProgressReport(t *testing.T) {
	progress := &Progress{}
	progress.expect(10)
	began := time.Now()
	progress.add(4, 100)
	progress.add(2, 50)
	p := progress.Report("7")
	if p.TaskID != "7" || p.Items != 6 || p.TotalItems != 10 || p.Bytes != 150 {
		t.Errorf("%+v", p)
	}
	// The rate covers whole seconds, so not the current one.
	for progress.Report("7").ItemsPerSecond == 0 {
		if time.Since(began) > time.Minute {
			t.Fatal("there is no rate")
		}
		time.Sleep(20 * time.Millisecond)
	}
	if rate := progress.Report("7").ItemsPerSecond; rate != 6/rateSeconds {
		t.Errorf("rate %d", rate)
	}
}
