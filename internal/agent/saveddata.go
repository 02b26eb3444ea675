package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// savedData is what the data directory contained before a start.
type savedData struct {
	// file is nil if there are no saved items that memcached can load.
	file *metaFile
	// damage is the reason why memory.meta was removed; empty if it was not.
	damage string
	// ran is whether memcached has run with this directory before.
	ran bool
	// last is the agent's record of the last planned stop, zero if there is none.
	last lastStop
}

func metaPath(dir string) string   { return filepath.Join(dir, "memory.meta") }
func memoryPath(dir string) string { return filepath.Join(dir, "memory") }

// readSavedData reads a data directory, and removes a memory.meta at which memcached
// would abort.
func readSavedData(dir string) (savedData, error) {
	s := savedData{last: readLastStop(dir)}
	if _, err := os.Stat(memoryPath(dir)); err == nil {
		s.ran = true
	}
	text, err := readBounded(metaPath(dir), maxMetaFileBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	var file metaFile
	switch {
	case errors.Is(err, errTooLarge):
	case err != nil:
		return s, fmt.Errorf("reading the saved items: %w", err)
	default:
		file, err = parseMetaFile(text)
	}
	if err == nil && !s.ran {
		err = errors.New("the memory file is missing")
	}
	if err == nil {
		s.file = &file
		return s, nil
	}
	s.damage = err.Error()
	if err := os.Remove(metaPath(dir)); err != nil {
		return s, fmt.Errorf("removing unusable saved items: %w", err)
	}
	return s, nil
}

func (s savedData) hasLastStop() bool { return !s.last.At.IsZero() }

// itemsBefore returns the number of saved items; 0 if it is unknown, because another
// process than the agent stopped memcached by SIGUSR1.
func (s savedData) itemsBefore() int64 {
	if s.file == nil {
		return 0
	}
	distance := s.last.At.Sub(time.Unix(s.file.stopped, 0)).Abs()
	if distance > saveTimeout+10*time.Second {
		return 0
	}
	return s.last.Items
}

// prepare adjusts memory.meta so that memcached accepts it, and returns how long the
// start must wait.
func (s savedData) prepare(dir string, now time.Time) (time.Duration, error) {
	if s.file == nil {
		return 0, nil
	}
	text, wait := s.file.adjust(now, s.itemsBefore())
	if text == s.file.text {
		return wait, nil
	}
	if err := replaceFile(metaPath(dir), []byte(text)); err != nil {
		return 0, fmt.Errorf("preparing the saved items: %w", err)
	}
	return wait, nil
}
