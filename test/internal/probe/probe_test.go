package probe

import (
	"errors"
	"fmt"
	"syscall"
	"testing"
	"time"
)

func TestLostRequestIsAFailureUnlessTheMachineStalled(t *testing.T) {
	at := func(milliseconds int64) time.Time { return time.UnixMilli(milliseconds) }
	lost := fmt.Errorf("%w 1 times", errLost)
	p := &Probe{report: Report{Failures: []Failure{{at(0), at(1040), lost}, {at(2000), at(3040), lost}, {at(2000), at(2001), syscall.ECONNREFUSED}}}}
	p.runs(at(1960), at(2000))
	p.runs(at(2040), at(3020))
	if got := p.Report().Failures; len(got) != 2 || !errors.Is(got[0].Err, errLost) || !errors.Is(got[1].Err, syscall.ECONNREFUSED) {
		t.Errorf("the failures are %v", got)
	}
}
