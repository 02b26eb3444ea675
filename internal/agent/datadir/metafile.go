package datadir

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/agent/files"
	"github.com/memcached-operator/memcached-operator/internal/memcached/memfile"
	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
	"github.com/memcached-operator/memcached-operator/internal/memcached/slab"
)

// MetaFile is memory.meta, which memcached writes when SIGUSR1 stops it and deletes
// at its next start. restart.c and _mc_meta_save_cb of memcached.c define the
// format: a line "Tmain", then lines "K<name> <value>".
type MetaFile struct {
	text     string
	Geometry slab.Geometry
	// Stopped is the Unix second in which memcached stopped, Clock what its clock showed then.
	Stopped, Clock int64
	// started, oldestLive and oldestCAS are of memfile.Clock.
	started, oldestLive, oldestCAS int64
	// hashPower is the size of the hash table, as a power of two.
	hashPower int64
	// hasOldestCAS is whether the file has the line that versions below 1.6.25 require.
	hasOldestCAS bool
}

// requiredLines are the lines without which every version rejects the file.
var requiredLines = []string{
	"slab_config", "maxbytes", "chunk_size", "item_size_max", "slab_chunk_size_max", "slab_page_size", "use_cas",
	"slab_reassign", "current_time", "process_started", "stop_time", "current_cas", "logger_gid", "hashpower",
	"oldest_live", "mmap_oldbase",
}

// parseMetaFile is strict, because memcached aborts at each start if the file has no
// first line.
func parseMetaFile(text string) (MetaFile, error) {
	f := MetaFile{text: text}
	body, complete := strings.CutSuffix(text, "\n")
	lines := strings.Split(body, "\n")
	if !complete || lines[0] != "Tmain" {
		return MetaFile{}, errors.New("memory.meta is truncated or was not written by memcached")
	}
	values := map[string]string{}
	for _, line := range lines[1:] {
		name, value, ok := strings.Cut(line, " ")
		name, isValue := strings.CutPrefix(name, "K")
		if !ok || !isValue {
			return MetaFile{}, fmt.Errorf("memory.meta has the unexpected line %.80q", line)
		}
		values[name] = value
	}
	for _, name := range requiredLines {
		if values[name] == "" {
			return MetaFile{}, fmt.Errorf("memory.meta lacks the line %s", name)
		}
	}
	if _, f.hasOldestCAS = values["oldest_cas"]; !f.hasOldestCAS {
		values["oldest_cas"] = "0"
	}
	for name, to := range map[string]*int64{
		"maxbytes": &f.Geometry.MaxBytes, "chunk_size": &f.Geometry.ChunkSize,
		"item_size_max": &f.Geometry.ItemSizeMax, "slab_chunk_size_max": &f.Geometry.SlabChunkMax,
		"slab_page_size": &f.Geometry.SlabPage, "stop_time": &f.Stopped, "current_time": &f.Clock, "hashpower": &f.hashPower,
		"process_started": &f.started, "oldest_live": &f.oldestLive, "oldest_cas": &f.oldestCAS,
	} {
		n, err := strconv.ParseInt(values[name], 10, 64)
		if err != nil {
			return MetaFile{}, fmt.Errorf("memory.meta has the invalid line %s %.80q", name, values[name])
		}
		*to = n
	}
	f.Geometry.SlabConfig = values["slab_config"]
	f.Geometry.CAS = values["use_cas"] == "true"
	f.Geometry.SlabReassign = values["slab_reassign"] == "true"
	return f, nil
}

// clockAt returns memcached's clock now. While memcached is stopped its clock advances with the wall clock, as for memcached
// when it starts again. The clock that it saved is late by the time for which it got no processor time before the save:
// Best corrects that with a reading of when it ran.
func (f MetaFile) clockAt(now time.Time) memfile.Clock {
	return memfile.Clock{
		Clock:      protocol.Clock{Zero: time.Unix(f.Stopped-f.Clock, 0), Started: f.started},
		Now:        uint32(f.Clock + max(now.Unix()-f.Stopped, 0)),
		OldestLive: uint32(f.oldestLive),
		OldestCAS:  uint64(f.oldestCAS),
	}
}

// adjust returns the text that memcached accepts, with that many items, when it
// starts now.
//
// memcached rejects a file whose stop is not in an earlier second of the wall clock.
// It counts the time since the stop against the items' TTL. So for a start in the second
// of the stop, or after the clock was set back, the text has the shortest possible time,
// one second: the items expire up to that much earlier, and never later.
func (f MetaFile) adjust(now time.Time, items int64) (text string) {
	text = f.text
	if !f.hasOldestCAS {
		// Newer versions do not write this line, and ignore it with a message on stderr.
		text += "Koldest_cas 0\n"
	}
	if needed := hashPowerFor(items); needed > f.hashPower {
		text = replaceLine(text, "hashpower", needed)
	}
	if now.Unix() <= f.Stopped {
		text = replaceLine(text, "stop_time", now.Unix()-1)
	}
	return text
}

// catchUp returns the text with the stop at the time at which memcached's clock, as read while it ran, showed what was
// saved. That clock stands still from the last time that memcached's main thread sets it until the save, which takes
// long on an overloaded node. The next start counts the time from the stop, and items would live longer by the difference.
func (f MetaFile) catchUp(clock protocol.Clock, now time.Time) (text string) {
	// now has the wall clock, which may have been set since the reading.
	shown := now.Add(-now.Sub(clock.Zero.Add(time.Duration(f.Clock) * time.Second))).Unix()
	if shown >= f.Stopped {
		return f.text
	}
	return replaceLine(f.text, "stop_time", shown)
}

// casSeed begins a memory.meta that has nothing but a CAS counter. memcached rejects it as
// saved items, and has taken over the counter by then.
const casSeed = "Tmain\nKcurrent_cas "

// SeedCAS lets the CAS counter of a memcached that starts without items begin far from that
// of any other pod, so that a client's CAS token of the shard's previous pod matches no
// item of this one.
func SeedCAS(dir string) error {
	base := uint64(1<<40) * (1 + rand.Uint64N(1<<20))
	if err := files.Replace(MetaPath(dir), fmt.Appendf(nil, "%s%d\n", casSeed, base)); err != nil {
		return fmt.Errorf("preparing the start without items: %w", err)
	}
	return nil
}

// hashPowerFor returns the size of a hash table that does not grow with that many
// items and a quarter more. memcached grows it beyond 1.5 items a bucket.
//
// memcached checks this once a second. If it is stopped before, it saves the old
// size, grows the table right at its start, and may then wait forever for a worker
// thread that is itself starting: that happened in 6 of 720 starts of 1.6.18 and
// 1.6.45 on a busy machine, and in none of 1,200 with a table large enough.
func hashPowerFor(items int64) int64 {
	const largest = 32 // HASHPOWER_MAX in hash.h
	power := int64(1)
	for power < largest && items/4*5 > 1<<power/2*3 {
		power++
	}
	return power
}

func replaceLine(text, name string, value int64) string {
	lines := strings.SplitAfter(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, "K"+name+" ") {
			lines[i] = fmt.Sprintf("K%s %d\n", name, value)
		}
	}
	return strings.Join(lines, "")
}
