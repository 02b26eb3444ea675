package main

import (
	"flag"
	"fmt"
	"io"
)

// parse reads flags from before, between and after the other arguments, which
// it returns.
func parse(flags *flag.FlagSet, args []string) ([]string, error) {
	flags.SetOutput(io.Discard) // the error says it all
	var rest []string
	for {
		if err := flags.Parse(args); err != nil {
			return nil, fmt.Errorf("%s: %w: %w", flags.Name(), err, errUsage)
		}
		if flags.NArg() == 0 {
			return rest, nil
		}
		rest = append(rest, flags.Arg(0))
		args = flags.Args()[1:]
	}
}

// dispatch runs the one of a command's acts that its only argument names; takes
// lists them in a sentence.
func dispatch(command string, args []string, takes string, acts map[string]func() error) error {
	if len(args) != 1 {
		return fmt.Errorf("%s takes %s: %w", command, takes, errUsage)
	}
	act, ok := acts[args[0]]
	if !ok {
		return fmt.Errorf("%s %s is not known: %w", command, args[0], errUsage)
	}
	return act()
}
