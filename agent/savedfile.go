package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/geometry"
)

// savedFile is memory.meta, which memcached writes at a stop by SIGUSR1 and
// removes at its next start. Its format is in restart.c and in
// _mc_meta_save_cb of memcached.c: a line "Tmain", then "K<name> <value>" lines.
type savedFile struct {
	text     string
	geometry geometry.Geometry
	// stopped is the Unix second in which memcached stopped.
	stopped int64
	// hashPower is the size of the hash table, as a power of two.
	hashPower int64
	// hasOldestCAS tells of the line that versions below 1.6.25 demand.
	hasOldestCAS bool
}

// requiredLines are those without which every version refuses the file.
var requiredLines = []string{
	"slab_config", "maxbytes", "chunk_size", "item_size_max", "slab_chunk_size_max", "slab_page_size", "use_cas", "slab_reassign",
	"current_time", "process_started", "stop_time", "current_cas", "logger_gid", "hashpower", "oldest_live", "mmap_oldbase",
}

// maxSavedFile bounds the file in bytes; its longest line holds the slab sizes.
const maxSavedFile = 64 << 10

// parseSavedFile reads memory.meta. It is strict, since memcached aborts at a
// file without a first line, at each start anew.
func parseSavedFile(text string) (savedFile, error) {
	f := savedFile{text: text}
	body, whole := strings.CutSuffix(text, "\n")
	lines := strings.Split(body, "\n")
	if !whole || lines[0] != "Tmain" {
		return savedFile{}, errors.New("it was cut short or is not memcached's")
	}
	values := map[string]string{}
	for _, line := range lines[1:] {
		name, value, ok := strings.Cut(line, " ")
		name, isValue := strings.CutPrefix(name, "K")
		if !ok || !isValue {
			return savedFile{}, fmt.Errorf("it holds the line %.80q", line)
		}
		values[name] = value
	}
	for _, name := range requiredLines {
		if values[name] == "" {
			return savedFile{}, fmt.Errorf("it lacks the line %s", name)
		}
	}
	for name, to := range map[string]*int64{
		"maxbytes": &f.geometry.MaxBytes, "chunk_size": &f.geometry.ChunkSize, "item_size_max": &f.geometry.ItemSizeMax,
		"slab_chunk_size_max": &f.geometry.SlabChunkMax, "slab_page_size": &f.geometry.SlabPage, "stop_time": &f.stopped,
		"hashpower": &f.hashPower,
	} {
		n, err := strconv.ParseInt(values[name], 10, 64)
		if err != nil {
			return savedFile{}, fmt.Errorf("its line %s is %.80q", name, values[name])
		}
		*to = n
	}
	f.geometry.SlabConfig = values["slab_config"]
	f.geometry.CAS = values["use_cas"] == "true"
	f.geometry.SlabReassign = values["slab_reassign"] == "true"
	_, f.hasOldestCAS = values["oldest_cas"]
	return f, nil
}

// clockStep is how far the stop may lie ahead and still be waited for. Beyond
// it the wall clock was set back meanwhile.
const clockStep = 2 * time.Second

// fit returns the text that memcached will take up, with that many items, when
// it starts after wait.
//
// memcached refuses a file whose stop is not in an earlier second of the wall
// clock. It counts the time between them against the items' lives; so when the
// clock went back, one second is the least that can be told.
func (f savedFile) fit(now time.Time, items int64) (text string, wait time.Duration) {
	text = f.text
	if !f.hasOldestCAS {
		// Newer versions stopped writing it, and pass over it with a word on stderr.
		text += "Koldest_cas 0\n"
	}
	if needed := hashPowerFor(items); needed > f.hashPower {
		text = withLine(text, "hashpower", needed)
	}
	wait = time.Unix(f.stopped+1, 0).Sub(now)
	if wait > clockStep {
		return withLine(text, "stop_time", now.Unix()-1), 0
	}
	return text, max(wait, 0)
}

// hashPowerFor is the size of a hash table that so many items, and a quarter
// more, do not make grow; memcached grows it beyond 1.5 items a bucket.
//
// It looks at that once a second. Stopped in between, it saves the old size,
// grows at once when it starts, and may wait forever for a worker thread that
// itself still starts: that befell 6 of 720 starts of 1.6.18 and 1.6.45 on a
// busy machine, and none of 1,200 with a table large enough.
func hashPowerFor(items int64) int64 {
	const largest = 32 // HASHPOWER_MAX in hash.h
	power := int64(1)
	for power < largest && items/4*5 > 1<<power/2*3 {
		power++
	}
	return power
}

// withLine returns a text with another value in one of its lines.
func withLine(text, name string, value int64) string {
	lines := strings.SplitAfter(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, "K"+name+" ") {
			lines[i] = fmt.Sprintf("K%s %d\n", name, value)
		}
	}
	return strings.Join(lines, "")
}

// saved is what a data folder held before a start.
type saved struct {
	// file is nil when nothing was saved, or nothing that could be taken up.
	file *savedFile
	// damage is why memory.meta was removed.
	damage string
	// ran tells that memcached ran with this folder before.
	ran bool
	// last is the agent's own note of the last planned stop. Its arguments say
	// what to go back to, also when nothing was saved.
	last lastStop
}

func metaPath(dir string) string   { return filepath.Join(dir, "memory.meta") }
func memoryPath(dir string) string { return filepath.Join(dir, "memory") }

// readSaved looks at a data folder, and removes what would make memcached abort.
func readSaved(dir string) (saved, error) {
	var s saved
	s.last = readLastStop(dir)
	if _, err := os.Stat(memoryPath(dir)); err == nil {
		s.ran = true
	}
	text, err := readBounded(metaPath(dir), maxSavedFile)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	var file savedFile
	switch {
	case errors.Is(err, errTooLong):
	case err != nil:
		return s, fmt.Errorf("reading what memcached saved: %w", err)
	default:
		file, err = parseSavedFile(text)
	}
	if err == nil && !s.ran {
		err = errors.New("the memory that belongs to it is gone")
	}
	if err != nil {
		s.damage = err.Error()
		if err := os.Remove(metaPath(dir)); err != nil {
			return s, fmt.Errorf("removing what memcached cannot take up: %w", err)
		}
		return s, nil
	}
	s.file = &file
	return s, nil
}

// itemsBefore is how many items the saved file holds; 0 when that is unknown:
// memcached can be stopped with SIGUSR1 by others, who leave no note.
func (s saved) itemsBefore() int64 {
	if s.file == nil {
		return 0
	}
	apart := s.last.At.Sub(time.Unix(s.file.stopped, 0)).Abs()
	if apart > saveBound+10*time.Second {
		return 0
	}
	return s.last.Items
}
