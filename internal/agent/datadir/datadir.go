// Package datadir is what stays in the data volume between two memcacheds: the items with memcached's metadata, the
// agent's record of the last stop, and the mark of a handover that is not complete.
package datadir

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/agent/files"
	"github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/memcached/memfile"
	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
)

// dataOverhead is the space for the agent's and memcached's metadata, a few KiB.
const dataOverhead = 1 << 20

// CheckSize returns an error if the data volume is too small for maxBytes of items.
// SIGBUS kills memcached when a tmpfs is full before memcached's own limit.
func CheckSize(dir string, maxBytes int64) error {
	var volume syscall.Statfs_t
	if err := syscall.Statfs(dir, &volume); err != nil {
		return fmt.Errorf("reading the size of the data volume %s: %w", dir, err)
	}
	total := int64(volume.Blocks) * volume.Bsize
	// A tmpfs without a limit has no blocks.
	if need := maxBytes + dataOverhead; total > 0 && total < need {
		return fmt.Errorf("the data volume has %d MiB, but memcached with -m %d needs %d MiB: "+
			"it would crash when the volume is full", total>>20, maxBytes>>20, need>>20)
	}
	return nil
}

// CheckWritable returns an error if this user can't create a file in the data volume.
func CheckWritable(dir string) error {
	probe, err := os.CreateTemp(dir, ".agent-")
	if err != nil {
		return fmt.Errorf("the data directory must be writable: %w", err)
	}
	_ = probe.Close()
	return os.Remove(probe.Name())
}

// Stop is the agent's record of how memcached ran last, and of its last planned stop.
type Stop struct {
	// At is zero before the first planned stop.
	At time.Time `json:"at"`
	// Items is the number of items just before the save.
	Items int64 `json:"items"`
	// Version is memcached's.
	Version string `json:"version"`
	// Arguments were in effect, without the agent's own.
	Arguments []string `json:"arguments"`
	// Announced is the token that announced the stop, with the arguments for which the next agent waits.
	Announced string `json:"announced,omitempty"`
	// State is what the agent knew about the saved items, by name.
	State map[string][]byte `json:"state,omitempty"`
}

// IsRecorded reports whether memcached has served clients in this pod before.
func (s Stop) IsRecorded() bool { return s.Version != "" }

func lastStopPath(dir string) string { return filepath.Join(dir, "last-stop.json") }

// readLastStop returns the zero value if there is no readable record.
func readLastStop(dir string) Stop {
	var record Stop
	text, err := os.ReadFile(lastStopPath(dir))
	if err != nil || json.Unmarshal(text, &record) != nil {
		return Stop{}
	}
	return record
}

// WriteStop replaces the record.
func WriteStop(dir string, record Stop) error {
	text, err := json.Marshal(record)
	if err != nil {
		return err
	}
	return files.Replace(lastStopPath(dir), append(text, '\n'))
}

// Saved is what a data directory contains before a start.
type Saved struct {
	// File is nil if there are no saved items that memcached can load.
	File *MetaFile
	// damage is the reason why memory.meta was removed; empty if it was not.
	damage string
	// Ran is whether memcached has run with this directory before.
	Ran bool
	// HandedOver is whether another pod got the items, or may have.
	HandedOver bool
	// Last is the agent's record of the last run, zero if there is none.
	Last Stop
}

// MetaPath returns the path of memcached's metadata, which exists while items are saved.
func MetaPath(dir string) string { return filepath.Join(dir, "memory.meta") }

// MemoryPath returns the path of the memory file, memcached's option -e.
func MemoryPath(dir string) string { return filepath.Join(dir, "memory") }

// receptionPath is a file that exists while a handover has not completed the items. It
// contains the phase: a pod in Receiving has served no client, and may receive again.
func receptionPath(dir string) string { return filepath.Join(dir, "reception") }

// MarkReception writes that the items are those of a handover that is not complete, and its phase.
func MarkReception(dir string, phase wire.Phase) error {
	if err := files.Replace(receptionPath(dir), []byte(phase)); err != nil {
		return fmt.Errorf("marking the reception of items: %w", err)
	}
	return nil
}

// UnmarkReception writes that the items are complete.
func UnmarkReception(dir string) error {
	if err := files.RemoveIfExists(receptionPath(dir)); err != nil {
		return fmt.Errorf("marking the end of the reception: %w", err)
	}
	return nil
}

