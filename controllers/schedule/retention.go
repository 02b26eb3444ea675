package schedule

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"k8s.io/utils/ptr"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
)

// maxDeleting is how many backups of a schedule are being deleted at a time, as each has a Job, and how
// many running ones a reconcile deletes.
const maxDeleting = 5

// pruning is what a retention does to the backups of a schedule.
type pruning struct {
	// prune are the backups that it doesn't keep, the oldest first.
	prune []v1beta1.MemcachedBackup
	// next is when the next one expires; zero if none will.
	next time.Time
	// guard is a backup that it would not keep, but for the loss of items since.
	guard *v1beta1.MemcachedBackup
}

// expired applies a retention. Running backups and the latest that is Complete never expire,
// and neither does the latest that has at least half as many items as the largest: a cache
// that lost its items must not displace their last copy.
func expired(backups []v1beta1.MemcachedBackup, keep *v1beta1.BackupRetention, now time.Time) (p pruning) {
	if keep == nil {
		return p
	}
	newest := slices.Clone(backups)
	slices.SortFunc(newest, func(a, b v1beta1.MemcachedBackup) int {
		return cmp.Or(b.CreationTimestamp.Compare(a.CreationTimestamp.Time), strings.Compare(b.Name, a.Name))
	})
	full := latestFull(newest)
	complete, failed := 0, 0
	for i, b := range newest {
		if b.DeletionTimestamp != nil {
			continue
		}
		var keeps, latest bool
		switch b.Status.Phase {
		case v1beta1.TransferComplete:
			latest = complete == 0
			keeps = latest || keep.SuccessfulBackupsHistoryLimit == nil || complete < int(*keep.SuccessfulBackupsHistoryLimit)
			complete++
		case v1beta1.TransferFailed:
			keeps = failed < int(ptr.Deref(keep.FailedBackupsHistoryLimit, v1beta1.DefaultFailedBackupsHistoryLimit))
			failed++
		default:
			continue
		}
		if keeps && !latest && keep.MaxAgeSeconds != nil {
			until := b.CreationTimestamp.Add(v1beta1.Seconds(keep.MaxAgeSeconds, 0))
			keeps = until.After(now)
			if keeps && i != full && (p.next.IsZero() || until.Before(p.next)) {
				p.next = until
			}
		}
		switch {
		case keeps:
		case i == full:
			p.guard = &newest[i]
		default:
			p.prune = append(p.prune, b)
		}
	}
	slices.Reverse(p.prune)
	return p
}

// latestFull returns the place of the latest Complete backup that has at least half as many
// items as the largest, or -1.
func latestFull(newest []v1beta1.MemcachedBackup) int {
	var most int64
	items := func(b v1beta1.MemcachedBackup) int64 {
		if b.Status.Phase != v1beta1.TransferComplete || b.DeletionTimestamp != nil || b.Status.Snapshot == nil {
			return -1
		}
		return b.Status.Snapshot.Items
	}
	for _, b := range newest {
		most = max(most, items(b))
	}
	return slices.IndexFunc(newest, func(b v1beta1.MemcachedBackup) bool { return items(b) >= 0 && items(b)*2 >= most })
}

// firstToDelete returns the first backups to delete, so that few are being deleted at a time. The end
// of a deletion triggers the next reconcile.
func firstToDelete(prune, backups []v1beta1.MemcachedBackup) []v1beta1.MemcachedBackup {
	free := maxDeleting
	for _, b := range backups {
		if b.DeletionTimestamp != nil {
			free--
		}
	}
	return prune[:min(len(prune), max(free, 0))]
}
