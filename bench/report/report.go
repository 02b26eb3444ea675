// Package report has what the benchmarks share: the frame of a benchmark, numbers, tables, documents and charts.
package report

import (
	"bytes"
	"cmp"
	"context"
	"flag"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"text/template"
	"time"

	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
)

// Benchmark is a command of the program.
type Benchmark struct {
	// Name of the command. "make bench-NAME" runs it, and it writes docs/bench-NAME.md.
	Name, Summary string
	// Template of the document; empty if the benchmark only prints.
	Template string
	// Flags defines the options, and returns what measures with them.
	Flags func(*flag.FlagSet) Measure
}

// Measure measures and returns the result. With an error, nothing is reported.
type Measure func(context.Context, *Run) (Result, error)

// Result is what a benchmark measured.
type Result struct {
	// Machine describes where; empty means this machine.
	Machine string
	Tables  []Table
	// Chart is nil if there is none.
	Chart *Chart
	// Values that the template needs besides Tables, Chart and Footer.
	Values map[string]any
	// Warning is printed; empty without one.
	Warning string
	// Missed is an error if a figure does not meet a target of the project.
	Missed error
}

// Run is a run of a benchmark.
type Run struct {
	Benchmark
	Began time.Time
	args  []string
	// commit that is measured.
	commit string
	// out is the folder of the document; empty writes none.
	out string
}

// Execute runs the benchmark with the arguments of its command.
func (b Benchmark) Execute(ctx context.Context, args []string) error {
	r := &Run{Benchmark: b, Began: time.Now(), args: args}
	flags := flag.NewFlagSet(b.Name, flag.ExitOnError)
	measure := b.Flags(flags)
	if b.Template != "" {
		flags.StringVar(&r.out, "out", "docs", "`folder` for the document, relative to the project's; empty writes none")
	}
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected arguments %q", flags.Args())
	}
	if r.out != "" && !filepath.IsAbs(r.out) {
		root, err := cluster.Root()
		if err != nil {
			return err
		}
		r.out = filepath.Join(root, r.out)
	}
	var err error
	if r.commit, err = commit(ctx); err != nil {
		return err
	}
	result, err := measure(ctx, r)
	if err != nil {
		return err
	}
	if result.Machine == "" {
		machine, err := Machine()
		if err != nil {
			return err
		}
		result.Machine = "A " + machine + "."
	}
	fmt.Println()
	for _, table := range result.Tables {
		fmt.Println(table.Terminal())
	}
	fmt.Printf("%s\nThe benchmark took %s.\n", r.footer(result), time.Since(r.Began).Round(time.Second))
	if result.Warning != "" {
		fmt.Println(result.Warning)
	}
	return cmp.Or(r.Write(result), result.Missed)
}

// Say prints progress, with the time since the beginning.
func (r *Run) Say(format string, args ...any) {
	fmt.Printf("%7.1fs  %s\n", time.Since(r.Began).Seconds(), fmt.Sprintf(format, args...))
}

// Write writes the document and its chart. A benchmark calls it for a result of a part of its run.
func (r *Run) Write(result Result) error {
	if r.out == "" {
		return nil
	}
	text, err := r.Document(result, r.footer(result))
	if err != nil {
		return err
	}
	files := map[string][]byte{".md": text}
	if result.Chart != nil {
		pictures, err := result.Chart.Pictures()
		if err != nil {
			return err
		}
		maps.Copy(files, pictures)
	}
	return write(filepath.Join(r.out, "bench-"+r.Name), files)
}

// write writes files of the repository by the ends of their names.
func write(begin string, files map[string][]byte) error {
	for end, content := range files {
		if err := os.WriteFile(begin+end, content, 0o644); err != nil { //nolint:gosec // files of the repository
			return err
		}
	}
	return nil
}

// Redraw draws the charts in docs/ again, from the data in their pictures.
func Redraw(context.Context, []string) error {
	root, err := cluster.Root()
	if err != nil {
		return err
	}
	files, err := redrawn(filepath.Join(root, "docs"))
	if err != nil {
		return err
	}
	return write("", files)
}

// redrawn returns the pictures of the charts in a folder by their paths.
func redrawn(folder string) (map[string][]byte, error) {
	files, err := filepath.Glob(filepath.Join(folder, "bench-*.svg"))
	if err != nil {
		return nil, err
	}
	all := map[string][]byte{}
	for _, file := range files {
		begin := strings.TrimSuffix(file, ".svg")
		if strings.HasSuffix(begin, briefName) {
			continue
		}
		content, err := os.ReadFile(file) //nolint:gosec // a file of the repository
		if err != nil {
			return nil, err
		}
		chart, err := Read(content)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", file, err)
		}
		pictures, err := chart.Pictures()
		if err != nil {
			return nil, err
		}
		for end, picture := range pictures {
			all[begin+end] = picture
		}
	}
	return all, nil
}

