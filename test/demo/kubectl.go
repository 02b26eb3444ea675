package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// kubectl shows a command and what it prints.
func (d *demo) kubectl(ctx context.Context, line string) error {
	program, err := exec.LookPath("kubectl")
	if err != nil {
		program = filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "kubectl")
	}
	d.command("kubectl %s", line)
	cmd := exec.CommandContext(ctx, program, append(strings.Fields(line), "-n", d.key.Namespace)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("kubectl %s: %w: %s", line, err, out)
	}
	for row := range strings.Lines(string(out)) {
		d.say("  " + strings.TrimRight(row, "\n"))
	}
	return nil
}
