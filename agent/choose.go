package main

import (
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
// what the annotation wants. Items that were saved are worth more than new
// arguments: for those the operator can replace the pod.
func choose(p program, dir, text string, before saved) (choice, error) {
	last, hasLast := before.last.Arguments, !before.last.At.IsZero()
	if hasLast && before.file != nil && before.file.geometry.Difference(geometry.Of(last, p.version)) == "" {
		wanted, err := acceptable(p, dir, text, last)
		if err != nil {
			return choice{arguments: last, refusal: err.Error()}, nil
		}
		return withFallback(wanted, last), nil
	}
	wanted, err := parseArguments(text)
	switch {
	case err == nil && hasLast:
		return withFallback(wanted, last), nil
	case err == nil:
		return choice{arguments: wanted}, nil
	case hasLast:
		return choice{arguments: last, refusal: notInEffect + err.Error()}, nil
	}
	return choice{}, err
}

func withFallback(wanted, last []string) choice {
	c := choice{arguments: wanted}
	if !slices.Equal(wanted, last) {
		c.fallback = &last
	}
	return c
}

const notInEffect = "the new arguments are not in effect: "

// acceptable returns the arguments of an annotation's text if memcached can go
// over to them from the present ones and keep its items; else why not.
func acceptable(p program, dir, text string, present []string) ([]string, error) {
	wanted, err := parseArguments(text)
	if err != nil {
		return nil, fmt.Errorf("%s%w", notInEffect, err)
	}
	if slices.Equal(wanted, present) {
		return wanted, nil
	}
	if differs := geometry.Of(present, p.version).Difference(geometry.Of(wanted, p.version)); differs != "" {
		return nil, fmt.Errorf("%sthey need a replacement of the pod, since memcached could not take up its items with them: %s",
			notInEffect, differs)
	}
	if err := try(p.path, dir, wanted); err != nil {
		return nil, fmt.Errorf("%smemcached does not start with them: %w", notInEffect, err)
	}
	return wanted, nil
}
