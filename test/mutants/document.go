package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"text/tabwriter"
	"text/template"
	"time"
)

// documentPath is where the document stands, from the root of the repository.
var documentPath = filepath.Join("docs", "mutants.md")

//go:embed document.md
var documentText string

var documentTemplate = template.Must(template.New("").Funcs(template.FuncMap{
	"seconds": func(d time.Duration) string { return fmt.Sprintf("%.1f", d.Seconds()) },
}).Parse(documentText))

// row is a result as the document tells it.
type row struct {
	Name, File, Killed string
	Hung               bool
	Took               time.Duration
}

// part is an area of the list.
type part struct {
	Area string
	Rows []row
}

// document returns what a run of the whole list came to.
func document(results []result, date time.Time, cores int) ([]byte, error) {
	var parts []part
	var took time.Duration
	for _, r := range results {
		if len(parts) == 0 || parts[len(parts)-1].Area != r.mutant.area {
			parts = append(parts, part{Area: r.mutant.area})
		}
		p := &parts[len(parts)-1]
		p.Rows = append(p.Rows, row{r.mutant.name, r.mutant.file, r.killed, r.hung, r.took})
		took += r.took
	}
	var b bytes.Buffer
	err := documentTemplate.Execute(&b, map[string]any{
		"Parts": parts, "Mutants": len(results), "Killed": len(results) - len(survivors(results)),
		"Minutes": fmt.Sprintf("%.0f", took.Minutes()), "Date": date.UTC().Format(time.DateOnly), "Cores": cores,
	})
	if err != nil {
		return nil, fmt.Errorf("writing the document: %w", err)
	}
	return b.Bytes(), nil
}

// writeDocument writes the document to a file.
func writeDocument(path string, results []result, date time.Time) error {
	text, err := document(results, date, runtime.NumCPU())
	if err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o644) //nolint:gosec // a file of the repository
}

// table returns the results for a terminal.
func table(results []result) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "MUTANT\tFILE\tRESULT")
	for _, r := range results {
		fmt.Fprintf(w, "%s\t%s\t%s\n", r.mutant.name, r.mutant.file, r)
	}
	_ = w.Flush() // into memory
	return b.String()
}
