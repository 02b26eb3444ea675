package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

const documentFile = "bench-scale.md"

// document tells a run of the bench.
type document struct {
	options options
	args    []string
	machine string
	date    time.Time
	idle    *idle
	runs    []run
}

func (d document) terminal() string {
	var b strings.Builder
	for _, r := range d.runs {
		for _, p := range r.Phases {
			fmt.Fprintf(&b, "%d %s\n%s", r.Size, p.Name, p.list(r.Size))
		}
	}
	return b.String()
}

func (d document) write(string) error { return nil }

func byCount(counts map[string]int) []string {
	return slices.SortedFunc(maps.Keys(counts), func(a, b string) int { return cmp.Or(counts[b]-counts[a], strings.Compare(a, b)) })
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.0f s", d.Seconds()) }

func mebibytes(bytes int64) string { return fmt.Sprintf("%d MiB", (bytes+1<<19)>>20) }

// number writes a whole number with its thousands apart.
func number(f float64) string {
	text := strconv.FormatFloat(f, 'f', 0, 64)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
