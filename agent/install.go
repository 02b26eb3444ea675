package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// install copies this program to dir/agent, so that a container with another
// image can run it. The last step is a rename: a copy cut short is never run.
func install(dir string) error {
	from, err := os.Open("/proc/self/exe")
	if err != nil {
		return fmt.Errorf("opening this program: %w", err)
	}
	defer from.Close()

	part, err := os.CreateTemp(dir, ".agent-")
	if err != nil {
		return fmt.Errorf("installing the agent: %w", err)
	}
	defer os.Remove(part.Name())

	_, err = io.Copy(part, from)
	if err == nil {
		err = part.Chmod(0o755)
	}
	if closing := part.Close(); err == nil {
		err = closing
	}
	if err == nil {
		err = os.Rename(part.Name(), filepath.Join(dir, "agent"))
	}
	if err != nil {
		return fmt.Errorf("installing the agent: %w", err)
	}
	return nil
}
