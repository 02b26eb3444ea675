package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/operator-framework/api/pkg/apis/scorecard/v1alpha3"
)

// remindEvery is how often the teller says what it waits for.
const remindEvery = 10 * time.Second

// teller says what goes on, with the time since the run began.
type teller struct {
	to      io.Writer
	since   time.Time
	lock    sync.Mutex
	waiting []string
}

func newTeller(to io.Writer) *teller { return &teller{to: to, since: time.Now()} }

func (t *teller) began(name string) {
	t.lock.Lock()
	defer t.lock.Unlock()
	t.waiting = append(t.waiting, name)
}

func (t *teller) ended(name, state string) {
	t.lock.Lock()
	defer t.lock.Unlock()
	t.waiting = slices.DeleteFunc(t.waiting, func(w string) bool { return w == name })
	t.say("%s: %s", name, state)
}

// remind says what is waited for, again and again until ctx ends.
func (t *teller) remind(ctx context.Context) {
	ticks := time.NewTicker(remindEvery)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
		t.lock.Lock()
		if len(t.waiting) > 0 {
			t.say("waiting for %s", strings.Join(t.waiting, ", "))
		}
		t.lock.Unlock()
	}
}

func (t *teller) say(format string, args ...any) {
	fmt.Fprintf(t.to, "%6.1fs  %s\n", time.Since(t.since).Seconds(), fmt.Sprintf(format, args...))
}

// report prints a table of the results, and everything that a test tells that did
// not pass.
func report(to io.Writer, results []result) {
	table := tabwriter.NewWriter(to, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "\nTEST\tRESULT\tSECONDS")
	for _, r := range results {
		fmt.Fprintf(table, "%s\t%s\t%.1f\n", nameOf(r.test), r.state(), r.took.Seconds())
	}
	_ = table.Flush() // the terminal went away, and nobody is left to be told
	for _, r := range results {
		for _, one := range r.status.Results {
			if one.State != v1alpha3.PassState {
				fmt.Fprintf(to, "\n%s: %s\n", nameOf(r.test), one.State)
				section(to, "errors", one.Errors)
				section(to, "suggestions", one.Suggestions)
				section(to, "log", strings.Split(strings.TrimRight(one.Log, "\n"), "\n"))
			}
		}
	}
	fmt.Fprintln(to)
}

func section(to io.Writer, title string, lines []string) {
	if len(lines) == 0 || lines[0] == "" {
		return
	}
	fmt.Fprintf(to, "  %s\n", title)
	for _, line := range lines {
		fmt.Fprintf(to, "    %s\n", line)
	}
}
