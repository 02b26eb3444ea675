package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/memcached-operator/memcached-operator/internal/geometry"
)

// choice is what a new agent starts memcached with.
type choice struct {
	arguments []string
	// fallback is what to go back to should memcached not start; nil when there
	// is nothing, since memcached's defaults are no words at all.
	fallback *[]string
	// refusal is why the arguments are not the wanted ones; empty when they are.
	refusal string
}

// choose decides with which arguments a new agent starts memcached; text is
// what the annotation wants.
//
// Items that were saved are worth more than new arguments: for those the operator
// can replace the pod. They are worth more than a start too: a memcached that
// fails to start may use them up, so one of another version is tried before, and
// when it does not start they are left to the version that saved them.
func choose(p program, dir, text string, before saved) (choice, error) {
	last, hasLast := before.last.Arguments, !before.last.At.IsZero()
	wanted, err := parseArguments(text)
	if before.file != nil {
		ran := hasLast && before.last.Version == p.version
		same := hasLast && err == nil && slices.Equal(wanted, last)
		refusal := err
		if err == nil {
			refusal = keeps(p, dir, wanted, before.file.geometry, ran && same)
		}
		if refusal == nil {
			return withFallback(wanted, last, hasLast), nil
		}
		lastRefusal := refusal
		if hasLast && !same {
			lastRefusal = keeps(p, dir, last, before.file.geometry, ran)
		}
		if lastRefusal == nil {
			return choice{arguments: last, refusal: notInEffect + refusal.Error()}, nil
		}
		for _, refusal := range []error{refusal, lastRefusal} {
			var failed *trialError
			if errors.As(refusal, &failed) {
				return choice{}, fmt.Errorf("memcached %s does not start, so what was saved is left as it is: %w", p.version, failed.reason)
			}
		}
	}
	switch {
	case err == nil:
		return withFallback(wanted, last, hasLast), nil
	case hasLast:
		return choice{arguments: last, refusal: notInEffect + err.Error()}, nil
	}
	return choice{}, err
}

func withFallback(wanted, last []string, hasLast bool) choice {
	c := choice{arguments: wanted}
	if hasLast && !slices.Equal(wanted, last) {
		c.fallback = &last
	}
	return c
}

const notInEffect = "the new arguments are not in effect: "

// trialError tells that memcached was tried with arguments and did not start.
type trialError struct{ reason error }

func (e *trialError) Error() string { return "memcached does not start with them: " + e.reason.Error() }

// keeps returns nil if memcached starts with the arguments and takes up items of
// that geometry; else why not. ran tells that it started with them before.
func keeps(p program, dir string, arguments []string, items geometry.Geometry, ran bool) error {
	if differs := items.Difference(geometry.Of(arguments, p.version)); differs != "" {
		return fmt.Errorf("they need a replacement of the pod, since memcached could not take up its items with them: %s", differs)
	}
	if ran {
		return nil
	}
	if err := try(p.path, dir, arguments, trialBound); err != nil {
		return &trialError{err}
	}
	return nil
}

// acceptable returns the arguments of an annotation's text if memcached can go
// over to them from the present ones and keep its items; else why not.
func acceptable(p program, dir, text string, present []string) ([]string, error) {
	wanted, err := parseArguments(text)
	if err == nil && !slices.Equal(wanted, present) {
		err = keeps(p, dir, wanted, geometry.Of(present, p.version), false)
	}
	if err != nil {
		return nil, fmt.Errorf("%s%w", notInEffect, err)
	}
	return wanted, nil
}
