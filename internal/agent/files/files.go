// Package files reads the volumes that the kubelet writes, and replaces the agent's own files.
package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Generation returns the name of the folder with the present content of a volume, which the kubelet
// never changes: it writes another one. It fails for a folder that is no such volume.
func Generation(volume string) (string, error) { return os.Readlink(filepath.Join(volume, "..data")) }

// ReadGeneration reads the folder with the content of a volume, and again if it was replaced in the meantime:
// the kubelet deletes it then. The error of read names the volume.
func ReadGeneration(volume string, read func(dir string) error) error {
	for attempt := 1; ; attempt++ {
		generation, err := Generation(volume)
		if err != nil {
			return fmt.Errorf("reading the volume %s: %w", volume, err)
		}
		err = read(filepath.Join(volume, generation))
		latest, latestErr := Generation(volume)
		switch {
		case (latestErr != nil || latest != generation) && attempt < 5:
		case err != nil:
			return fmt.Errorf("reading the volume %s: %w", volume, err)
		default:
			return nil
		}
	}
}

// Replace writes a file that only this user can read. Its former content stays if the agent is killed or the volume is
// full.
func Replace(path string, content []byte) error {
	partial := path + ".part"
	if err := os.WriteFile(partial, content, 0o600); err != nil {
		return err
	}
	return os.Rename(partial, path)
}

// RemoveIfExists removes a file. A missing one is no error.
func RemoveIfExists(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
