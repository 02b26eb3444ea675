package main

import (
	"os"
	"strconv"
	"strings"
	"time"
)

// command returns the program and arguments of a tier, with more arguments at the end, which win.
func (t tier) command(more []string) []string {
	if t.target != "" {
		make := []string{"make", "--no-print-directory", t.target}
		if len(more) > 0 {
			make = append(make, "ARGS="+strings.Join(more, " "))
		}
		return make
	}
	argv := []string{"go", "-C", t.module, "test", "-json"}
	if t.race {
		argv = append(argv, "-race")
	}
	if t.mounts && os.Getuid() != 0 {
		argv = append(argv, "-exec", "unshare --user --map-root-user --map-auto --mount")
	}
	argv = append(argv, t.packages...)
	return append(append(argv, t.flags...), more...)
}

// again returns the command that runs one failed test alone.
func (t tier) again(f testID) []string {
	if t.target != "" {
		return t.command([]string{"-test.run=^" + f.test + "$$"}) // $$ is a $ for make
	}
	t.packages = []string{f.pkg}
	return t.command([]string{"-run=^" + f.test + "$", "-count=1"})
}

// inEnvironment returns the command that runs argv with the sets of "bin/cluster env" that the tier needs, at its priority.
func (t tier) inEnvironment(cluster string, argv []string) []string {
	script := `exec "$@"`
	if len(t.needs) > 0 {
		script = `exports="$(` + cluster + ` env ` + strings.Join(t.needs, " ") + `)" && eval "$exports" && PATH="$PATH:$KUBEBUILDER_ASSETS" && exec "$@"`
	}
	return append([]string{"nice", "-n", strconv.Itoa(t.nice), "sh", "-c", script, "sh"}, argv...)
}

// variables are what a tier adds to the environment. In a run of several tiers, the audit log counts since the run began.
func (t tier) variables(began time.Time, alone bool) []string {
	var result []string
	if !alone {
		result = append(result, "AUDIT_SINCE="+began.UTC().Format(time.RFC3339))
	}
	if t.race {
		result = append(result, "CGO_ENABLED=1")
	}
	if t.lane == processes { // whose tests measure the memory of programs
		result = append(result, "GOGC=")
	}
	return result
}
