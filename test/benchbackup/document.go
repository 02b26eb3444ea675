package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"strings"
	"text/template"
	"time"

	"github.com/memcached-operator/memcached-operator/test/internal/load"
	"github.com/memcached-operator/memcached-operator/test/internal/report"
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
		{"keys a second, bare copy from one memcached into another", report.Number(f.Bare), ""},
		{"keys a second, backup without a limit", report.Number(f.Backup), ratio(f.Backup, f.Bare)},
		{"keys a second, restore without a limit", report.Number(f.Restore), ratio(f.Restore, f.Bare)},
		{"backup, from `kubectl create` until Complete", report.Seconds(f.BackupTook), ""},
		{"restore, from `kubectl create` until Complete", report.Seconds(f.RestoreTook), ""},
		{"p99 of the load without a backup", report.Milliseconds(f.P99Quiet, 2), ""},
		{"p99 beside a backup at the default limit, which took " + report.Seconds(f.DefaultTook), report.Milliseconds(f.P99Default, 2), ratio(float64(f.P99Default), float64(f.P99Quiet))},
		{"p99 beside a backup without a limit", report.Milliseconds(f.P99Unlimited, 2), ratio(float64(f.P99Unlimited), float64(f.P99Quiet))},
		{"memory of the Job at most, backup and restore", report.Mebibytes(f.PeakBackup) + " and " + report.Mebibytes(f.PeakRestore), "of 128 MiB"},
		{"bytes stored for random values, of " + report.Mebibytes(f.Bytes), report.Mebibytes(f.Stored), ratio(float64(f.Stored), float64(f.Bytes))},
		{"items missing after the restore", report.Number(f.Compared.Missing), "of " + report.Number(f.Compared.Items)},
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

// write writes the document into a folder.
func (d document) write(dir string) error {
	var b bytes.Buffer
	err := documentTemplate.Execute(&b, map[string]any{
		"Rows": d.rows(), "Machine": d.machine, "Date": d.date.UTC().Format(time.DateOnly),
		"Shards": shards, "PerShard": report.Number(d.options.perShard), "Rate": d.options.rate,
		"ValueSize": d.options.valueSize, "LoadKeys": report.Number(loadKeys), "LoadSize": load.ValueSize, "Quiet": d.options.quiet,
	})
	if err != nil {
		return fmt.Errorf("writing the document: %w", err)
	}
	return report.Write(dir, map[string][]byte{documentFile: b.Bytes()})
}

// ratio is what a figure is of another one.
func ratio(value, of float64) string {
	if of == 0 {
		return ""
	}
	return fmt.Sprintf("× %.2f", value/of)
}
