package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
)

// kubectl runs a command from the project's folder, and shows it and what it
// prints.
func (d *demo) kubectl(ctx context.Context, format string, args ...any) error {
	program, err := exec.LookPath("kubectl")
	if err != nil {
		program = filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "kubectl")
	}
	line := fmt.Sprintf(format, args...)
	d.command("kubectl %s", line)
	cmd := exec.CommandContext(ctx, program, strings.Fields(line)...)
	if cmd.Dir, err = cluster.Root(); err != nil {
		return err
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("kubectl %s: %w: %s", line, err, out)
	}
	for row := range strings.Lines(string(out)) {
		d.say("  " + strings.TrimRight(row, "\n"))
	}
	return nil
}
