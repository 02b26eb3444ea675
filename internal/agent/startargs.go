package agent

import (
	"errors"
	"fmt"
	"slices"

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
}

const notApplied = "the new arguments are not applied: "

// selectStartArgs selects between the desired arguments, given by the text of the
// annotation, and those of the last stop.
//
// Saved items come before new arguments, which the operator can apply with a new
// pod. They also come before a start: a memcached that fails to start may destroy
// the items, so they are left to the version that saved them.
func selectStartArgs(memcached binary, text string, saved savedData) (startArgs, error) {
	desired, err := parseArguments(text)
	if saved.file != nil {
		selected, dryRunErr := selectKeepingItems(memcached, desired, err, saved)
		if dryRunErr != nil {
			return startArgs{}, fmt.Errorf("memcached %s does not start, so the items stay for the version that saved them: %w",
				memcached.version, dryRunErr.reason)
		}
		if selected != nil {
			return *selected, nil
		}
	}
	if err == nil {
		return withFallback(desired, saved), nil
	}
	if saved.hasLastStop() {
		return startArgs{arguments: saved.last.Arguments, rejection: notApplied + err.Error()}, nil
	}
	return startArgs{}, err
}

// selectKeepingItems returns nil if memcached cannot load the saved items with any
// arguments, or the error of a dry run. parseErr is set if there are no valid desired
// arguments.
func selectKeepingItems(
	memcached binary, desired []string, parseErr error, saved savedData,
) (*startArgs, *dryRunError) {
	last := saved.last.Arguments
	unchanged := parseErr == nil && saved.hasLastStop() && slices.Equal(desired, last)
	ranBefore := saved.hasLastStop() && saved.last.Version == memcached.version

	rejection := parseErr
	if rejection == nil {
		rejection = checkItemsKept(memcached, desired, saved.file.geometry, ranBefore && unchanged)
	}
	if rejection == nil {
		selected := withFallback(desired, saved)
		return &selected, nil
	}
	lastRejection := rejection
	if saved.hasLastStop() && !unchanged {
		lastRejection = checkItemsKept(memcached, last, saved.file.geometry, ranBefore)
	}
	if lastRejection == nil {
		return &startArgs{arguments: last, rejection: notApplied + rejection.Error()}, nil
	}
	var failed *dryRunError
	_ = errors.As(errors.Join(rejection, lastRejection), &failed)
	return nil, failed
}

func withFallback(desired []string, saved savedData) startArgs {
	selected := startArgs{arguments: desired}
	if last := saved.last.Arguments; saved.hasLastStop() && !slices.Equal(desired, last) {
		selected.fallback = &last
	}
	return selected
}

// validateArguments returns the arguments of the annotation's text, or an error if
// memcached cannot change to them from the current ones and keep its items.
func validateArguments(memcached binary, text string, current []string) ([]string, error) {
	desired, err := parseArguments(text)
	if err == nil && !slices.Equal(desired, current) {
		err = checkItemsKept(memcached, desired, slab.Of(current, memcached.version), false)
	}
	if err != nil {
		return nil, fmt.Errorf("%s%w", notApplied, err)
	}
	return desired, nil
}

// checkItemsKept returns an error if memcached does not start with the arguments, or
// does not load items of that geometry. ranBefore skips the dry run.
func checkItemsKept(memcached binary, arguments []string, items slab.Geometry, ranBefore bool) error {
	if difference := items.Difference(slab.Of(arguments, memcached.version)); difference != "" {
		return fmt.Errorf("they require a new pod, because memcached cannot reload its items with them: %s", difference)
	}
	if ranBefore {
		return nil
	}
	if err := dryRun(memcached.path, arguments, dryRunTimeout); err != nil {
		return &dryRunError{err}
	}
	return nil
}

// dryRunError reports that memcached did not start in a dry run.
type dryRunError struct{ reason error }

func (e *dryRunError) Error() string {
	return "memcached does not start with them: " + e.reason.Error()
}
