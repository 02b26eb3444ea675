package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"text/template"
	"time"
)

const (
	documentFile = "bench-scale.md"
	chartFile    = "bench-scale.svg"
)

// document tells a run of the bench.
type document struct {
	options options
	// args of the command line.
	args    []string
	machine string
	date    time.Time
	// idle is nil when it was not measured.
	idle *idle
	runs []run
}

//go:embed document.md
var documentText string

var documentTemplate = template.Must(template.New("").Parse(documentText))

// write writes the document and its picture into a folder.
func (d document) write(dir string) error {
	text, err := d.text()
	if err != nil {
		return err
	}
	for file, content := range map[string][]byte{documentFile: text, chartFile: d.chart().svg()} {
		if err := os.WriteFile(filepath.Join(dir, file), content, 0o644); err != nil { //nolint:gosec // files of the repository
			return fmt.Errorf("writing what was measured: %w", err)
		}
	}
	return nil
}

// text is the document.
func (d document) text() ([]byte, error) {
	last := d.runs[len(d.runs)-1]
	namespaces := "one namespace"
	if last.Namespaces > 1 {
		namespaces = fmt.Sprintf("%d namespaces", last.Namespaces)
	}
	var b bytes.Buffer
	err := documentTemplate.Execute(&b, map[string]any{
		"Figures": strings.TrimSuffix(d.markdown(), "\n"), "Command": d.command(), "Date": d.date.UTC().Format(time.DateOnly), "Machine": d.machine,
		"Told": "`" + last.Told + "`", "Shards": shards, "Namespaces": namespaces, "Starts": starts, "Brings": brings, "AtOnce": atOnce,
		"Window": d.options.window, "From": d.options.from, "To": d.options.to, "QuietFor": quietFor, "Workers": last.Workers,
		"ServedByDefault": whole(servedByDefault), "IdleFor": idleFor, "ForeignPods": whole(foreignPods), "ForeignSecrets": whole(foreignSecrets),
	})
	if err != nil {
		return nil, fmt.Errorf("writing the document: %w", err)
	}
	return b.Bytes(), nil
}

func (d document) command() string {
	if len(d.args) == 0 {
		return "make bench-scale"
	}
	return fmt.Sprintf("make bench-scale ARGS='%s'", strings.Join(d.args, " "))
}

// chart is the picture. Memory begins with that of an operator without a Memcached.
func (d document) chart() chart {
	c := chart{
		title:    "The operator over the number of Memcacheds",
		subtitle: fmt.Sprintf("%d shards each, all made, all updated at once", shards),
	}
	var now, peak []point
	if d.idle != nil {
		now, peak = append(now, point{0, mib(d.idle.Alone.Now)}), append(peak, point{0, mib(d.idle.Alone.Peak)})
	}
	seconds := map[string][]point{}
	for _, r := range d.runs {
		n := float64(r.Size)
		for _, p := range r.Phases {
			seconds[p.Name] = append(seconds[p.Name], point{n, p.Took.Seconds()})
		}
		now, peak = append(now, point{n, mib(r.phase(phaseCreate).Memory.Now)}), append(peak, point{n, mib(r.peak())})
	}
	c.panels = []panel{
		{what: "Seconds until it is done for all", series: []series{
			{"update", seconds[phaseUpdate]}, {"create", seconds[phaseCreate]}, {"restart", seconds[phaseRestart]},
		}},
		{what: "Memory of the operator, MiB", series: []series{{"at most", peak}, {"when all are there", now}}},
	}
	return c
}

// disturbed returns the share of the processor time, from 0 to 1, that other programs
// had while Memcacheds were made and updated.
func (d document) disturbed() float64 {
	var others, all time.Duration
	for _, r := range d.runs {
		for _, name := range []string{phaseCreate, phaseUpdate} {
			p := r.phase(name)
			others, all = others+p.Spent.others(), all+p.Spent.Machine
		}
	}
	if all == 0 {
		return 0
	}
	return float64(others) / float64(all)
}

// peak is the most memory that the operator had in any phase, in bytes.
func (r run) peak() int64 {
	var most int64
	for _, p := range r.Phases {
		most = max(most, p.Memory.Peak)
	}
	return most
}

func mib(bytes int64) float64 { return float64(bytes) / (1 << 20) }

func seconds(d time.Duration) string { return fmt.Sprintf("%.0f s", d.Seconds()) }

func mebibytes(bytes int64) string { return fmt.Sprintf("%.0f MiB", mib(bytes)) }

// number writes a whole number with its thousands apart.
func number(f float64) string {
	text := strconv.FormatFloat(f, 'f', 0, 64)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
