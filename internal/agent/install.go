package agent

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// install copies this program to dir/agent, so that a container with another image
// can run it. It renames the copy last, so that no container runs a partial one.
func install(dir string) error {
	from, err := os.Open("/proc/self/exe")
	if err != nil {
		return fmt.Errorf("opening this program: %w", err)
	}
	defer from.Close()

	partial, err := os.CreateTemp(dir, ".agent-")
	if err != nil {
		return fmt.Errorf("installing the agent: %w", err)
	}
	defer os.Remove(partial.Name())

	_, err = io.Copy(partial, from)
	if err == nil {
		err = partial.Chmod(0o755)
	}
	if closeErr := partial.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(partial.Name(), filepath.Join(dir, "agent"))
	}
	if err != nil {
		return fmt.Errorf("installing the agent: %w", err)
	}
	return nil
}
