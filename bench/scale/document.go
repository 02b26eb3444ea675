package scale

import (
	"fmt"
	"time"

	"github.com/memcached-operator/memcached-operator/test/bench/internal/scale"
	"github.com/memcached-operator/memcached-operator/test/bench/report"
)

// document reports the runs of the benchmark.
type document struct {
	options options
	// idle is nil if it was not measured.
	idle *idle
	runs []run
}

func (d document) result(machine string) report.Result {
	last, chart := d.runs[len(d.runs)-1], d.chart()
	r := report.Result{Machine: machine, Tables: []report.Table{d.table()}, Chart: &chart, Values: map[string]any{
		"CommandLine": "`" + last.CommandLine + "`", "Shards": scale.Shards, "PerNamespace": report.Number(d.options.perNamespace), "Starts": scale.StartDelay,
		"Propagates": scale.AnnotationDelay, "Parallel": scale.ParallelRequests, "Window": d.options.window, "From": d.options.from, "To": d.options.to,
		"QuietFor": quietFor, "Workers": last.Workers, "ServedByDefault": report.Number(scale.ServedByDefault), "IdleFor": idleFor,
		"ForeignPods": report.Number(foreignPods), "ForeignSecrets": report.Number(foreignSecrets),
	}}
	if d.idle != nil {
		r.Tables = append(r.Tables, d.idle.table())
	}
	if share := d.disturbance(); share > maxDisturbance {
		r.Warning = fmt.Sprintf("Other programs used %s of the processors. Run the benchmark again when the machine is idle.", report.Percent(share, 0))
	}
	return r
}

func (i idle) table() report.Table {
	return report.Table{
		{"No Memcached", "memory", "peak"},
		{"alone", report.Mebibytes(i.Alone.Now), report.Mebibytes(i.Alone.Peak)},
		{"with " + report.Number(foreignPods) + " pods and " + report.Number(foreignSecrets) + " Secrets of others",
			report.Mebibytes(i.Beside.Now), report.Mebibytes(i.Beside.Peak)},
	}
}

// titles are the headings of the phases.
var titles = map[string]string{
	phaseCreate: "Create", phaseSteady: "Idle", phaseResync: "Resync", phaseRestart: "Restart", phaseUpdate: "Update",
}

// until describes the end of a phase.
var until = map[string]string{
	phaseCreate: "seconds until all are Available", phaseResync: "seconds until all are reconciled",
	phaseRestart: "seconds until all are reconciled", phaseUpdate: "seconds until all are up to date",
}

// table has a column for each run.
func (d document) table() report.Table {
	table := report.Table{{"Memcacheds"}}
	for _, r := range d.runs {
		table[0] = append(table[0], report.Number(r.Size))
	}
	add := func(label string, cell func(run) string) { report.Add(&table, label, d.runs, cell) }
	add("Memory limit of the operator", func(r run) string { return report.Mebibytes(r.Limit) })
	for _, name := range []string{phaseCreate, phaseSteady, phaseResync, phaseRestart, phaseUpdate} {
		heading := "**" + titles[name] + "**: "
		row := func(label string, cell func(phase) string) {
			add(heading+label, func(r run) string { return cell(r.phase(name)) })
			heading = "… "
		}
		per := func(label string, count func(phase) int) {
			add("… "+label+" per Memcached", func(r run) string { return fmt.Sprintf("%.2f", float64(count(r.phase(name)))/float64(r.Size)) })
		}
		operatorCPU := func(p phase) string { return report.Seconds(p.Spent.Operator, 1) }
		memory := func(p phase) string { return report.Mebibytes(p.Memory.Now) + ", " + report.Mebibytes(p.Memory.Peak) }
		if until[name] != "" {
			row(until[name], func(p phase) string { return fmt.Sprintf("%.1f", p.Took.Seconds()) })
		}
		if name != phaseCreate && name != phaseUpdate {
			row("writes and events", func(p phase) string {
				return report.Number(p.Counts.Changes()) + " and " + report.Number(p.Counts.Events)
			})
			row("reads", func(p phase) string { return report.Number(p.Counts.Reads) })
			row("reconciles", func(p phase) string { return report.Number(p.Reconciles) })
			row("processor time of the operator", operatorCPU)
			if name == phaseRestart {
				row("memory and peak", memory)
			}
			continue
		}
		row("until half of them, and 99%, had a first write", func(p phase) string {
			return report.Seconds(report.Quantile(p.First, 0.5), 1) + ", " + report.Seconds(report.Quantile(p.First, 0.99), 1)
		})
		if name == phaseCreate {
			per("created objects", func(p phase) int { return p.Counts.Made })
		}
		per("writes", func(p phase) int { return p.Counts.Changes() })
		per("writes that created no object", func(p phase) int { return p.Counts.Beyond() })
		per("events", func(p phase) int { return p.Counts.Events })
		per("reads", func(p phase) int { return p.Counts.Reads })
		row("requests per second", func(p phase) string {
			return report.Number(int(float64(p.Counts.Changes()+p.Counts.Events+p.Counts.Reads) / p.Took.Seconds()))
		})
		per("reconciles", func(p phase) int { return p.Reconciles })
		row("memory and peak of the operator", memory)
		row("processor time of the operator", operatorCPU)
		row("processor time of API server and etcd", func(p phase) string { return report.Seconds(p.Spent.Server, 1) })
		row("processor time of controllers, and of this benchmark", func(p phase) string {
			return report.Seconds(p.Spent.Controllers, 1) + ", " + report.Seconds(p.Spent.Bench, 1)
		})
		row("processor time of all other programs", func(p phase) string { return report.Seconds(p.Spent.others(), 1) })
		row("time in which the operator only waits for the API server", func(p phase) string { return report.Percent(p.Waiting, 0) })
	}
	return table
}

// chart shows times and memory. Memory begins with that of an operator without a Memcached.
func (d document) chart() report.Chart {
	var now, peak []report.Point
	if d.idle != nil {
		now, peak = append(now, report.Point{Y: report.MiB(d.idle.Alone.Now)}), append(peak, report.Point{Y: report.MiB(d.idle.Alone.Peak)})
	}
	seconds := map[string][]report.Point{}
	for _, r := range d.runs {
		n, most := float64(r.Size), int64(0)
		for _, p := range r.Phases {
			seconds[p.Name] = append(seconds[p.Name], report.Point{X: n, Y: p.Took.Seconds()})
			most = max(most, p.Memory.Peak)
		}
		now, peak = append(now, report.Point{X: n, Y: report.MiB(r.phase(phaseCreate).Memory.Now)}), append(peak, report.Point{X: n, Y: report.MiB(most)})
	}
	return report.Chart{
		Title:    "The operator over the number of Memcacheds",
		Subtitle: fmt.Sprintf("%d shards each, all created and all updated at once", scale.Shards),
		Panels: []report.Panel{
			{Title: "Seconds until all are done", XLabel: "Memcacheds", Series: []report.Series{
				{Name: "update", Points: seconds[phaseUpdate]}, {Name: "create", Color: 1, Points: seconds[phaseCreate]}, {Name: "restart", Color: 2, Points: seconds[phaseRestart]},
			}},
			{Title: "Memory of the operator, MiB", XLabel: "Memcacheds", Series: []report.Series{{Name: "peak", Points: peak}, {Name: "after create", Color: 1, Points: now}}},
		},
	}
}

// disturbance returns the share of the processor time, from 0 to 1, that other programs used during creation and update.
func (d document) disturbance() float64 {
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
