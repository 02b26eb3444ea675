package copy

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestProgressReport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		progress := &Progress{}
		progress.expect(20)
		progress.add(4, 100)
		progress.add(6, 50)
		if p := progress.Report("7"); p.TaskID != "7" || p.Items != 10 || p.TotalItems != 20 || p.Bytes != 150 || p.ItemsPerSecond != 0 {
			t.Errorf("%+v", p)
		}
		// The rate covers whole seconds, so not the current one, and forgets them later.
		for second, want := range []int64{0, 2, 2, 2, 2, 2, 0} {
			if p := progress.Report("7"); p.ItemsPerSecond != want {
				t.Errorf("a rate of %d after %d seconds, want %d", p.ItemsPerSecond, second, want)
			}
			pass(time.Second)
		}
	})
}
