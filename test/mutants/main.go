package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"
)

// options are what a person may ask for.
type options struct {
	// only mutants whose name it matches.
	only *regexp.Regexp
	// jobs is how many mutants are tried at once.
	jobs int
	// root of the repository.
	root string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "\nmutants: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	o, err := parseOptions(args)
	if err != nil {
		return err
	}
	all, err := mutants()
	if err != nil {
		return err
	}
	var chosen []mutant
	for _, m := range all {
		if o.only.MatchString(m.name) {
			chosen = append(chosen, m)
		}
	}
	if len(chosen) == 0 {
		return fmt.Errorf("no mutant has a name that %s matches", o.only)
	}
	r := runner{gotest: gotest{o.root}, jobs: o.jobs, out: os.Stdout}
	began := time.Now()
	results, err := r.run(ctx, chosen)
	if err != nil {
		return err
	}
	fmt.Printf("\n%s\n", table(results))
	if len(chosen) == len(all) {
		if err := writeDocument(filepath.Join(o.root, documentPath), results, began); err != nil {
			return err
		}
	}
	if names := survivors(results); len(names) > 0 {
		return fmt.Errorf("no test notices %d of %d mutants:\n  %s", len(names), len(results), strings.Join(names, "\n  "))
	}
	fmt.Printf("Every one of %d mutants was killed, in %s.\n", len(results), time.Since(began).Round(time.Second))
	return nil
}

func parseOptions(args []string) (options, error) {
	o := options{root: ".."}
	flags := flag.NewFlagSet("mutants", flag.ContinueOnError)
	only := flags.String("run", "", "try only mutants whose name this `regexp` matches; then no document is written")
	flags.IntVar(&o.jobs, "j", 1, "`number` of mutants that are tried at once")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("%q is no flag", flags.Arg(0))
	}
	if o.jobs < 1 {
		return o, fmt.Errorf("-j is %d: give 1 at least", o.jobs)
	}
	var err error
	if o.only, err = regexp.Compile(*only); err != nil {
		return o, fmt.Errorf("-run: %w", err)
	}
	return o, nil
}
