package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// generationOf returns the name of the folder with the present content of a volume, which the kubelet
// never changes: it writes another one.
func generationOf(volume string) (string, error) { return os.Readlink(filepath.Join(volume, "..data")) }

// readGeneration reads the folder with the content of a volume, and again if it was replaced in the meantime:
// the kubelet deletes it then.
func readGeneration(volume string, read func(dir string) error) error {
	for attempt := 1; ; attempt++ {
		generation, err := generationOf(volume)
		if err != nil {
			return fmt.Errorf("reading the volume %s: %w", volume, err)
		}
		err = read(filepath.Join(volume, generation))
		latest, latestErr := generationOf(volume)
		switch {
		case (latestErr != nil || latest != generation) && attempt < 5:
		case err != nil:
			return fmt.Errorf("reading the volume %s: %w", volume, err)
		default:
			return nil
		}
	}
}

func replaceFile(path string, content []byte) error {
	partial := path + ".part"
	if err := os.WriteFile(partial, content, 0o600); err != nil {
		return err
	}
	return os.Rename(partial, path)
}

func removeIfExists(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
