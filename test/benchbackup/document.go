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

	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
	"github.com/memcached-operator/memcached-operator/test/internal/load"
)

const documentFile = "bench-backup.md"

//go:embed document.md
var documentText string

var documentTemplate = template.Must(template.New("").Parse(documentText))

// document tells a run of the bench.
type document struct {
	options options
	machine string
	date    time.Time
	figures figures
}

// rows are the figures for people, each with what it is compared with.
func (d document) rows() [][3]string {
	f := d.figures
	return [][3]string{
		{"keys a second, bare copy from one memcached into another", number(f.Bare), ""},
		{"keys a second, backup without a limit", number(f.Backup), ratio(f.Backup, f.Bare)},
		{"keys a second, restore without a limit", number(f.Restore), ratio(f.Restore, f.Bare)},
		{"backup, from `kubectl create` until Complete", seconds(f.BackupTook), ""},
		{"restore, from `kubectl create` until Complete", seconds(f.RestoreTook), ""},
		{"p99 of the load without a backup", milliseconds(f.P99Quiet), ""},
		{"p99 beside a backup at the default limit, which took " + seconds(f.DefaultTook), milliseconds(f.P99Default), ratio(float64(f.P99Default), float64(f.P99Quiet))},
		{"p99 beside a backup without a limit", milliseconds(f.P99Unlimited), ratio(float64(f.P99Unlimited), float64(f.P99Quiet))},
		{"memory of the Job at most, backup and restore", mebibytes(f.PeakBackup) + " and " + mebibytes(f.PeakRestore), "of 128 MiB"},
		{"bytes stored for random values, of " + mebibytes(f.Bytes), mebibytes(f.Stored), ratio(float64(f.Stored), float64(f.Bytes))},
		{"items missing after the restore", number(float64(f.Compared.Missing)), "of " + number(float64(f.Compared.Items))},
		{"wrong values, flags, times to live (± 2 s)", fmt.Sprintf("%d, %d, %d", f.Compared.WrongValue, f.Compared.WrongFlags, f.Compared.WrongTTL), ""},
	}
}

// table is the figures for a terminal.
func (d document) table() string {
	var b strings.Builder
	for _, row := range d.rows() {
		fmt.Fprintf(&b, "%-72s %18s  %s\n", strings.ReplaceAll(row[0], "`", ""), row[1], row[2])
	}
	return b.String()
}

// write writes the document into a folder of the project.
func (d document) write(dir string) error {
	root, err := cluster.Root()
	if err != nil {
		return err
	}
	var b bytes.Buffer
	err = documentTemplate.Execute(&b, map[string]any{
		"Rows": d.rows(), "Machine": d.machine, "Date": d.date.UTC().Format(time.DateOnly),
		"Shards": shards, "PerShard": number(float64(d.options.perShard)), "Rate": d.options.rate,
		"ValueSize": d.options.valueSize, "LoadKeys": number(loadKeys), "LoadSize": load.ValueSize, "Quiet": d.options.quiet,
	})
	if err != nil {
		return fmt.Errorf("writing the document: %w", err)
	}
	return os.WriteFile(filepath.Join(root, dir, documentFile), b.Bytes(), 0o644) //nolint:gosec // a file of the repository
}

// ratio is what a figure is of another one.
func ratio(value, of float64) string {
	if of == 0 {
		return ""
	}
	return fmt.Sprintf("× %.2f", value/of)
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.0f s", d.Seconds()) }

func milliseconds(d time.Duration) string {
	return fmt.Sprintf("%.2f ms", float64(d)/float64(time.Millisecond))
}

func mebibytes(bytes int64) string { return fmt.Sprintf("%d MiB", (bytes+1<<19)>>20) }

// number writes a whole number with its thousands apart.
func number(f float64) string {
	text := strconv.FormatFloat(f, 'f', 0, 64)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
