package main

import (
	_ "embed"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/memcached-operator/memcached-operator/test/benchscale/usage"
	"github.com/memcached-operator/memcached-operator/test/internal/report"
)

// minimalShare is the share of a plain memcached's items that a shard must store.
const minimalShare = 0.99

//go:embed document.md
var template string

// document reports a run of the benchmark.
type document struct {
	options   options
	args      []string // of the command line
	machine   string
	date      time.Time
	filled    []filled
	connected []connected
}

func (d document) items() report.Table {
	table := report.Table{{"`memory` and value", "items, plain", "items, this operator", "", "memory volume", "peak of the container", "limit", "peak, plain"}}
	for _, f := range d.filled {
		table = append(table, []string{
			fmt.Sprintf("%s, %s B", f.memory.String(), report.Number(f.value)), report.Number(f.plain), report.Number(f.items), report.Percent(f.share(), 1),
			report.Mebibytes(f.file), fmt.Sprintf("%s (%s)", report.Mebibytes(f.peak), report.Percent(float64(f.peak)/float64(f.limit), 0)), report.Mebibytes(f.limit), report.Mebibytes(f.plainPeak),
		})
	}
	return table
}

func (d document) connections() report.Table {
	table := report.Table{{"a connection", "memory", "and buffers of its socket"}}
	for _, c := range d.connected {
		table = append(table, []string{c.state, fmt.Sprintf("%.1f KiB", c.memory/1024), fmt.Sprintf("%.1f KiB", c.buffers/1024)})
	}
	return table
}

// write writes the document to a folder.
func (d document) write(folder string) error {
	text, err := report.Document(template, map[string]any{
		"Items": d.items().Markdown(), "Connections": d.connections().Markdown(), "Command": report.Command("bench-memory", d.args),
		"Date": d.date.UTC().Format(time.DateOnly), "Machine": d.machine, "Version": d.options.version,
		"Clients": report.Number(d.options.connections), "Stalled": stalled, "Share": report.Percent(minimalShare, 0),
	})
	if err != nil {
		return err
	}
	return report.Write(folder, map[string][]byte{"bench-memory.md": text})
}

// check returns an error if a shard stores too few items or used all of its memory.
func (d document) check() error {
	for _, f := range d.filled {
		if f.share() < minimalShare || f.peak > f.limit {
			return fmt.Errorf("a shard stores less than %s of a plain memcached's items, or needs more than its limit: %s", report.Percent(minimalShare, 0), f)
		}
	}
	return nil
}

// describe describes this machine, without anything that identifies its owner.
func describe() (string, error) {
	release, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return "", err
	}
	memory, err := usage.Total()
	if err != nil {
		return "", err
	}
	version := "2"
	if _, err := os.Stat(cgroupRoot + "/cgroup.controllers"); err != nil {
		version = "1"
	}
	// the suffix names the distributor
	kernel, _, _ := strings.Cut(strings.TrimSpace(string(release)), "-")
	return fmt.Sprintf("A machine of %d cores and %d GiB of memory, Linux %s, control groups version %s.", runtime.NumCPU(), (memory+1<<29)>>30, kernel, version), nil
}
