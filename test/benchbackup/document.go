package main

import (
	_ "embed"
	"fmt"
	"time"

	"github.com/memcached-operator/memcached-operator/test/internal/load"
	"github.com/memcached-operator/memcached-operator/test/internal/report"
)

//go:embed document.md
var template string

// document reports a run of the benchmark.
type document struct {
	options options
	machine string
	date    time.Time
	figures figures
}

// table has each figure with what it is compared with.
func (d document) table() report.Table {
	f := d.figures
	return report.Table{
		{"", "", ""},
		{"keys per second, bare copy from one memcached to another", report.Number(f.Bare), ""},
		{"keys per second, backup without a limit", report.Number(f.Backup), ratio(f.Backup, f.Bare)},
		{"keys per second, restore without a limit", report.Number(f.Restore), ratio(f.Restore, f.Bare)},
		{"backup, from `kubectl create` until Complete", report.Seconds(f.BackupTook, 0), ""},
		{"restore, from `kubectl create` until Complete", report.Seconds(f.RestoreTook, 0), ""},
		{"p99 of the load without a backup", report.Milliseconds(f.P99Quiet, 2), ""},
		{"p99 during a backup at the default limit, which took " + report.Seconds(f.DefaultTook, 0), report.Milliseconds(f.P99Default, 2),
			ratio(float64(f.P99Default), float64(f.P99Quiet))},
		{"p99 during a backup without a limit", report.Milliseconds(f.P99Unlimited, 2), ratio(float64(f.P99Unlimited), float64(f.P99Quiet))},
		{"peak memory of the Job, backup and restore", report.Mebibytes(f.PeakBackup) + " and " + report.Mebibytes(f.PeakRestore), "of 128 MiB"},
		{"stored bytes of " + report.Mebibytes(f.Bytes) + " of random values", report.Mebibytes(f.Stored), ratio(float64(f.Stored), float64(f.Bytes))},
		{"items missing after the restore", report.Number(f.Compared.Missing), "of " + report.Number(f.Compared.Items)},
		{"wrong values, flags, times to live (± 2 s)", fmt.Sprintf("%d, %d, %d", f.Compared.WrongValue, f.Compared.WrongFlags, f.Compared.WrongTTL), ""},
	}
}

// write writes the document to a folder.
func (d document) write(folder string) error {
	text, err := report.Document(template, map[string]any{
		"Table": d.table().Markdown(), "Machine": d.machine, "Date": d.date.UTC().Format(time.DateOnly),
		"Shards": shards, "PerShard": report.Number(d.options.perShard), "Rate": report.Number(d.options.rate),
		"ValueSize": d.options.valueSize, "LoadKeys": report.Number(loadKeys), "LoadSize": load.ValueSize, "Quiet": d.options.quiet,
	})
	if err != nil {
		return err
	}
	return report.Write(folder, map[string][]byte{"bench-backup.md": text})
}

func ratio(value, of float64) string {
	if of == 0 {
		return ""
	}
	return fmt.Sprintf("× %.2f", value/of)
}
