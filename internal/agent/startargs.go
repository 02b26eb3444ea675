package agent

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/agent/datadir"
	"github.com/memcached-operator/memcached-operator/internal/agent/process"
	"github.com/memcached-operator/memcached-operator/internal/memcached/slab"
)

// startArgs are the arguments with which a new agent starts memcached.
type startArgs struct {
	arguments []string
	// fallback replaces the arguments if memcached does not start with them; nil if
	// there is none. Empty arguments are memcached's defaults.
	fallback *[]string
	// rejection is the reason why the desired arguments are not used; empty if they are.
	rejection string
	// slow is why it is unknown whether the desired arguments can be used; nil if it is known.
	slow error
}

const notApplied = "the new arguments are not applied: "

// selectStartArgs selects between the desired arguments, given by the pod's annotations, and those
// with which memcached ran last.
//
// Saved items come before new arguments, which the operator can apply with a new
// pod. They also come before a start: a memcached that fails to start may destroy
// the items, so they are left to the version that saved them.
func selectStartArgs(memcached binary, info podInfo, saved datadir.Saved) (startArgs, error) {
	desired, invalid := info.desired(saved.Last.Arguments)
	last := startArgs{arguments: saved.Last.Arguments}
	ran := saved.Last.IsRecorded()
	selected := startArgs{arguments: desired}
	if ran && !slices.Equal(desired, last.arguments) {
		selected.fallback = &last.arguments
	}
	if saved.File != nil {
		ranBefore := ran && saved.Last.Version == memcached.Version
		rejection := invalid
		if rejection == nil {
			rejection = checkItemsKept(memcached, desired, saved.File.Geometry, ranBefore && selected.fallback == nil, dryRunTimeout)
		}
		if rejection == nil {
			return selected, nil
		}
		lastRejection := rejection
		if ran && (invalid != nil || selected.fallback != nil) {
			lastRejection = checkItemsKept(memcached, last.arguments, saved.File.Geometry, ranBefore, dryRunTimeout)
		}
		switch {
		case lastRejection == nil && process.IsSlow(rejection):
			last.slow = rejection
			return last, nil
		case lastRejection == nil:
			last.rejection = notApplied + rejection.Error()
			return last, nil
		}
		if slow, ok := errors.AsType[*process.SlowError](errors.Join(rejection, lastRejection)); ok {
			return startArgs{}, fmt.Errorf("the saved items stay for the next start: %w", slow)
		}
		// If memcached loads the items with no arguments, they are lost.
		if failed, ok := errors.AsType[*dryRunError](errors.Join(rejection, lastRejection)); ok {
			return startArgs{}, fmt.Errorf("memcached %s does not start, so the items stay for the version that saved them: %w",
				memcached.Version, failed.reason)
		}
	}
	switch {
	case invalid == nil:
		return selected, nil
	case ran:
		last.rejection = notApplied + invalid.Error()
		return last, nil
	default:
		return startArgs{}, invalid
	}
}

// validateArguments returns the arguments of the pod's annotations, or an error if
// memcached cannot change to them from the current ones and keep its items.
func validateArguments(memcached binary, info podInfo, current []string) ([]string, error) {
	desired, err := info.desired(current)
	if err == nil {
		err = memcached.secrets.Problem(desired, current)
	}
	if err == nil && !slices.Equal(desired, current) {
		err = checkItemsKept(memcached, desired, slab.Of(current, memcached.Version), false, servingDryRunTimeout)
	}
	if err != nil {
		return nil, fmt.Errorf("%s%w", notApplied, err)
	}
	return desired, nil
}

// checkItemsKept returns an error if memcached does not start with the arguments, or
// does not load items of that geometry. ranBefore skips the dry run. A SlowError says that it is unknown.
func checkItemsKept(memcached binary, arguments []string, items slab.Geometry, ranBefore bool, timeout time.Duration) error {
	if difference := items.Difference(slab.Of(arguments, memcached.Version)); difference != "" {
		return fmt.Errorf("they require a new pod, because memcached cannot reload its items with them: %s", difference)
	}
	if ranBefore {
		return nil
	}
	err := dryRun(memcached, arguments, timeout)
	if err == nil || process.IsSlow(err) {
		return err
	}
	return &dryRunError{err}
}

type dryRunError struct{ reason error }

func (e *dryRunError) Error() string {
	return "memcached does not start with them: " + e.reason.Error()
}
