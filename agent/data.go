package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// lastStop is the agent's note of a planned stop, last-stop.json. It stays
// until the next one.
type lastStop struct {
	At time.Time `json:"at"`
	// Items is how many there were just before the save.
	Items int64 `json:"items"`
	// Version is memcached's.
	Version string `json:"version"`
	// Arguments were in effect, without the agent's own.
	Arguments []string `json:"arguments"`
	// Announced is the token that announced the stop. It is used up: it stands
	// in the pod's annotation still when the next agent starts.
	Announced string `json:"announced,omitempty"`
}

// readLastStop returns the zero note when there is none, or none that can be read.
func readLastStop(dir string) lastStop {
	var note lastStop
	text, err := readBounded(filepath.Join(dir, "last-stop.json"), 1<<20)
	if err != nil || json.Unmarshal([]byte(text), &note) != nil {
		return lastStop{}
	}
	return note
}

func writeLastStop(dir string, note lastStop) error {
	text, err := json.Marshal(note)
	if err != nil {
		return err
	}
	return replaceFile(filepath.Join(dir, "last-stop.json"), append(text, '\n'))
}

// dataSlack is what a data volume holds beside the items: the metadata file and
// the agent's note, a few KiB.
const dataSlack = 1 << 20

// checkRoom makes sure that a data volume can hold all items. In a tmpfs that
// fills up before memcached's limit, memcached is killed by SIGBUS.
func checkRoom(dir string, maxBytes int64) error {
	var volume syscall.Statfs_t
	if err := syscall.Statfs(dir, &volume); err != nil {
		return fmt.Errorf("looking at the data folder %s: %w", dir, err)
	}
	total := int64(volume.Blocks) * volume.Bsize
	// No blocks is a tmpfs without a limit.
	if need := maxBytes + dataSlack; total > 0 && total < need {
		return fmt.Errorf("the data volume holds %d MiB, and memcached with -m %d needs %d MiB there: "+
			"a volume that fills up first would kill it", total>>20, maxBytes>>20, need>>20)
	}
	return nil
}

// checkWritable makes sure that memcached can create its files.
func checkWritable(dir string) error {
	probe, err := os.CreateTemp(dir, ".agent-")
	if err != nil {
		return fmt.Errorf("the data folder must be writable: %w", err)
	}
	_ = probe.Close()
	return os.Remove(probe.Name())
}

var errTooLong = errors.New("the file is longer than it may be")

// readBounded reads a small file; a longer one is errTooLong.
func readBounded(path string, limit int64) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err != nil {
		return "", err
	}
	if int64(len(text)) > limit {
		return "", errTooLong
	}
	return string(text), nil
}

// replaceFile writes a file so that a reader finds the old or the new one.
func replaceFile(path string, content []byte) error {
	part := path + ".part"
	if err := os.WriteFile(part, content, 0o600); err != nil {
		return err
	}
	return os.Rename(part, path)
}