// footer says what was measured, when and where. hack/release.sh reads the date.
func (r *Run) footer(result Result) string {
	command, wrote := "make bench-"+r.Name, ""
	if len(r.args) > 0 {
		command += fmt.Sprintf(" ARGS='%s'", strings.Join(r.args, " "))
	}
	switch {
	case r.out != "" && result.Chart != nil:
		wrote = " It wrote this page and the chart: do not edit them."
	case r.out != "":
		wrote = " It wrote this page: do not edit it."
	}
	return fmt.Sprintf("`%s` measured the commit %s on %s.%s %s", command, r.commit, r.Began.UTC().Format(time.DateOnly), wrote, result.Machine)
}

// Document fills the template in. A value that is missing is an error.
func (b Benchmark) Document(result Result, footer string) ([]byte, error) {
	parsed, err := template.New(b.Name).Option("missingkey=error").Parse(b.Template)
	if err != nil {
		return nil, err
	}
	var tables []string
	for _, table := range result.Tables {
		tables = append(tables, table.Markdown())
	}
	values := map[string]any{"Tables": strings.Join(tables, "\n"), "Chart": "bench-" + b.Name + ".svg", "Footer": footer}
	maps.Copy(values, result.Values)
	var text bytes.Buffer
	if err := parsed.Execute(&text, values); err != nil {
		return nil, fmt.Errorf("writing the document: %w", err)
	}
	return text.Bytes(), nil
}

// Number formats a number without decimals and with separators of thousands.
func Number[N int | int64 | float64](n N) string {
	return message.NewPrinter(language.English).Sprint(int64(math.Round(float64(n))))
}

// Seconds formats a duration in seconds.
func Seconds(d time.Duration, decimals int) string {
	return fmt.Sprintf("%.*f s", decimals, d.Seconds())
}

// Milliseconds formats a duration in milliseconds.
func Milliseconds(d time.Duration, decimals int) string {
	return fmt.Sprintf("%.*f ms", decimals, float64(d)/float64(time.Millisecond))
}

// Percent formats a share from 0 to 1.
func Percent(share float64, decimals int) string { return fmt.Sprintf("%.*f%%", decimals, 100*share) }

// MiB returns a number of bytes in mebibytes.
func MiB(bytes int64) float64 { return float64(bytes) / (1 << 20) }

// Mebibytes formats a number of bytes in mebibytes.
func Mebibytes(bytes int64) string { return fmt.Sprintf("%.0f MiB", MiB(bytes)) }

// Quantile returns the smallest value that a share of the values, from 0 to 1, does not exceed; 0 without values.
func Quantile[V cmp.Ordered](values []V, share float64) (quantile V) {
	if len(values) == 0 {
		return quantile
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[max(int(math.Ceil(share*float64(len(sorted))))-1, 0)]
}

// Spread is the median and the range of a figure.
type Spread struct{ Median, Low, High float64 }

// SpreadOf returns the spread of a figure over rounds.
func SpreadOf[R any](rounds []R, value func(R) float64) Spread {
	var all []float64
	for _, r := range rounds {
		all = append(all, value(r))
	}
	slices.Sort(all)
	middle := len(all) / 2
	return Spread{Median: (all[middle] + all[(len(all)-1)/2]) / 2, Low: all[0], High: all[len(all)-1]}
}

// MedianBy returns the round with the median of a figure.
func MedianBy[R any](rounds []R, value func(R) float64) R {
	sorted := slices.SortedFunc(slices.Values(rounds), func(a, b R) int { return cmp.Compare(value(a), value(b)) })
	return sorted[len(sorted)/2]
}

// Text returns the median, and the range if it is one.
func (s Spread) Text(format func(float64) string) string {
	median, low, high := format(s.Median), format(s.Low), format(s.High)
	if low == high {
		return median
	}
	return fmt.Sprintf("%s [%s to %s]", median, low, high)
}

// Factor compares a value with the first variant's. It is empty if the two are equal or one is too small.
func Factor(value, first float64) string {
	ratio := value / first
	switch {
	case min(value, first) < 0.1 || value == first || ratio < 0.1:
		return ""
	case ratio < 10:
		return fmt.Sprintf(" (%.1f ×)", ratio)
	}
	return fmt.Sprintf(" (%.0f ×)", ratio)
}

// Table has a header and rows, whose first cell names the row.
type Table [][]string

// Add adds a row with the cell of each column.
func Add[C any](t *Table, label string, columns []C, cell func(C) string) {
	row := []string{label}
	for _, c := range columns {
		row = append(row, cell(c))
	}
	*t = append(*t, row)
}

// Markdown returns the table for a document.
func (t Table) Markdown() string {
	var b strings.Builder
	for i, row := range t {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(row, " | "))
		if i == 0 {
			fmt.Fprintf(&b, "|---|%s\n", strings.Repeat("---:|", len(row)-1))
		}
	}
	return b.String()
}

// Terminal returns the table in columns, without Markdown's marks.
func (t Table) Terminal() string {
	var b strings.Builder
	columns := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, row := range t {
		fmt.Fprintln(columns, strings.NewReplacer("**", "", "`", "").Replace(strings.Join(row, "\t"))+"\t")
	}
	_ = columns.Flush() // a strings.Builder takes everything
	return b.String()
}