// removeIncomplete removes the items of a handover that was interrupted, and returns its
// phase; empty if there was none.
func removeIncomplete(dir string) (wire.Phase, error) {
	phase, err := os.ReadFile(receptionPath(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err == nil {
		err = errors.Join(files.RemoveIfExists(MemoryPath(dir)), files.RemoveIfExists(MetaPath(dir)))
	}
	if err != nil {
		return "", fmt.Errorf("removing incomplete items: %w", err)
	}
	return wire.Phase(phase), nil
}

// Read reads a data directory. It removes incomplete items, and a memory.meta at
// which memcached would abort.
func Read(dir string) (Saved, error) {
	s := Saved{Last: readLastStop(dir)}
	incomplete, err := removeIncomplete(dir)
	if err != nil {
		return s, err
	}
	s.HandedOver = incomplete == wire.PhaseHandedOver
	if incomplete != "" && incomplete != wire.PhaseReceiving && !s.HandedOver {
		s.Ran, s.damage = true, "the handover was interrupted when clients of both pods had changed items"
		return s, nil
	}
	if _, err := os.Stat(MemoryPath(dir)); err == nil {
		s.Ran = true
	}
	text, err := os.ReadFile(MetaPath(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return s, fmt.Errorf("reading the saved items: %w", err)
	}
	if strings.HasPrefix(string(text), casSeed) { // memcached has not read it
		return s, os.Remove(MetaPath(dir))
	}
	file, err := parseMetaFile(string(text))
	if err == nil && !s.Ran {
		err = errors.New("the memory file is missing")
	}
	if err == nil {
		s.File = &file
		return s, nil
	}
	s.damage = err.Error()
	if err := os.Remove(MetaPath(dir)); err != nil {
		return s, fmt.Errorf("removing unusable saved items: %w", err)
	}
	return s, nil
}

// ItemsBefore returns the number of saved items; 0 if it is unknown, because another
// process than the agent stopped memcached by SIGUSR1.
func (s Saved) ItemsBefore() int64 {
	if s.File == nil {
		return 0
	}
	distance := s.Last.At.Sub(time.Unix(s.File.Stopped, 0)).Abs()
	if distance > SaveTimeout+10*time.Second {
		return 0
	}
	return s.Last.Items
}

// Prepare adjusts memory.meta so that memcached accepts it.
func (s Saved) Prepare(dir string, now time.Time) error {
	if s.File == nil {
		return nil
	}
	text := s.File.adjust(now, s.ItemsBefore())
	if text == s.File.text {
		return nil
	}
	if err := files.Replace(MetaPath(dir), []byte(text)); err != nil {
		return fmt.Errorf("preparing the saved items: %w", err)
	}
	return nil
}

// CatchUp corrects memory.meta, if memcached has just written it, by a reading of its clock.
func CatchUp(dir string, clock *protocol.Clock, now time.Time) error {
	text, err := os.ReadFile(MetaPath(dir))
	if errors.Is(err, fs.ErrNotExist) || clock == nil {
		return nil
	}
	var file MetaFile
	if err == nil {
		file, err = parseMetaFile(string(text))
	}
	if err != nil {
		return err
	}
	if corrected := file.catchUp(*clock, now); corrected != file.text {
		return files.Replace(MetaPath(dir), []byte(corrected))
	}
	return nil
}

// AssessStart compares the number of items right after a start with what was saved
// before. rejection is memcached's reason for not loading the saved items.
// stats is nil if memcached had no connection left to return them.
func AssessStart(before Saved, rejection string, stats *protocol.General, at time.Time) wire.Start {
	start := wire.Start{Result: wire.StartCold, ItemsBefore: before.ItemsBefore(), At: at}
	if stats != nil {
		start.Items = stats.Items
	}
	switch {
	case before.damage != "":
		start.Reason = "the saved items were unusable and were removed: " + before.damage
	case before.File == nil && before.Ran:
		start.Reason = "memcached did not save its items at its last stop"
	case before.File == nil:
		start.Reason = wire.FirstStart
	case rejection != "":
		start.Reason = "memcached rejected the saved items: " + rejection
	case stats == nil:
		start.Result, start.Items = wire.StartWarm, start.ItemsBefore
		start.Reason = "memcached did not reject the saved items, and returned no statistics to count them"
	case start.Items == 0 && start.ItemsBefore > 0:
		start.Reason = fmt.Sprintf("memcached loaded none of the %d saved items", start.ItemsBefore)
	default:
		start.Result = wire.StartWarm
		start.Reason = "memcached loaded the saved items"
	}
	return start
}

// SaveTimeout bounds a save. memcached needs 0.2 to 1.2 s; the rest is for slow
// machines. Together with the drain before it, it fits into the pod's grace period.
const SaveTimeout = 20 * time.Second

// OpenMemory opens the memory file of a memcached of that version with these arguments. Close it.
func OpenMemory(dataDir string, arguments []string, version string) (*memfile.File, error) {
	layout, err := memfile.LayoutOf(arguments, version)
	if err != nil {
		return nil, err
	}
	return memfile.Open(MemoryPath(dataDir), layout)
}

// SavedClock returns memcached's clock for the items that it has saved.
func SavedClock(dataDir string) (memfile.Clock, error) {
	text, err := os.ReadFile(MetaPath(dataDir))
	if err != nil {
		return memfile.Clock{}, err
	}
	file, err := parseMetaFile(string(text))
	return file.clockAt(time.Now()), err
}
