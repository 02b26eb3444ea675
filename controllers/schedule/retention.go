package schedule

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"k8s.io/utils/ptr"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
)

// expired returns the backups that a retention doesn't keep, the oldest first, and when
// the next one expires; zero if none will. Running backups and the latest that is Complete
// never expire.
func expired(backups []v1alpha1.MemcachedBackup, keep *v1alpha1.BackupRetention, now time.Time) (prune []v1alpha1.MemcachedBackup, next time.Time) {
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
		var keeps, latest bool
		switch b.Status.Phase {
		case v1alpha1.TransferComplete:
			latest = complete == 0
			keeps = latest || keep.SuccessfulBackupsHistoryLimit == nil || complete < int(*keep.SuccessfulBackupsHistoryLimit)
			complete++
		case v1alpha1.TransferFailed:
			keeps = failed < int(ptr.Deref(keep.FailedBackupsHistoryLimit, v1alpha1.DefaultFailedBackupsHistoryLimit))
			failed++
		default:
			continue
		}
		if keeps && !latest && keep.MaxAgeSeconds != nil {
			until := b.CreationTimestamp.Add(v1alpha1.Seconds(keep.MaxAgeSeconds, 0))
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
