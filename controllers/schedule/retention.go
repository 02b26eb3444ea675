package schedule

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
)

// defaultFailed is that of the API server's default.
const defaultFailed = 3

// unkept returns the backups that a retention does not keep, the oldest first, and
// when the next one will not be kept any more for its age; zero if none will. What
// has not ended is kept, and so is the newest that is Complete.
func unkept(backups []v1alpha1.MemcachedBackup, keep *v1alpha1.BackupRetention, now time.Time) (prune []v1alpha1.MemcachedBackup, next time.Time) {
	if keep == nil {
		return nil, time.Time{}
	}
	newest := slices.Clone(backups)
	slices.SortFunc(newest, func(a, b v1alpha1.MemcachedBackup) int {
		return cmp.Or(b.CreationTimestamp.Compare(a.CreationTimestamp.Time), strings.Compare(b.Name, a.Name))
	})
	complete, failed := 0, 0
	for _, b := range newest {
		if b.DeletionTimestamp != nil {
			continue
		}
		var keeps, holds bool
		switch b.Status.Phase {
		case v1alpha1.RunComplete:
			holds = complete == 0
			keeps = holds || keep.Count == nil || complete < int(*keep.Count)
			complete++
		case v1alpha1.RunFailed:
			bound := defaultFailed
			if keep.FailedCount != nil {
				bound = int(*keep.FailedCount)
			}
			keeps = failed < bound
			failed++
		default:
			continue
		}
		if keeps && !holds && keep.MaxAge != nil {
			until := b.CreationTimestamp.Add(keep.MaxAge.Duration)
			keeps = until.After(now)
			if keeps && (next.IsZero() || until.Before(next)) {
				next = until
			}
		}
		if !keeps {
			prune = append(prune, b)
		}
	}
	slices.Reverse(prune)
	return prune, next
}
