package load

import (
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"
)

// versions are those of the values of a key in the database. Each set has a higher one.
type versions struct {
	lock sync.Mutex
	last uint64
	// pending are the versions of writes that are not answered yet, in ascending order.
	pending []uint64
	// oldest are the oldest versions that a read may return, in ascending order, and since when.
	oldest []oldest
}

type oldest struct {
	version uint64
	since   time.Time
}

// begin returns the version of a write, and the lowest one of the writes beside it: memcached may store them in any order. A set has a
// new version, and a fill that of the database.
func (v *versions) begin(is kind) (version, lowest uint64) {
	v.lock.Lock()
	defer v.lock.Unlock()
	if is == set {
		v.last++
	}
	v.pending = append(v.pending, v.last)
	return v.last, v.pending[0]
}

// end ends a write. After an answer, reads that begin later return none of the versions below the lowest one.
func (v *versions) end(version, lowest uint64, answered bool, now time.Time) {
	v.lock.Lock()
	defer v.lock.Unlock()
	at := slices.Index(v.pending, version)
	v.pending = slices.Delete(v.pending, at, at+1)
	if answered && (len(v.oldest) == 0 || v.oldest[len(v.oldest)-1].version < lowest) {
		v.oldest = append(v.oldest, oldest{lowest, now})
	}
}

// replaced returns for how long a version had been replaced at a time; 0 if it was not.
func (v *versions) replaced(version uint64, at time.Time) time.Duration {
	v.lock.Lock()
	defer v.lock.Unlock()
	i := sort.Search(len(v.oldest), func(i int) bool { return v.oldest[i].version > version })
	if i == len(v.oldest) {
		return 0
	}
	return max(at.Sub(v.oldest[i].since), 0)
}

// value returns a version of the value of a key, which no other key has.
func value(key string, version uint64) string {
	text := fmt.Sprintf("%s %d ", key, version)
	return text + strings.Repeat(".", ValueSize-len(text))
}

// versionOf returns the version of a value, and false if it is not one of the key.
func versionOf(key, text string) (uint64, bool) {
	rest, _ := strings.CutPrefix(text, key+" ")
	digits, _, _ := strings.Cut(rest, " ")
	version, err := strconv.ParseUint(digits, 10, 64)
	return version, err == nil && text == value(key, version)
}
