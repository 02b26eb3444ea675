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
