// Package report has what the benchmarks share: a program's frame, numbers, tables, documents and charts.
package report

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"text/tabwriter"
	"text/template"
	"time"

	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
)

// Main runs a benchmark, whose context ends with an interrupt, and exits with status 1 if it returns an error. Further
// interrupts have no effect, so that the benchmark can stop what it started.
func Main(run func(ctx context.Context, args []string) error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "\nbenchmark: %v\n", err)
		os.Exit(1)
	}
}

// ExitOnSecondInterrupt makes a second interrupt end the program at once, for benchmarks that only delete a namespace.
func ExitOnSecondInterrupt(ctx context.Context) {
	context.AfterFunc(ctx, func() { signal.Reset(os.Interrupt, syscall.SIGTERM) })
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

// Command returns the make command that runs a benchmark with these arguments.
func Command(target string, args []string) string {
	if len(args) == 0 {
		return "make " + target
	}
	return fmt.Sprintf("make %s ARGS='%s'", target, strings.Join(args, " "))
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

// Document fills a text template in. A value that is missing is an error.
func Document(text string, values map[string]any) ([]byte, error) {
	parsed, err := template.New("document").Option("missingkey=error").Parse(text)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := parsed.Execute(&b, values); err != nil {
		return nil, fmt.Errorf("writing the document: %w", err)
	}
	return b.Bytes(), nil
}

// Folder returns the path of a folder that is relative to the project's. Empty stays empty.
func Folder(path string) (string, error) {
	if path == "" || filepath.IsAbs(path) {
		return path, nil
	}
	root, err := cluster.Root()
	return filepath.Join(root, path), err
}

// Write writes files, by name, into a folder.
func Write(folder string, files map[string][]byte) error {
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o644); err != nil { //nolint:gosec // files of the repository
			return err
		}
	}
	return nil
}
